"""Exports and imports of entities over every kind of store: what goes out comes in as it was."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest

from tenure import Alarm, Entities, Entity, Mapping, Owner, Series, reading, was
from tenure.entities.arriving_state import arriving, arriving_state
from tenure.entities.entity_export import EntityExport
from tenure.entities.entity_import import EntityImport
from tenure.entities.entity_turn import MOST_ALARMS
from tenure.entities.plain_values import from_json, same_spelling, to_json
from tenure.errors import NewerState, StoreAway
from tenure.manager import entity_files
from tenure.manager.http_errors import HttpRefusal
from tenure.protocol.entity.copying import CopiedLines, CopyEntity, PutDone, PutEntity
from tenure.protocol.entity.export_lines import EntityDigest, read_entity_lines
from tenure.protocol.entity.inspection import NotSeen
from tests.unit.cli.test_commands import to
from tests.unit.cli.test_entities_files import ended, kept_in, lines_of
from tests.unit.entities.stage import on_stage
from tests.unit.entities.test_inspecting import OF_ROOMS, SECRET, Room, Rooms, guarded, rooms
from tests.unit.manager.serving import serving

pytestmark = pytest.mark.asyncio
MANY = 1200
PADDING = "x" * 300


class Note(msgspec.Struct):
    text: str
    data: bytes = b""


class Things(msgspec.Struct):
    count: int = 0
    data: bytes = b"\x00\xff"
    at: datetime = datetime(2026, 11, 28, 20, 12, 56, 123456, tzinfo=UTC)
    by_number: Annotated[dict[int, float], was("numbers")] = msgspec.field(
        default_factory=lambda: {1: 0.1}
    )
    odd: dict[str, float] = msgspec.field(default_factory=lambda: {"$": float("inf")})


class Hall(Entity[Things], version=2):
    notes = Series(Note)
    seats = Mapping(int, str)

    async def fill(self, notes: int) -> None:
        self.state.count += notes
        for i in range(notes):
            self.notes.add(Note(f"note {i} {PADDING}", bytes([i % 256])))
            if i % 500 == 499:
                await self.commit()
        self.notes.remove(1)
        self.seats.put(-3, "ann")
        self.seats.put(40, "bob")
        self.set_alarm("close", self.now() + 3600.5)

    async def clear(self) -> None:
        self.forget()

    @reading
    async def value(self) -> int:
        return self.state.count

    @reading
    async def everything(self) -> tuple[Things, int, dict[int, str], list[str]]:
        last = await self.notes.page(newest=True, first=3)
        seats = await self.seats.page()
        return self.state, self.notes.last, dict(seats), [each.text for each in last]

    async def on_alarm(self, alarm: Alarm) -> None:
        pass


async def exported(it: Rooms, file: Path) -> list[dict[str, Any]]:
    await to(it.manager, "entities", "export", "rooms", str(file))
    return kept_in(file)


async def test_what_goes_out_of_any_store_comes_in_as_it_was(
    any_store_url: str, tmp_path: Path
) -> None:
    """Of a hall that does not fit into one message, and of one that does."""
    file, again = tmp_path / "rooms.jsonl", tmp_path / "again.jsonl"
    async with rooms(any_store_url, kind=Hall) as it:
        halls: Any = it.rooms
        await halls["large"].fill(MANY)
        await halls["small"].fill(5)
        before = await halls["large"].everything()
        out = await exported(it, file)
        assert sum(each["line"] == "item" for each in out) == MANY - 1 + 4 + 2 * 2
        for key in ("large", "small"):
            await to(it.manager, "entities", "import", "rooms", str(file))
            await halls[key].fill(1)
            await to(it.manager, "entities", "import", "rooms", str(file), code=2)
            await to(it.manager, "entities", "import", "rooms", str(file), "--replace")
        assert await exported(it, again) == out
        assert await halls["large"].everything() == before
        assert (await it.get("entity?key=small"))[1]["alarms_set"] == 1
    async with rooms(kind=Hall) as it:
        halls = it.rooms
        await to(it.manager, "entities", "import", "rooms", str(file))
        assert await halls["large"].everything() == before
        assert sorted(map(str, await exported(it, again))) == sorted(map(str, out))


async def test_a_call_that_is_repeated_after_an_import_is_done_once(tmp_path: Path) -> None:
    """Its client got no answer before the pool moved to other machines, and asks there again."""
    file = tmp_path / "rooms.jsonl"
    async with rooms(f"sqlite:{tmp_path / 'one'}") as it:
        assert await it.rooms.once("order 7")["attic"].say("hello") == 1
        await exported(it, file)
    async with rooms(f"sqlite:{tmp_path / 'other'}") as it:
        await to(it.manager, "entities", "import", "rooms", str(file))
        assert await it.rooms.once("order 7")["attic"].say("hello") == 1
        assert await it.rooms["attic"].value() == 1
        assert await it.rooms.once("order 8")["attic"].say("hello") == 2


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        1.0,
        -0.0,
        float("nan"),
        float("-inf"),
        2**63,
        -(2**63),
        'ü\x00"\\',
        b"\xff",
        datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC),
        msgspec.msgpack.Ext(5, b"abc"),
        {"$bytes": "no bytes"},
        {"": 1, "a": {"b": [1, {"$": None}]}},
        {1: "one", None: "none", b"k": [], "x": 1.5},
        {(1, 2): "a place"},
        ["x" * 1000] * 1000,
    ],
)
async def test_every_value_comes_back_as_it_was(value: object) -> None:
    data = msgspec.msgpack.encode(value)
    written = to_json(data)
    assert from_json(written) == data
    assert same_spelling(written) == written


@pytest.mark.parametrize(
    "text",
    [
        '{"$bytes": 7}',
        '{"$bytes": "*"}',
        '{"$bytes": "", "x": 1}',
        '{"$what": 1}',
        '{"$float": "many"}',
        '{"$time": "soon"}',
        '{"$map": [[1]]}',
        '{"$map": [[{}, 1]]}',
        '{"$ext": [1]}',
        '{"$msgpack": "wQ=="}',
        '{"$msgpack": 1}',
        "123456789012345678901234567890",
        "[" * 100_000,
        "nonsense",
    ],
)
async def test_what_is_no_value_is_refused(text: str) -> None:
    with pytest.raises((ValueError, RecursionError)):
        from_json(msgspec.Raw(text.encode()))


# --- two owners, and time ---


async def taken(taking: EntityImport, asked: PutEntity) -> PutDone:
    """What has become of it, which is not refused."""
    done = await taking.put(asked)
    assert isinstance(done, PutDone), done
    return done


def put_of(lines: bytes, **more: Any) -> PutEntity:  # noqa: ANN401
    digest = EntityDigest()
    for each in read_entity_lines(lines):
        digest.add(each)
    known: dict[str, Any] = {"key": "attic", "kind": "Room", "part": 0, "is_last": True}
    return PutEntity(**known | {"digest": digest.value(), "lines": lines} | more)


ATTIC = b'{"line":"entity","key":"attic","state":{"count":3}}\n'


async def test_a_question_that_comes_too_late_does_nothing() -> None:
    """The entity was imported and forgotten meanwhile."""
    now = 0
    async with rooms() as it:
        taking = EntityImport(it.rooms.station.host, lambda: now)  # type: ignore[arg-type]
        stale = await taken(taking, put_of(ATTIC))
        assert stale.outcome == "stale"
        assert await it.rooms["attic"].value() == 0
        now = 4_900_000_000
        done = await taken(taking, put_of(ATTIC, permit=stale.permit))
        assert done.outcome == "put"
        assert await it.rooms["attic"].value() == 3
        now += 5_000_000_000
        late = await taken(taking, put_of(ATTIC, permit=done.permit))
        assert late.outcome == "stale"
        other = EntityImport(it.rooms.station.host, lambda: now)  # type: ignore[arg-type]
        elsewhere = await taken(other, put_of(ATTIC, permit=late.permit))
        assert elsewhere.outcome == "stale"


async def test_a_half_of_an_entity_answers_nobody(store_url: str, tmp_path: Path) -> None:
    """An import was cut after the first part of one; whoever runs it again brings all of it."""
    file = tmp_path / "rooms.jsonl"
    async with rooms(store_url) as it:
        await it.rooms["attic"].say("hello")
        await exported(it, file)
    lines = lines_of(file)
    [first] = [n for n, each in enumerate(lines) if each.get("of", each.get("name")) == "history"]
    item = lines[first + 1]
    lines[first]["last"] = MANY
    more = [{**item, "at": n} for n in range(2, MANY + 1)]
    lines[first + 2 : first + 2] = more
    whole = [each for each in lines[:-1] if each["line"] != "answer"]
    whole = json.loads(json.dumps(whole).replace('"attic"', '"cellar"'))
    file.write_bytes(ended(whole))
    async with rooms(store_url) as it:
        station = it.rooms.station
        taking = EntityImport(station.host, station._settings.environment.clock)
        part = b"\n".join(json.dumps(each).encode() for each in whole[2:900])
        stale = await taken(taking, put_of(part, key="cellar", is_last=False))
        permit = stale.permit
        done = await taken(taking, put_of(part, key="cellar", is_last=False, permit=permit))
        assert (done.outcome, done.parts) == ("part", 1)
        with pytest.raises(NewerState, match="is being imported"):
            await it.rooms["cellar"].say("hello")
        await to(it.manager, "entities", "export", "rooms", str(tmp_path / "no"), code=1)
        assert not (tmp_path / "no").exists()
        lost = await taken(
            taking, put_of(ATTIC.replace(b"attic", b"cellar"), key="cellar", part=2, permit=permit)
        )
        assert (lost.outcome, lost.parts) == ("part", 0)
    async with rooms(store_url) as it:
        with pytest.raises(NewerState, match="is being imported"):
            await it.rooms["cellar"].value()
        await to(it.manager, "entities", "import", "rooms", str(file))
        assert await it.rooms["cellar"].say("hello") == 2
        assert (await it.get("entity?key=cellar"))[1]["collections"][0]["has_more"]
        assert await it.rooms["attic"].value() == 1


def lines_of_hall(*lines: dict[str, Any]) -> bytes:
    head = {"line": "entity", "key": "attic"}
    return b"".join(json.dumps(each).encode() + b"\n" for each in (head, *lines))


async def test_what_cannot_be_kept_takes_the_place_of_nothing() -> None:
    """Without a store an entity is too large from a mebibyte on. The one that is there stays."""
    notes = [
        {"line": "item", "at": n, "added": 1.0, "value": {"text": "x" * 60_000}}
        for n in range(1, 21)
    ]
    large = lines_of_hall({"line": "collection", "name": "notes", "last": 20}, *notes)
    async with rooms(kind=Hall) as it:
        halls: Any = it.rooms
        await halls["attic"].fill(2)
        before = await halls["attic"].everything()
        taking = EntityImport(it.rooms.station.host, it.rooms.station._settings.environment.clock)
        permit = (await taken(taking, put_of(large, kind="Hall"))).permit
        other = await taken(taking, put_of(large, kind="Hall", permit=permit))
        assert other.outcome == "differs"
        refused = await taking.put(put_of(large, kind="Hall", permit=permit, replaces=other.there))
        assert isinstance(refused, NotSeen)
        assert "without a store" in refused.why
        assert await halls["attic"].everything() == before


@pytest.mark.parametrize("is_stored", [False, True])
async def test_what_was_there_comes_back_if_a_later_part_is_refused(
    is_stored: bool, tmp_path: Path
) -> None:
    """Collections in a store are gone by then, so nothing is there; the state alone comes back."""
    note = {"line": "item", "at": 1, "added": 1.0, "value": {"text": "new"}}
    part = lines_of_hall({"line": "collection", "name": "notes", "last": 1}, note)
    part = part.partition(b"\n")[2]  # the line of the entity comes with the last part
    unfit = lines_of_hall({"line": "collection", "name": "notes", "last": 1}, note | {"value": 3})
    of_all: dict[str, Any] = {"kind": "Hall", "digest": b"digest"}
    async with rooms(f"sqlite:{tmp_path / 'halls'}" if is_stored else None, kind=Hall) as it:
        halls: Any = it.rooms
        await halls["attic"].fill(2)
        before = await halls["attic"].everything()
        taking = EntityImport(it.rooms.station.host, it.rooms.station._settings.environment.clock)
        of_all["permit"] = (await taken(taking, put_of(part, is_last=False, **of_all))).permit
        there = (await taken(taking, put_of(part, is_last=False, **of_all))).there
        first = put_of(part, is_last=False, replaces=there, **of_all)
        for _ in range(2):  # whoever begins it again finds what was there before the first time
            taking._tasks.clear()
            assert (await taken(taking, first)).parts == 1
        with pytest.raises(NewerState, match="is being imported"):
            await halls["attic"].everything()
        late = put_of(unfit, part=2, **of_all)
        assert isinstance(await taking.put(late), NotSeen)
        with pytest.raises(NewerState, match="is being imported"):
            await halls["attic"].everything()
        refused = await taking.put(put_of(unfit, part=1, **of_all))
        assert isinstance(refused, NotSeen)
        if not is_stored:
            assert refused.why.startswith("what was there is there again; the lines cannot be kept")
            assert await halls["attic"].everything() == before
            assert (await it.get("entity?key=attic"))[1]["alarms"]
        else:
            assert refused.why.startswith("nothing is there now; the lines cannot be kept")
            assert await halls["attic"].everything() == (Things(), 0, {}, [])


async def test_what_was_there_before_a_key_moved_does_not_come_back() -> None:
    """What another owner has kept of it meanwhile would be forgotten, and nobody told."""
    collection = {"line": "collection", "name": "notes", "last": 1}
    note = {"line": "item", "at": 1, "added": 1.0, "value": {"text": "new"}}
    part = lines_of_hall(collection, note).partition(b"\n")[2]
    unfit = lines_of_hall(collection, note | {"value": 3})
    async with on_stage(2, kind=Hall) as stage:
        one, two = stage.members
        key = stage.key_of(one)
        await stage.done(one[key].fill(2))
        taking = EntityImport(one.station.host, one.station._settings.environment.clock)
        of_all: dict[str, Any] = {"kind": "Hall", "digest": b"digest", "key": key}
        of_all["permit"] = (await taken(taking, put_of(part, is_last=False, **of_all))).permit
        there = (await taken(taking, put_of(part, is_last=False, **of_all))).there
        await taken(taking, put_of(part, is_last=False, replaces=there, **of_all))
        await stage.move(key, to=two)
        await stage.move(key, to=one)
        refused = await stage.done(taking.put(put_of(unfit, part=1, **of_all)))
        assert isinstance(refused, NotSeen)
        assert refused.why.startswith("nothing is there now; the lines cannot be kept")


async def test_an_entity_has_no_more_alarms_than_it_could_set() -> None:
    alarms = [{"line": "alarm", "name": f"{n:04}", "due": 4e9 + n} for n in range(MOST_ALARMS + 1)]
    async with rooms(kind=Hall) as it:
        taking = EntityImport(it.rooms.station.host, it.rooms.station._settings.environment.clock)
        refused = await taking.put(put_of(lines_of_hall(*alarms), kind="Hall"))
        assert isinstance(refused, NotSeen)
        assert "alarms at most" in refused.why
        fit = await taking.put(put_of(lines_of_hall(*alarms[1:]), kind="Hall"))
        assert isinstance(fit, PutDone)


async def test_an_arriving_state_is_no_other() -> None:
    state = arriving_state(b"digest", 3)
    found = arriving(state)
    assert found is not None
    assert (found.digest, found.parts) == (b"digest", 3)
    for other in (b"", msgspec.msgpack.encode({"tenure:version": 2}), b"tenure:version"):
        assert arriving(other) is None


async def test_an_entity_is_copied_as_one_commit_has_left_it(store_url: str) -> None:
    """It does not fit into one message, so it keeps its turn until the last part was asked for."""
    async with rooms(store_url, kind=Hall) as it:
        halls: Any = it.rooms
        await halls["large"].fill(2 * MANY)
        copying = EntityExport(it.rooms.station.host)
        parts = [await copying.lines(CopyEntity(key="large"))]
        change = asyncio.create_task(halls["large"].fill(1))
        while parts[-1].copy:  # type: ignore[union-attr]
            assert not change.done()
            parts.append(await copying.lines(CopyEntity(key="large", copy=parts[-1].copy)))  # type: ignore[union-attr]
        await change
        assert len(parts) > 1
        lines = b"".join(each.lines for each in parts if isinstance(each, CopiedLines))
        assert b'"count":2400' in lines
        assert b'"last":2400' in lines
        gone = await copying.lines(CopyEntity(key="large", copy=parts[0].copy))  # type: ignore[union-attr]
        assert isinstance(gone, NotSeen)
        assert gone.may_repeat


async def test_an_export_waits_until_the_only_process_has_told_what_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, waits, pause = tmp_path / "rooms.jsonl", asyncio.Event(), entity_files._pause

    async def paused(refused: HttpRefusal, gives_up: float) -> None:
        waits.set()
        await pause(refused, gives_up)

    monkeypatch.setattr(entity_files, "_pause", paused)
    async with serving(preset="default") as manager:
        url = manager.service.url
        async with Owner(url, pool="rooms", address="http://a:1", labels=OF_ROOMS) as silent:
            await silent.ready()
            export = asyncio.ensure_future(to(manager, "entities", "export", "rooms", str(file)))
            waiting = asyncio.ensure_future(waits.wait())
            await asyncio.wait((export, waiting), return_when=asyncio.FIRST_COMPLETED)
            assert waiting.done()
            async with Entities(Room, "rooms", url) as entered:
                await silent.close()
                await entered["attic"].say("hello")
                await export
    assert [each["key"] for each in kept_in(file) if each["line"] == "entity"] == ["attic"]


async def test_an_export_leaves_asleep_what_sleeps(store_url: str, tmp_path: Path) -> None:
    async with rooms(store_url) as it:
        await it.rooms["attic"].say("hello")
    async with rooms(store_url) as it:
        begun, there = Room.begun, len(it.rooms.station.host)
        await exported(it, tmp_path / "rooms.jsonl")
        await to(it.manager, "entities", "import", "rooms", str(tmp_path / "rooms.jsonl"))
        assert (Room.begun, len(it.rooms.station.host)) == (begun, there)


async def test_no_process_reads_what_was_there_before_an_import(
    store_url: str, tmp_path: Path
) -> None:
    """All have copies of the entities that it replaces."""
    file = tmp_path / "rooms.jsonl"
    keys = [f"room-{i}" for i in range(6)]
    async with rooms(store_url, reads="everywhere") as it:
        url = it.manager.service.url
        others = Entities(Room, "rooms", url, store=store_url, reads="everywhere")
        async with others:
            for key in keys:
                await it.rooms[key].say("first")
            await exported(it, file)
            for key in keys:
                await others[key].say("second")
                assert [await each[key].value() for each in (it.rooms, others)] == [2, 2]
            await to(it.manager, "entities", "import", "rooms", str(file), "--replace")
            for key in keys:
                assert [await each[key].value() for each in (it.rooms, others)] == [1, 1]


async def test_a_store_that_is_away_in_the_middle_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "rooms.jsonl"
    async with rooms(f"sqlite:{tmp_path / 'rooms'}") as it:
        await it.rooms["attic"].say("hello")
        store = it.rooms.station.host.gate.store
        assert store is not None
        page, away = store.page, [True, True]

        async def away_once(*asked: Any) -> Any:  # noqa: ANN401
            if away and away.pop():
                raise StoreAway("on purpose")
            return await page(*asked)

        monkeypatch.setattr(store, "page", away_once)
        await exported(it, file)
        assert away == []
        away.append(True)
        await to(it.manager, "entities", "import", "rooms", str(file))
        assert away == []


# --- who may ---


@pytest.mark.parametrize("allows", [False, True])
async def test_an_export_is_for_who_sees_contents_and_an_import_for_admin(
    tmp_path: Path, allows: bool
) -> None:
    sees = {"admin", "viewer"} if allows else {"admin"}
    async with guarded(tmp_path, viewers_see_contents=allows) as (it, shown):
        for who, header in shown.items():
            url = f"{it.manager.service.url}/v1/pools/rooms/entities"
            body = {"kind": "Room", "entities": []}
            asked = {"Authorization": header}
            async with it.manager.session.get(f"{url}/export", headers=asked) as response:
                assert response.status == (200 if who in sees else 403), who
                assert (SECRET in await response.text()) is (who in sees), who
            async with it.manager.session.post(
                f"{url}/import", json=body, headers=asked
            ) as response:
                assert response.status == (200 if who == "admin" else 403), who
