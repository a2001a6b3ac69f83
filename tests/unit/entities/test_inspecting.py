"""What operators see of entities, through a real manager: keys, and what is kept under them."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
import pytest

from tenure import Alarm, Entities, Entity, Mapping, Owner, Series, reading
from tenure.entities.shown_values import state_in_json
from tenure.errors import NewerState, StoreFailed
from tenure.manager.access.roles import AccessRole
from tenure.manager.access.tokens import TokenFile, new_token
from tenure.manager.inspections import AT_ONCE_OF_A_POOL, Inspections
from tenure.protocol.entity.envelope import Envelope
from tenure.protocol.entity.inspection import NotSeen, ShowEntity
from tenure.protocol.lease.inspecting import Inspect, Inspected
from tenure.protocol.lease.limits import CLASS_LABEL
from tenure.protocol.lease.messages import Poke
from tenure.transport.peers import ConnectedPeer, Peers
from tenure.wire.lease import decode_to_owner
from tenure.wire.versions import NEWEST
from tests.patience import until
from tests.roles_table import may_ask
from tests.unit.manager.serving import Serving, serving

pytestmark = pytest.mark.asyncio
SECRET = "what nobody else may read"  # noqa: S105  # no password
KEYS = [f"room-{i}" for i in range(30)]
OF_ROOMS = {CLASS_LABEL: "Room"}


class Lines(msgspec.Struct):
    count: int = 0
    about: str = ""


class Room(Entity[Lines]):
    history = Series(str)
    members = Mapping(str, int)
    begun = 0

    async def on_activate(self) -> None:
        type(self).begun += 1

    async def say(self, text: str) -> int:
        self.state.count += 1
        self.state.about = text
        self.history.add(text)
        self.members.put("ann", self.state.count)
        return self.state.count

    async def wake_me(self) -> None:
        self.set_alarm(SECRET, self.now() + 3600)

    async def stay(self) -> None:
        await asyncio.Event().wait()

    @reading
    async def value(self) -> int:
        return self.state.count

    async def on_alarm(self, alarm: Alarm) -> None:
        pass


class Rooms(NamedTuple):
    manager: Serving
    rooms: Entities[Room]

    async def get(self, path: str, **headers: str) -> tuple[int, Any]:
        return await self.manager.get(f"/v1/pools/rooms/{path}", **headers)


@asynccontextmanager
async def rooms(store: str | None = None, **options: Any) -> AsyncIterator[Rooms]:  # noqa: ANN401
    """A manager, and a process that has told it that its entities can be looked into."""
    Room.begun = 0
    headers = options.pop("headers", {})
    kind = options.pop("kind", Room)
    async with (
        serving(preset="default", **options.pop("settings", {})) as manager,
        Entities(kind, "rooms", manager.service.url, store=store, **options) as entered,
    ):
        await entered["room-0"].value()
        entered.station.owner._engine.hear(manager.service.url, Poke())  # it tells when it asks

        async def is_known() -> bool:
            return (await manager.get("/v1/pools/rooms/entities", **headers))[0] == 200

        await until(is_known)
        yield Rooms(manager, entered)


async def every_key(it: Rooms, query: str = "", most: int = 7) -> list[str]:
    found: list[str] = []
    after = ""
    while True:
        status, page = await it.get(f"entities?most={most}{query}{after}")
        assert status == 200, page
        assert len(page["keys"]) <= most
        found += [each["key"] for each in page["keys"]]
        if page["next"] is None:
            return found
        after = f"&after={page['next']}"


@pytest.fixture(params=["no store", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str | None:
    return f"sqlite:{tmp_path / 'rooms'}" if request.param == "sqlite" else None


# --- keys ---


async def test_every_key_is_listed_once_whatever_the_page(store: str | None) -> None:
    async with rooms(store) as it:
        await asyncio.gather(*(it.rooms[key].say("hello") for key in KEYS))
        for most in (1, 7, 1000):
            assert sorted(await every_key(it, most=most)) == sorted(KEYS)
        begun = sorted(key for key in KEYS if key.startswith("room-1"))
        assert sorted(await every_key(it, "&prefix=room-1", 3)) == begun
        assert await every_key(it, "&prefix=hall") == []


async def test_keys_of_which_nothing_is_kept_are_not_listed(store: str | None) -> None:
    async with rooms(store) as it:
        await it.rooms["asked for"].value()
        assert (await it.get("entity?key=looked%20at"))[1]["kept"] is False
        await it.rooms["kept"].say("hello")
        assert await every_key(it) == ["kept"]


async def test_what_sleeps_in_a_store_is_listed_and_shown_and_sleeps_on(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'rooms'}"
    async with rooms(store) as it:
        await asyncio.gather(*(it.rooms[key].say("hello") for key in KEYS))
        before = (await it.get("entity?key=room-7"))[1]
        assert before["awake"]
    async with rooms(store) as it:  # a new journal, and a new process
        assert sorted(await every_key(it)) == sorted(KEYS)
        begun = Room.begun
        for _ in range(2):
            status, seen = await it.get("entity?key=room-7")
            assert status == 200
            assert not seen["awake"]
            assert seen["state"] == before["state"] == {"count": 1, "about": "hello"}
        assert Room.begun == begun, "looking runs nothing of the class"
        assert await it.rooms["room-7"].say("again") == 2, "looking has left it as it was"


async def test_names_of_any_kind_come_back_as_they_are(store: str | None) -> None:
    odd = ["", " ", "a/b", "a b&c=d", "\x00\x1b[31m", "<b>&amp;", "ö", "../..", "x" * 1024]
    async with rooms(store) as it:
        for key in odd:
            await it.rooms[key].say(key[:10])
        await it.rooms[(1 << 64) - 1].say("number")
        await it.rooms["y" * 6000].say("too long for a message")
        listed = await every_key(it, most=3)
        assert sorted(listed) == sorted([*odd, str((1 << 64) - 1)])
        for key in odd:
            status, seen = await it.get(f"entity?key={quote(key, safe='')}")
            assert (status, seen["state"]["about"]) == (200, key[:10])
        assert (await it.get(f"entity?int={(1 << 64) - 1}"))[1]["state"]["about"] == "number"
        assert (await it.get("entity?hex=00ff"))[0] == 400


async def test_a_token_of_another_list_is_refused(store: str | None) -> None:
    async with (
        rooms(store) as it,
        Entities(Room, "halls", it.manager.service.url) as halls,
    ):
        for key in KEYS[:3]:
            await it.rooms[key].say("hello")
            await halls[key].say("hello")
        after = (await it.get("entities?most=1"))[1]["next"]
        for _ in range(2):
            await it.rooms["room-1"].say("again")
        items = (await it.get("entity?key=room-1&collection=history&most=1"))[1]["next"]
        assert items is not None
        for path in (
            f"halls/entities?after={after}",
            f"rooms/entities?after={items}",
            f"rooms/entity?key=room-2&collection=history&after={items}",
            f"rooms/entity?key=room-1&collection=members&after={items}",
            f"rooms/entities?after={after[:-3]}",
            "rooms/entities?after=%C3%B6",
            "rooms/entities?after=" + "A" * 8050,
            "rooms/entities?most=0",
            "rooms/entities?most=1001",
        ):
            status, problem = await it.manager.get(f"/v1/pools/{path}")
            assert status == 400, path
            assert SECRET not in problem["error"]


async def test_a_large_pool_is_listed_in_bounded_pages() -> None:
    async with rooms() as it:
        envelopes = it.rooms.station.host.gate.envelopes
        lease = it.rooms.station.owner.check("x")
        assert lease is not None
        for i in range(20_000):
            envelopes[f"key-{i}"] = Envelope(lease.number, lease.journal, b"\x80")
        found = await every_key(it, most=1000)
        assert len(found) == 20_000
        assert len(set(found)) == 20_000
        assert len(await every_key(it, "&prefix=key-19999")) == 1


# --- one entity ---


async def test_collections_alarms_and_sockets_are_counted_and_paged(store: str | None) -> None:
    async with rooms(store) as it:
        for i in range(5):
            await it.rooms["room-1"].say(f"line {i}")
        await it.rooms["room-1"].wake_me()
        seen = (await it.get("entity?key=room-1"))[1]
        sizes = {each["name"]: each["items"] for each in seen["collections"]}
        assert sizes == {"history": 5, "members": 1}
        assert [each["name"] for each in seen["alarms"]] == [SECRET]
        assert seen["address"] == it.rooms.station.owner.address
        lines, after = [], ""
        while True:
            path = f"entity?key=room-1&collection=history&most=2{after}"
            page = (await it.get(path))[1]
            lines += [(each["at"], each["value"]) for each in page["items"]]
            if page["next"] is None:
                break
            after = f"&after={page['next']}"
        assert lines == [(str(i + 1), f"line {i}") for i in range(5)]
        members = (await it.get("entity?key=room-1&collection=members"))[1]["items"]
        assert [(each["at"], each["value"]) for each in members] == [("ann", 5)]


async def test_an_entity_whose_turn_never_ends_is_shown(store: str | None) -> None:
    async with rooms(store) as it:
        await it.rooms["room-1"].say("before")
        stays = [asyncio.ensure_future(it.rooms["room-1"].stay()) for _ in range(3)]
        await until(lambda: len(it.rooms.station.host._live["room-1"].line) == 3)
        seen = (await it.get("entity?key=room-1"))[1]
        assert (seen["turn"], seen["waiting"]) == ("stay", 2)
        assert seen["state"]["about"] == "before"
        for each in stays:
            each.cancel()


async def test_a_state_that_the_class_cannot_read_is_shown(tmp_path: Path) -> None:
    class Newer(Entity[Lines], name="Room", version=3):
        async def say(self, text: str) -> None:
            self.state.about = text

    store = f"sqlite:{tmp_path / 'rooms'}"
    async with (
        serving(preset="default") as manager,
        Entities(Newer, "rooms", manager.service.url, store=store) as newer,
    ):
        await newer["room-1"].say("of version 3")
    async with rooms(store) as it:
        with pytest.raises(NewerState):
            await it.rooms["room-1"].value()
        seen = (await it.get("entity?key=room-1"))[1]
        assert (seen["version"], seen["state"]["about"]) == (3, "of version 3")


async def test_a_pool_without_entities_says_so() -> None:
    async with (
        serving(preset="default") as manager,
        Owner(manager.service.url, pool="plain", address="http://a:1") as owner,
    ):
        await owner.ready()
        for path in ("entities", "entity?key=a"):
            status, problem = await manager.get(f"/v1/pools/plain/{path}")
            assert status == 409
            assert "runs no entities" in problem["error"]
        assert (await manager.get("/v1/pools/none/entities"))[0] == 404


async def test_an_owner_that_has_just_joined_is_asked_again() -> None:
    """It tells of its entities after it has joined: an export was cut in between."""
    async with (
        rooms() as it,
        Owner(it.manager.service.url, pool="rooms", address="http://new:1", labels=OF_ROOMS) as new,
    ):
        theirs = await until(lambda: [key for key in KEYS if new.check(key)])
        status, problem = await it.get(f"entity?key={theirs[0]}")
    assert status == 503
    assert "has not said yet which entities it runs" in problem["error"]


async def test_of_a_pool_whose_only_owner_has_just_joined_questions_may_be_asked_again() -> None:
    async with (
        serving(preset="default") as manager,
        Owner(manager.service.url, pool="rooms", address="http://new:1", labels=OF_ROOMS) as owner,
    ):
        await owner.ready()
        for path in ("entities", "entity?key=a"):
            status, problem = await manager.get(f"/v1/pools/rooms/{path}")
            assert status == 503
            assert "has not said yet which entities it runs" in problem["error"]


async def test_a_key_that_nobody_owns_cannot_be_shown() -> None:
    async with serving() as manager:
        await manager.post("/v1/pools", {"name": "rooms", "kind": "hashed"})
        status, problem = await manager.get("/v1/pools/rooms/entity?key=a")
        assert (status, problem["error"]) == (409, "nobody owns the key 'a' now")


# --- who sees what ---


@asynccontextmanager
async def guarded(place: Path, **settings: Any) -> AsyncIterator[tuple[Rooms, dict[str, str]]]:  # noqa: ANN401
    """Rooms whose manager asks for tokens, and the header of each role."""
    tokens, shown = TokenFile(place / "tokens"), {}
    for who, role, pool in [
        *((str(each), each, "rooms" if each.is_of_a_pool else "") for each in AccessRole),
        ("other", AccessRole.OWNER, "halls"),
    ]:
        token = new_token(role, pool)
        tokens.add(token.entry)
        shown[who] = token.text
    settings["tokens"] = place / "tokens"
    headers = {"Authorization": f"Bearer {shown['admin']}"}
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TENURE_TOKEN", shown["owner"])
        async with rooms(settings=settings, headers=headers) as it:
            await it.rooms["room-1"].say(SECRET)
            await it.rooms["room-1"].wake_me()
            yield it, {who: f"Bearer {text}" for who, text in shown.items()}


PATHS = ("entities", "entity?key=room-1", "entity?key=room-1&collection=history")


@pytest.mark.parametrize(
    ("allows", "sees"),
    [(False, {"admin"}), (True, {"admin", "viewer"})],
    ids=["as it is", "with --viewers-see-contents"],
)
async def test_keys_are_for_readers_of_the_pool_and_contents_for_few(
    tmp_path: Path,
    allows: bool,
    sees: set[str],  # a parameter
) -> None:
    async with guarded(tmp_path, viewers_see_contents=allows) as (it, shown):
        table = may_ask("manager")
        for who, header in shown.items():
            role = f"{who} owner" if who == "other" else who
            for path in PATHS:
                status, found = await it.get(path, Authorization=header)
                if role not in table["read a pool"]:
                    assert status == 403, (who, path)
                    continue
                if who in sees or "collection" not in path:
                    assert status == 200, (who, path, found)
                else:
                    assert status == 403, (who, path)
                if who not in sees:
                    assert SECRET not in json.dumps(found), (who, path)
                elif path != "entities":
                    assert SECRET in json.dumps(found), (who, path)
                if status == 200:
                    assert "room-1" in json.dumps(found)
        assert (await it.get("entities"))[0] == 401


async def test_whoever_sees_no_contents_is_told_of_no_error_that_quotes_them(
    tmp_path: Path,
) -> None:
    async with guarded(tmp_path) as (it, shown):
        it.rooms.station.host._live.clear()

        async def load(*_: object) -> Envelope:
            raise StoreFailed(f"the stored state cannot be read: {SECRET}")

        it.rooms.station.host.gate.load = load  # type: ignore[method-assign,assignment]
        for who in ("viewer", "lookup"):
            status, problem = await it.get("entity?key=room-1", Authorization=shown[who])
            assert status == 409
            assert problem["error"] == "StoreFailed"
        problem = (await it.get("entity?key=room-1", Authorization=shown["admin"]))[1]
        assert SECRET in problem["error"]


# --- who lies ---


async def test_only_the_owner_that_was_asked_answers() -> None:
    peers, answer = Peers(), NotSeen(why="a", way_out="b")
    sent: list[bytes] = []
    transport = SimpleNamespace(
        is_closing=lambda: False, get_write_buffer_size=lambda: 0, write=sent.append
    )
    connection = peers.add(ConnectedPeer(transport, NEWEST))  # type: ignore[arg-type]  # as far as it is used
    desk = Inspections(peers)
    asking = asyncio.ensure_future(
        desk.ask(connection, "rooms", ShowEntity(key="a", contents=True))
    )
    await until(lambda: sent)
    asked = decode_to_owner(memoryview(sent[0])[2:], NEWEST)
    assert isinstance(asked, Inspect)
    said = Inspected(pool="rooms", ticket=asked.ticket, answer=answer)
    for where, lie in (
        (connection + 1, said),
        (connection, Inspected(pool="halls", ticket=asked.ticket, answer=answer)),
        (connection, Inspected(pool="rooms", ticket=asked.ticket ^ 1, answer=answer)),
    ):
        desk.answered(where, lie)
        await asyncio.sleep(0)
        assert not asking.done()
    desk.answered(connection, said)
    desk.answered(connection, said)
    assert await asking == answer
    desk.answered(connection, said)


async def test_silent_owners_of_one_pool_hold_up_no_question_about_another() -> None:
    peers, sent = Peers(), list[bytes]()
    transport = SimpleNamespace(
        is_closing=lambda: False, get_write_buffer_size=lambda: 0, write=sent.append
    )
    connection = peers.add(ConnectedPeer(transport, NEWEST))  # type: ignore[arg-type]  # as above
    desk = Inspections(peers)
    question = ShowEntity(key="a", contents=True)
    silent = [asyncio.ensure_future(desk.ask(connection, "liars", question)) for _ in range(40)]
    other = asyncio.ensure_future(desk.ask(connection, "rooms", question))
    try:
        await until(lambda: any(b"rooms" in each for each in sent))
        assert sum(b"liars" in each for each in sent) == AT_ONCE_OF_A_POOL
    finally:
        for each in (*silent, other):
            each.cancel()
        await asyncio.gather(*silent, other, return_exceptions=True)


async def test_an_owner_answers_the_leader_that_it_follows_and_nobody_else() -> None:
    async with rooms() as it:
        engine = it.rooms.station.owner._engine
        asked: list[Inspect] = []
        engine.inspected = lambda each, _: asked.append(each)
        question = ShowEntity(key="a", contents=True)
        engine.hear("http://evil:1", Inspect(pool="rooms", ticket=1, question=question))
        engine.hear(it.manager.service.url, Inspect(pool="halls", ticket=2, question=question))
        assert asked == []
        ours = Inspect(pool="rooms", ticket=3, question=question)
        engine.hear(it.manager.service.url, ours)
        assert asked == [ours]


async def test_an_owner_that_makes_up_json_is_refused_and_named(tmp_path: Path) -> None:
    async with rooms() as it:
        await it.rooms["room-1"].say("hello")
        real = state_in_json

        def lie(_: bytes) -> tuple[str, int]:
            return '{"a": 1} , "owner": "somebody else"', 1

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("tenure.entities.inspector.state_in_json", lie)
            status, problem = await it.get("entity?key=room-1")
            assert status == 409
            assert it.rooms.name in problem["error"]
        assert (await it.get("entity?key=room-1"))[0] == 200
        assert real(b"") == ("", 0)


async def test_an_owner_that_is_silent_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tenure.manager.inspections.ANSWER_SECONDS", 0.1)
    async with rooms() as it:
        it.rooms.station.owner._engine.inspected = lambda *_: None
        status, problem = await it.get("entity?key=room-1")
        assert status == 503
        assert "not answered in time" in problem["error"]
