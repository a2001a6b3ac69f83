"""The JSON API: what it answers, and how it refuses."""

from typing import NoReturn
from urllib.parse import unquote

import pytest

from tenure.base.keys import hashed_key
from tenure.errors import JournalError
from tenure.journals import MemoryJournal
from tenure.protocol.lease.records import AnyRecord, State
from tenure.wire.lease_records import LEASE_RECORDS
from tests.unit.manager.serving import Events, Serving, serving
from tests.unit.protocol.lease.breaking import COMMANDED, Breaking

pytestmark = pytest.mark.asyncio

DOCUMENTS = {"name": "docs", "kind": "ordered", "split_points": ["n", {"hex": "ff00"}, "g"]}
LAST = {"hex": "", "text": ""}


async def with_pools(manager: Serving) -> None:
    assert (await manager.post("/v1/pools", DOCUMENTS))[0] == 201
    assert (await manager.post("/v1/pools", {"name": "rooms", "kind": "hashed"}))[0] == 201


async def test_a_pool_is_created_once_and_listed() -> None:
    async with serving() as manager:
        created = {"name": "docs", "kind": "ordered", "created": True}
        assert await manager.post("/v1/pools", DOCUMENTS) == (201, created)
        again = await manager.post("/v1/pools", DOCUMENTS)
        assert again == (200, {**created, "created": False})
        points = [
            {"hex": "67", "text": "g"},
            {"hex": "6e", "text": "n"},
            {"hex": "ff00", "text": None},
        ]
        listed = {
            "name": "docs",
            "kind": "ordered",
            "owners": 0,
            "ranges": 1,
            "free_ranges": 1,
            "lsn": 1,
            "split_points": points,
        }
        status, answer = await manager.get("/v1/pools")
        assert (status, [{**pool, "lsn": 1} for pool in answer["pools"]]) == (200, [listed])


async def test_a_pool_is_deleted() -> None:
    async with serving() as manager:
        await with_pools(manager)
        could = {"name": "docs", "dry_run": True}
        assert await manager.delete("/v1/pools/docs?dry_run=true") == (200, could)
        assert await manager.delete("/v1/pools/docs") == (200, {**could, "dry_run": False})
        assert (await manager.get("/v1/pools/docs/table"))[0] == 404
        status, problem = await manager.delete("/v1/pools/docs")
        assert (status, problem["way_out"]) == (404, "name one of those")
        assert (await manager.delete("/v1/pools/rooms?dry_run=1"))[0] == 400
        assert (await manager.post("/v1/pools", DOCUMENTS))[0] == 201


async def test_a_pool_with_braces_in_its_name_is_reached() -> None:
    async with serving() as manager:
        await manager.post("/v1/pools", {"name": "{a}", "kind": "hashed"})
        assert (await manager.get("/v1/pools/%7Ba%7D/table"))[1]["pool"] == "{a}"
        assert (await manager.get("/v1/pools/%7Ba%7D/plan"))[1]["pool"] == "{a}"
        assert (await manager.post("/v1/pools/%7Ba%7D/freeze", {}))[1]["changed"]
        assert (await manager.delete("/v1/pools/%7Ba%7D"))[0] == 200


async def test_a_pool_that_is_there_and_different_is_a_conflict() -> None:
    async with serving() as manager:
        await with_pools(manager)
        status, problem = await manager.post("/v1/pools", {"name": "docs", "kind": "hashed"})
        assert status == 409
        assert problem["error"].startswith("the pool 'docs' exists already, ordered and with 3")
        assert problem["way_out"] == "use the pool as it is, or choose another name"


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b"{", "truncated"),
        (b"\xff", "malformed"),
        ({"name": "a"}, "missing required field `kind`"),
        ({"name": "a", "kind": "hash"}, "its kind is 'hash'"),
        ({"name": "a", "kind": "hashed", "splits": []}, "unknown field `splits`"),
        ({"name": 1, "kind": "hashed"}, "Expected `str`, got `int`"),
        ({"name": "a\u0000", "kind": "hashed"}, "cannot be a pool's name"),
        ({"name": "a", "kind": "ordered", "split_points": [{"hex": "x"}]}, "not hexadecimal"),
    ],
)
async def test_a_pool_that_cannot_be_is_a_bad_request(body: object, complaint: str) -> None:
    async with serving() as manager:
        status, problem = await manager.post("/v1/pools", body)
        assert status == 400
        assert complaint in problem["error"]
        assert problem["way_out"].startswith("the body is")
        assert await manager.get("/v1/pools") == (200, {"pools": []})


async def test_a_body_that_is_not_said_to_be_json_is_refused() -> None:
    async with serving() as manager:
        status, problem = await manager.post(
            "/v1/pools", DOCUMENTS, **{"Content-Type": "text/plain"}
        )
        assert (status, problem["way_out"]) == (415, "send Content-Type: application/json")


async def test_the_table_is_whole_or_what_changed_since() -> None:
    async with serving() as manager:
        await with_pools(manager)
        entry = {"start": LAST, "end": None, "owner": None, "number": 1, "since": 1}
        status, table = await manager.get("/v1/pools/docs/table")
        assert status == 200
        assert table["entries"] == [entry]
        assert table["snapshot"]
        assert table["lsn"] >= 3
        status, changes = await manager.get(f"/v1/pools/docs/table?since={table['lsn']}")
        assert (status, changes["snapshot"], changes["entries"]) == (200, False, [])


async def test_changes_since_an_lsn_of_another_journal_are_the_whole_table() -> None:
    """P22: LSNs compare within one journal only."""
    async with serving() as manager:
        await with_pools(manager)
        _, table = await manager.get("/v1/pools/docs/table")
        where = f"/v1/pools/docs/table?since={table['lsn']}&journal="
        _, same = await manager.get(where + str(table["journal"]))
        _, other = await manager.get(where + "1")
        assert (same["snapshot"], other["snapshot"]) == (False, True)
        status, problem = await manager.get(where + "x")
        assert (status, problem["error"]) == (400, "journal=x is not the number of a journal")


@pytest.mark.parametrize("budget", ["-1", "x", "", "9" * 400, "9" * 5000])
async def test_what_is_no_budget_is_a_bad_request(budget: str) -> None:
    async with serving() as manager:
        status, problem = await manager.get(f"/v1/clusters/c/moves?budget={budget}")
        assert status == 400
        assert problem["error"].startswith(f"budget={budget[:50]}")
        assert len(problem["error"]) < 300


@pytest.mark.parametrize("since", ["-1", "x", "", "1.5", "%D9%A3", "1" * 20])
async def test_what_is_no_lsn_is_a_bad_request(since: str) -> None:
    async with serving() as manager:
        await with_pools(manager)
        status, problem = await manager.get(f"/v1/pools/docs/table?since={since}")
        assert (status, problem["error"]) == (400, f"since={unquote(since)} is not an LSN")


@pytest.mark.parametrize(
    ("target", "key"),
    [
        ("docs/locate?key=h%C3%B6", {"hex": "68c3b6", "text": "hö"}),
        ("docs/locate?hex=00ff", {"hex": "00ff", "text": None}),
        ("docs/locate?key=", {"hex": "", "text": ""}),
        ("rooms/locate?key=room-42", {"hex": hashed_key("room-42").hex(), "text": None}),
        ("rooms/locate?hex=00ff", {"hex": hashed_key(b"\0\xff").hex(), "text": None}),
        ("rooms/locate?int=513", {"hex": "0000000000000201", "text": None}),
    ],
)
async def test_a_key_is_located_as_its_pool_reads_it(target: str, key: object) -> None:
    async with serving() as manager:
        await with_pools(manager)
        status, location = await manager.get(f"/v1/pools/{target}")
        assert (status, location["key"]) == (200, key)
        assert (location["start"]["hex"], location["end"], location["owner"]) == ("", None, None)


@pytest.mark.parametrize(
    ("target", "complaint"),
    [
        ("docs/locate", "give a key once; here it is given 0 times"),
        ("docs/locate?key=a&hex=00", "give a key once; here it is given 2 times"),
        ("docs/locate?int=5", "a key of an ordered pool is a str or bytes, not 5"),
        ("rooms/locate?int=x", "int=x is not a number"),
        ("rooms/locate?int=-1", "not -1"),
        ("rooms/locate?hex=0", "'0' is not hexadecimal"),
    ],
)
async def test_what_is_no_key_is_a_bad_request(target: str, complaint: str) -> None:
    async with serving() as manager:
        await with_pools(manager)
        status, problem = await manager.get(f"/v1/pools/{target}")
        assert status == 400
        assert complaint in problem["error"]


@pytest.mark.parametrize("what", ["table", "owners", "locate?key=a"])
async def test_a_pool_that_is_not_there_is_not_found(what: str) -> None:
    async with serving() as manager:
        await with_pools(manager)
        status, problem = await manager.get(f"/v1/pools/nope/{what}")
        assert status == 404
        assert problem["error"] == "there is no pool 'nope'; there are: docs, rooms"


async def test_a_pool_may_be_called_what_a_path_cannot() -> None:
    async with serving(preset="default") as manager:  # it leads on, however busy the machine is
        status, _ = await manager.post("/v1/pools", {"name": "a/b?c%", "kind": "ordered"})
        assert status == 201
        status, owners = await manager.get("/v1/pools/a%2Fb%3Fc%25/owners")
        assert (status, owners) == (200, {"pool": "a/b?c%", "owners": []})


async def test_a_path_or_a_method_that_is_not_there_says_what_is() -> None:
    async with serving() as manager:
        status, problem = await manager.get("/v1/pool")
        assert (status, problem["way_out"]) == (404, "GET / lists what there is")
        status, index = await manager.get("/")
        assert status == 200
        assert "/v1/pools/{pool}/table" in index["paths"]
        async with manager.session.delete(f"{manager.service.url}/v1/pools") as response:
            assert (response.status, response.headers["Allow"]) == (405, "GET,HEAD,POST")


@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("/v1/pools", 16 << 20),
        ("/v1/pools/rooms/drain", 1 << 20),
        ("/v1/clusters/chat/add", 1 << 20),
        ("/v1/sign-in", 4 << 10),
    ],
)
async def test_a_body_that_is_too_large_is_refused(path: str, most: int) -> None:
    async with serving() as manager:
        status, problem = await manager.post(path, b" " * (most + 2))
        assert (status, problem["way_out"][:24]) == (413, "send less in one request")
        assert str(most) in problem["way_out"]
        assert (await manager.post(path, b" " * (most // 2)))[0] == 400


async def test_the_status_has_the_journal_the_leadership_and_what_happened() -> None:
    async with serving() as manager:
        await with_pools(manager)
        status, answer = await manager.get("/v1/status")
        assert status == 200
        assert answer["url"] == answer["leader"] == manager.service.url
        assert (answer["role"], answer["proven"], answer["leadership"]) == ("leading", True, 1)
        assert (answer["journal"], answer["preset"]) == ("memory", "default")
        assert answer["grants_in_seconds"] == 0
        assert answer["events"]["pool created"] == 2


async def test_a_leader_that_waits_says_how_long() -> None:
    async with serving(first_start=False, preset="paper") as manager:
        status, answer = await manager.get("/v1/status")
        assert status == 200
        assert 60 < answer["grants_in_seconds"] <= 65


async def test_a_standby_names_the_leader_and_is_ready() -> None:
    journal = MemoryJournal(LEASE_RECORDS)
    async with serving(journal) as leader, serving(journal) as standby:
        await Events(leader.service.observer).wait_for("leading")
        answer = await ready(standby)
        assert answer == {"status": "standing by"}
        status, problem = await standby.get("/v1/pools")
        assert (status, problem["leader"]) == (503, leader.service.url)
        status, own = await standby.get("/v1/status")
        assert (status, own["role"], own["leader"]) == (200, "standing by", leader.service.url)


async def ready(manager: Serving) -> object:
    """Wait until /readyz says yes, and return its answer; each question gives the
    manager a turn.
    """
    while (answer := await manager.get("/readyz"))[0] != 200:
        assert answer[0] == 503
    return answer[1]


class Unreachable(MemoryJournal[AnyRecord, State]):
    async def read_seat(self) -> NoReturn:
        raise JournalError("this disk is asleep")


async def test_a_manager_that_cannot_read_its_journal_is_alive_and_not_ready() -> None:
    async with serving(Unreachable(LEASE_RECORDS)) as manager:
        assert await manager.get("/healthz") == (200, {"status": "up"})
        assert (await manager.get("/readyz"))[0] == 503
        status, problem = await manager.get("/v1/pools")
        assert (status, problem["error"]) == (503, "no manager leads yet")


async def test_a_question_that_fails_is_refused_and_the_manager_leads_on() -> None:
    """Otherwise a client that asks again and again would end each manager in turn."""
    async with serving() as manager:
        await manager.post("/v1/pools", {"name": "rooms", "kind": "hashed"})
        with Breaking(2):
            status, problem = await manager.get("/v1/pools/rooms/owners")
        assert (status, problem["error"]) == (500, "the question failed: ListOwners: Broken: ")
        assert manager.counted("question failed") == 1
        assert (await manager.get("/v1/pools/rooms/owners"))[0] == 200
        assert (await manager.get("/v1/status"))[1]["role"] == "leading"


async def test_a_command_that_fails_is_refused_and_the_manager_leads_again() -> None:
    """The manager forgets what the command had half done; asked once more, it does the command."""
    async with serving() as manager:
        events = Events(manager.service.observer)
        await manager.post("/v1/pools", {"name": "rooms", "kind": "hashed"})
        with Breaking(9, answering=COMMANDED):
            status, problem = await manager.post("/v1/pools", {"name": "halls", "kind": "hashed"})
        assert (status, problem["error"]) == (500, "the command failed: CreatePool: Broken: ")
        assert manager.counted("started over: what was asked broke off") == 1
        await events.wait_for("leading", times=2)
        assert (await manager.get("/v1/status"))[1]["leadership"] == 2
        pools = (await manager.get("/v1/pools"))[1]["pools"]
        assert [each["name"] for each in pools] == ["rooms"]
        assert (await manager.post("/v1/pools", {"name": "halls", "kind": "hashed"}))[0] == 201
