"""A manager that asks for tokens, over real sockets: which clients get in, how far, and for how
long.
"""

import asyncio
import io
import json
import re
from pathlib import Path

import aiohttp
import pytest
from aiohttp import WSCloseCode, WSMsgType
from yarl import URL

from tenure.dashboard.pages import add_pages
from tenure.errors import ConfigurationError
from tenure.manager.access.gate import STRANGERS_BYTES
from tenure.manager.access.roles import AccessRole
from tenure.manager.access.sign_ins import COOKIE, KEY_HEADER
from tenure.manager.access.tokens import NewToken, TokenFile, new_token
from tenure.protocol.lease.messages import Attested, Hello, Process, Sync
from tenure.protocol.topology.limits import FAMILIES
from tenure.wire.lease import encode
from tenure.wire.versions import NEWEST, SUBPROTOCOLS
from tests.unit.manager.serving import Serving, serving

pytestmark = pytest.mark.asyncio
OWNER, LOOKUP, VIEWER, ADMIN, NODE, STORE = AccessRole


class Keys:
    """A file of tokens with one of each role."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / "tokens"
        self.of = {
            role: new_token(role, "rooms" if role.is_of_a_pool else "") for role in AccessRole
        }
        for token in self.of.values():
            TokenFile(self.file).add(token.entry)

    def shown(self, role: AccessRole) -> dict[str, str]:
        return bearer(self.of[role])


def bearer(token: NewToken) -> dict[str, str]:
    return {"Authorization": f"Bearer {token.text}"}


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path)


async def opened(
    manager: Serving, path: str, headers: dict[str, str]
) -> aiohttp.ClientWebSocketResponse:
    return await manager.session.ws_connect(
        manager.service.url + path, protocols=SUBPROTOCOLS, headers=headers
    )


async def test_without_a_token_only_health_is_answered(keys: Keys) -> None:
    async with serving(tokens=keys.file) as manager:
        for path in ("/healthz", "/readyz"):
            assert (await manager.get(path))[0] == 200
        for path in ("/", "/v1/status", "/v1/pools", "/v1/owner", "/v1/lookup", "/nowhere"):
            status, problem = await manager.get(path)
            assert status == 401
            assert "wants a token" in problem["error"]
            assert "TENURE_TOKEN" in problem["way_out"]
        status, problem = await manager.get("/v1/status", Authorization="Bearer tenure_no_such")
        assert (status, problem["error"]) == (
            401,
            "this manager wants a token, and the one shown does not count",
        )
        assert manager.counted("request not allowed") == 7


async def test_each_role_reads_and_changes_what_it_may(keys: Keys) -> None:
    pool = {"name": "rooms", "kind": "hashed"}
    async with serving(tokens=keys.file) as manager:
        for role in (OWNER, LOOKUP, VIEWER):
            status, problem = await manager.post("/v1/pools", pool, **keys.shown(role))
            assert status == 403
            assert f"{role}" in problem["error"]
        assert (await manager.post("/v1/pools", pool, **keys.shown(ADMIN)))[0] == 201
        for role in (OWNER, LOOKUP, VIEWER, ADMIN):
            assert (await manager.get("/v1/pools/rooms/table", **keys.shown(role)))[0] == 200
            status = (await manager.get("/v1/status", **keys.shown(role)))[0]
            assert status == (403 if role.is_of_a_pool else 200)
            other = (await manager.get("/v1/pools/carts/table", **keys.shown(role)))[0]
            assert other == (403 if role.is_of_a_pool else 404)


async def test_a_node_reads_clusters_makes_tables_and_changes_nothing_else(keys: Keys) -> None:
    async with serving(tokens=keys.file) as manager:
        node = keys.shown(NODE)
        for path, status in (("/v1/pools", 403), ("/v1/clusters/chat/ring", 404)):
            assert (await manager.get(path, **node))[0] == status
        table = {"name": "t", "table": ["ordered", "str", "", {}]}
        assert (await manager.post("/v1/clusters/chat/tables", table, **node))[0] == 404
        assert (await manager.post("/v1/clusters/chat/take-back", {}, **node))[0] == 403
        viewer = keys.shown(VIEWER)
        assert (await manager.get("/v1/clusters", **viewer))[0] == 200
        assert (await manager.post("/v1/clusters/chat/tables", table, **viewer))[0] == 403
        for cluster in ("tables", "chat%2Ftables"):  # whatever name makes the path end so
            delete = URL(f"{manager.service.url}/v1/clusters/{cluster}", encoded=True)
            async with manager.session.delete(delete, headers=node) as response:
                assert response.status == 403
        await opened(manager, "/v1/node", node)


async def test_an_owner_of_another_pool_is_told_so_and_goes(keys: Keys) -> None:
    async with serving(tokens=keys.file) as manager:
        socket = await opened(manager, "/v1/owner", keys.shown(OWNER))
        await socket.send_bytes(encode(Hello(pool="rooms", token=7), NEWEST))
        assert (await socket.receive()).type is WSMsgType.BINARY
        await socket.send_bytes(encode(Hello(pool="carts", token=8), NEWEST))
        last = await socket.receive()
        assert last.type is WSMsgType.CLOSE
        assert last.data == WSCloseCode.POLICY_VIOLATION
        assert "is not for 'carts'" in (last.extra or "")


async def test_a_death_in_another_pool_is_not_taken_from_it(keys: Keys) -> None:
    process = Process(boot_id="b", pid_namespace=1, time_namespace=1, pid=1, start_time=1)
    attested = Attested(
        pool="carts",
        incarnation=1,
        process=process,
        witness=process,
        owner_nonce=1,
        manager_nonce=1,
    )
    async with serving(tokens=keys.file) as manager:
        socket = await opened(manager, "/v1/owner", keys.shown(OWNER))
        await socket.send_bytes(encode(attested, NEWEST))
        await socket.send_bytes(encode(Hello(pool="rooms", token=7), NEWEST))
        assert (await socket.receive()).type is WSMsgType.BINARY  # it goes on
        assert manager.counted("late attestation") == 0


@pytest.mark.parametrize(
    ("role", "path"),
    [
        (LOOKUP, "/v1/owner"),
        (VIEWER, "/v1/owner"),
        (VIEWER, "/v1/lookup"),
        (NODE, "/v1/owner"),
        (NODE, "/v1/lookup"),
        (OWNER, "/v1/node"),
        (VIEWER, "/v1/node"),
    ],
)
async def test_a_role_cannot_come_as_what_it_is_not(
    keys: Keys, role: AccessRole, path: str
) -> None:
    async with serving(tokens=keys.file) as manager:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await opened(manager, path, keys.shown(role))
        assert refused.value.status == 403


async def test_who_came_with_a_token_that_is_taken_away_must_go(keys: Keys) -> None:
    async with serving(tokens=keys.file) as manager:
        going = await opened(manager, "/v1/owner", keys.shown(OWNER))
        staying = await opened(manager, "/v1/lookup", keys.shown(LOOKUP))
        TokenFile(keys.file).remove(keys.of[OWNER].entry.id)
        last = await going.receive()
        assert (last.data, last.extra) == (
            WSCloseCode.POLICY_VIOLATION,
            "its token is no longer valid",
        )
        assert not staying.closed
        assert (await manager.get("/v1/pools/rooms/table", **keys.shown(OWNER)))[0] == 401


async def test_a_second_token_of_a_role_counts_at_once_beside_the_first(keys: Keys) -> None:
    async with serving(tokens=keys.file) as manager:
        second = new_token(ADMIN)
        TokenFile(keys.file).add(second.entry)
        for shown in (bearer(second), keys.shown(ADMIN)):
            assert (await manager.get("/v1/status", **shown))[0] == 200


async def test_who_follows_with_a_token_that_is_taken_away_is_told_no_more(keys: Keys) -> None:
    async with serving(tokens=keys.file) as manager:
        url = manager.service.url + "/v1/live"
        async with (
            manager.session.get(url, headers=keys.shown(VIEWER)) as gone,
            manager.session.get(url, headers=keys.shown(ADMIN)) as stays,
        ):
            assert (gone.status, stays.status) == (200, 200)
            TokenFile(keys.file).remove(keys.of[VIEWER].entry.id)
            told = b"".join([chunk async for chunk in gone.content.iter_any()])
            assert b"event: pulse" in told, "it ended, and until then it was told"
            await manager.post("/v1/pools", {"name": "a", "kind": "hashed"}, **keys.shown(ADMIN))
            async for line in stays.content:
                if b"pool created" in line:
                    break


async def test_a_manager_does_not_start_with_tokens_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"the file of tokens .* cannot be read"):
        async with serving(tokens=tmp_path / "none"):
            pass


# --- what strangers send ---


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/v1/sign-in"), ("GET", "/healthz"), ("GET", "/dashboard/")]
)
@pytest.mark.parametrize("is_chunked", [False, True])
async def test_who_shows_no_token_cannot_fill_the_memory(
    keys: Keys, method: str, path: str, is_chunked: bool
) -> None:
    async with serving(tokens=keys.file) as manager:
        body = io.BytesIO(b" " * (STRANGERS_BYTES + 1))
        url = manager.service.url + path
        async with manager.session.request(
            method, url, data=body, chunked=is_chunked or None
        ) as response:
            assert response.status == 413
            problem = await response.json()
        assert f"{STRANGERS_BYTES} bytes" in problem["error"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://\udcff"},
        {"Authorization": "Bearer tenure_{id}_\udcff"},
    ],
)
async def test_headers_that_are_no_text_are_refused(keys: Keys, headers: dict[str, str]) -> None:
    which = keys.of[VIEWER].entry.id
    async with serving(tokens=keys.file) as manager:
        host, _, port = manager.service.url.removeprefix("http://").rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        ((name, value),) = headers.items()
        said = f"{name}: {value.format(id=which)}".encode(errors="surrogateescape")
        writer.write(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n" + said + b"\r\n\r\n")
        answer = await reader.readuntil(b"\r\n")
        assert answer == b"HTTP/1.1 400 Bad Request\r\n"
        writer.close()


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
async def test_a_sign_in_that_is_no_text_is_refused(keys: Keys, encoding: str) -> None:
    async with serving(tokens=keys.file) as manager:
        body, coding = b'{"token":"\xff"}', {"Content-Encoding": encoding}
        status, problem = await manager.post("/v1/sign-in", body, **coding)
        assert status == 400
        assert problem["way_out"]


async def test_a_sign_in_that_fails_is_noted(keys: Keys) -> None:
    async with serving(tokens=keys.file) as manager:
        assert (await manager.post("/v1/sign-in", {"token": "tenure_no_such"}))[0] == 401
        assert manager.counted("request not allowed") == 1


# --- what is not there ---


async def test_only_who_reads_of_all_pools_is_told_their_names(keys: Keys) -> None:
    """A role in one pool that is not there gets no list of the others, however it asks."""
    async with serving(tokens=keys.file) as manager:
        pool = {"name": "secrets", "kind": "hashed"}
        assert (await manager.post("/v1/pools", pool, **keys.shown(ADMIN)))[0] == 201
        for role in (OWNER, LOOKUP, VIEWER, ADMIN):
            for what in ("table", "owners", "locate?key=a", "plan", "why?key=a"):
                status, problem = await manager.get(f"/v1/pools/rooms/{what}", **keys.shown(role))
                there = "; there are: secrets" if role in (VIEWER, ADMIN) else ""
                assert (status, problem["error"]) == (404, f"there is no pool 'rooms'{there}")
        lookup = await opened(manager, "/v1/lookup", keys.shown(LOOKUP))
        sync = Sync(pool="rooms", sequence=1, journal=0, leadership=0, lsn=0, nonce=9)
        await lookup.send_bytes(encode(sync, NEWEST))
        said = await lookup.receive_bytes()
        assert b"there is no pool" in said
        assert b"secrets" not in said


# --- the audit ---


def lines(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


async def test_every_change_is_written_down_before_and_after(keys: Keys, tmp_path: Path) -> None:
    log = tmp_path / "audit"
    async with serving(tokens=keys.file, audit_log=log) as manager:
        await manager.post("/v1/pools", {"name": "a", "kind": "hashed"}, **keys.shown(ADMIN))
        await manager.post("/v1/pools/none/freeze", {}, **keys.shown(ADMIN))
        await manager.get("/v1/status", **keys.shown(ADMIN))
        await manager.post("/v1/pools", b"\xff\n{}", **keys.shown(ADMIN))
        await manager.post("/v1/nothing", {}, **keys.shown(ADMIN))
    asked = lines(log)
    admin = keys.of[ADMIN].entry.id
    assert [(each["number"], each["path"], each.get("status")) for each in asked] == [
        (1, "/v1/pools", None),
        (1, "/v1/pools", 201),
        (2, "/v1/pools/none/freeze", None),
        (2, "/v1/pools/none/freeze", 404),
        (3, "/v1/pools", None),
        (3, "/v1/pools", 400),
    ]
    assert {(each["who"], each["role"], each["origin"]) for each in asked} == {
        (admin, "admin", "127.0.0.1")
    }
    assert asked[0]["body"] == '{"name": "a", "kind": "hashed"}'


async def test_no_way_to_change_something_is_left_out_of_the_audit(
    keys: Keys, tmp_path: Path
) -> None:
    """This concerns everything but reading in the document of the API, whatever its outcome."""
    log = tmp_path / "audit"
    async with serving(tokens=keys.file, audit_log=log) as manager:
        admin = keys.shown(ADMIN)
        _, document = await manager.get("/v1/openapi.json", **admin)
        ways = [
            (method.upper(), re.sub(r"{\w+}", "a", path))
            for path, methods in document["paths"].items()
            for method in methods
            if method != "get" and path != "/v1/sign-in"
        ]
        for method, path in ways:
            url, headers = manager.service.url + path, {**admin, "Content-Type": "application/json"}
            async with manager.session.request(method, url, data=b"{}", headers=headers) as answer:
                assert answer.status != 500, (method, path)
    assert len(ways) > 15
    begun = [(each["method"], each["path"]) for each in lines(log) if "status" not in each]
    ended = [(each["method"], each["path"]) for each in lines(log) if "status" in each]
    assert begun == ended == ways


async def test_no_token_is_written_down_nor_logged(
    keys: Keys, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """This holds even for a peer that signs in, whose token is in the body, and for a token that is
    not valid.
    """
    log, admin = tmp_path / "audit", keys.of[ADMIN]
    wrong = admin.text + "x"
    with caplog.at_level("DEBUG"):
        async with serving(tokens=keys.file, audit_log=log) as manager:
            url = manager.service.url
            body = {"token": admin.text}
            async with manager.session.post(f"{url}/v1/sign-in", json=body) as answer:
                cookie, key = answer.cookies[COOKIE].value, (await answer.json())["key"]
            assert (await manager.post("/v1/sign-in", {"token": wrong}))[0] == 401
            assert (await manager.get("/v1/status", Authorization=f"Bearer {wrong}"))[0] == 401
            page = {"Cookie": f"{COOKIE}={cookie}", KEY_HEADER: key, "Origin": url}
            pool = {"name": "a", "kind": "hashed"}
            assert (await manager.post("/v1/pools", pool, **page))[0] == 201
            async with manager.session.delete(f"{url}/v1/sign-in", headers=page) as answer:
                assert answer.status == 200
    assert [each["path"] for each in lines(log)] == ["/v1/pools", "/v1/pools"]
    written = caplog.text + log.read_text()
    assert admin.entry.id in written, "who it was is"
    for secret in (admin.text.split("_", 2)[2], admin.entry.sha256, cookie, key):
        assert secret not in written


async def test_an_audit_log_is_read_by_its_owner_only(tmp_path: Path) -> None:
    """Bodies of changes have names of hosts and keys in them."""
    log = tmp_path / "audit"
    async with serving(audit_log=log):
        assert log.stat().st_mode & 0o777 == 0o600


async def test_what_a_stranger_asks_for_is_not_audited(keys: Keys, tmp_path: Path) -> None:
    """The audit is for changes, by roles that were proven: otherwise anybody writes it full."""
    log = tmp_path / "audit"
    async with serving(None, add_pages, tokens=keys.file, audit_log=log) as manager:
        for path in ("/", "/healthz", "/readyz", "/dashboard", "/dashboard/x", "/v1/pools"):
            for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "QUERY"):
                html = {"Accept": "text/html"}
                async with manager.session.request(
                    method, manager.service.url + path, data=b"x" * 8000, headers=html
                ) as answer:
                    assert answer.status == 401, (method, path)
    assert lines(log) == []


async def test_without_tokens_no_role_is_claimed_in_the_audit(tmp_path: Path) -> None:
    log = tmp_path / "audit"
    async with serving(audit_log=log) as manager:
        await manager.post("/v1/pools", {"name": "a", "kind": "hashed"})
    assert {(each["who"], each["role"]) for each in lines(log)} == {("nobody", "")}


async def test_changes_that_come_too_fast_are_refused_before_they_are_written_down(
    keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.manager.access.audit.CHANGES_AT_ONCE", 3)
    monkeypatch.setattr(
        "tenure.manager.access.audit.CHANGES_A_SECOND", 1e-3
    )  # none comes in meanwhile
    log = tmp_path / "audit"
    async with serving(tokens=keys.file, audit_log=log) as manager:
        asked = [
            await manager.post("/v1/pools/none/freeze", {}, **keys.shown(ADMIN)) for _ in range(5)
        ]
        assert [status for status, _ in asked] == [404, 404, 404, 429, 429]
        assert "nothing was done" in asked[-1][1]["error"]
        assert manager.counted("too many messages") == 2
    assert len(lines(log)) == 6


async def test_what_cannot_be_written_down_is_not_done() -> None:
    async with serving(audit_log=Path("/dev/full")) as manager:
        status, problem = await manager.post("/v1/pools", {"name": "a", "kind": "hashed"})
        assert status == 503
        assert "so nothing was done: No space left" in problem["error"]
        assert (await manager.get("/v1/pools"))[1] == {"pools": []}


async def test_an_audit_log_that_cannot_be_opened_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"audit log .* written: Is a directory"):
        async with serving(audit_log=tmp_path):
            pass


async def test_a_node_makes_tables_for_programs_whatever_it_says(keys: Keys) -> None:
    """So the quarter of them that operators have is left."""
    async with serving(tokens=keys.file) as manager:
        admin, node = keys.shown(ADMIN), keys.shown(NODE)
        made = {"name": "chat", "placement": "1"}
        assert (await manager.post("/v1/clusters", made, **admin))[0] == 201
        families = {f"f{number}": ["str"] for number in range(FAMILIES)}
        table = {"name": "t", "table": ["ordered", "str", "", families]}
        said = {**table, "by_operator": True}
        assert (await manager.post("/v1/clusters/chat/tables", said, **node))[0] == 400
        status, why = await manager.post("/v1/clusters/chat/tables", table, **node)
        assert status == 409, why
        assert (await manager.post("/v1/clusters/chat/tables", table, **admin))[0] == 200
