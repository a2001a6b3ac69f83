"""Collections of entities: in memory, in each store, in a turn, in pages, and where they move."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pydantic
import pytest

from tenure import (
    ConfigurationError,
    Entities,
    Entity,
    Mapping,
    Series,
    UsageError,
    ValueTypeError,
    reading,
)
from tests.unit.entities.stage import Stage, on_stage
from tests.unit.manager.serving import serving

pytestmark = pytest.mark.asyncio


class Message(msgspec.Struct):
    who: str
    text: str


class Member(pydantic.BaseModel):
    since: int
    tags: list[str] = []


class Lines(msgspec.Struct):
    count: int = 0


class Page(msgspec.Struct):
    texts: list[str]
    numbers: list[int]
    next: str | None


class Room(Entity[Lines]):
    history = Series(Message)
    latest = Series(str, most=10)
    members = Mapping(str, Member)
    places = Mapping(int, str)

    async def say(self, *, count: int = 1, fail: bool = False, text: str = "text") -> list[int]:
        numbers = []
        for _ in range(count):
            self.state.count += 1
            numbers.append(self.history.add(Message("ann", f"{text} {self.state.count}")))
            self.latest.add(f"{text} {self.state.count}")
        if fail:
            raise LookupError("on purpose")
        return numbers

    async def join(self, names: list[str], since: int = 1, *, fail: bool = False) -> None:
        for name in names:
            self.members.put(name, Member(since=since, tags=[name]))
        if fail:
            raise LookupError("on purpose")

    async def leave(self, name: str, number: int) -> None:
        self.members.remove(name)
        self.history.remove(number)

    async def half(self) -> None:
        self.state.count += 1
        self.history.add(Message("bob", "kept"))
        await self.commit()
        self.state.count += 1
        self.history.add(Message("bob", "not kept"))
        self.members.put("bob", Member(since=2))
        raise LookupError("on purpose")

    async def twice(self) -> tuple[list[str], list[str], list[int]]:
        """What a turn sees of its own changes, before and after a commit."""
        self.history.add(Message("ann", "one"))
        self.members.put("ann", Member(since=7))
        self.members.remove("bob")
        before = [each.text for each in await self.history.page(3, newest=True)]
        await self.commit()
        self.history.add(Message("ann", "two"))
        self.members.put("ann", Member(since=8))
        after = [each.text for each in await self.history.page(3, newest=True)]
        found = await self.members.get("ann")
        return before, after, [found.since if found else 0, len(await self.members.page())]

    async def place(self, numbers: list[int]) -> None:
        for each in numbers:
            self.places.put(each, f"at {each}")

    async def end(self) -> None:
        self.history.add(Message("ann", "the last"))
        self.forget()

    @reading
    async def page(
        self,
        first: int = 50,
        newest: bool = False,
        after: int | None = None,
        before: int | None = None,
        next: str | None = None,  # noqa: A002
    ) -> Page:
        page = await self.history.page(first, newest=newest, after=after, before=before, next=next)
        return Page([each.text for each in page], page.numbers, page.next)

    @reading
    async def all(self) -> tuple[int, list[str], list[str], list[str]]:
        history = await self.history.page(1000)
        members = await self.members.page(1000, reverse=True)
        latest = await self.latest.page(1000)
        return self.state.count, [each.text for each in history], [*members], [*latest]

    @reading
    async def at(self, number: int, name: str) -> tuple[Message | None, int | None]:
        member = await self.members.get(name)
        return await self.history.get(number), member.since if member else None

    @reading
    async def numbered(self, reverse: bool, after: int | None, before: int | None) -> list[int]:
        return [*await self.places.page(reverse=reverse, after=after, before=before)]

    @reading
    async def times(self, after: datetime | None, before: datetime | None) -> list[datetime]:
        return (await self.history.page(1000, after=after, before=before)).times

    @reading
    async def add_in_a_reading(self) -> None:
        self.history.add(Message("ann", "no"))


def texts(numbers: range, text: str = "text") -> list[str]:
    return [f"{text} {each}" for each in numbers]


async def use_all(stage: Stage, room: Any) -> None:  # noqa: ANN401  # a stub, as a Room
    done = stage.done
    assert await done(room.say(count=300)) == [*range(1, 301)]
    with pytest.raises(LookupError):
        await done(room.say(count=5, fail=True))
    assert await done(room.say()) == [301]
    with pytest.raises(LookupError):
        await done(room.half())
    await done(room.join(["bob", "ann", "cid"]))
    with pytest.raises(LookupError):
        await done(room.join(["dan", "ann"], 9, fail=True))
    await done(room.leave("cid", 2))
    left = [*texts(range(1, 2)), *texts(range(3, 302)), "kept"]
    assert await done(room.all()) == (302, left, ["bob", "ann"], texts(range(292, 302)))
    assert await done(room.at(302, "ann")) == (Message("bob", "kept"), 1)
    assert await done(room.at(303, "dan")) == (None, None)
    assert await done(room.twice()) == (
        ["one", "kept", "text 301"],
        ["two", "one", "kept"],
        [8, 1],
    )


async def pages_of(stage: Stage, room: Any, **how: Any) -> list[str]:  # noqa: ANN401
    found: list[str] = []
    page = await stage.done(room.page(7, **how))
    while True:
        found += page.texts
        assert len(page.texts) == len(page.numbers) <= 7
        if page.next is None:
            return found
        page = await stage.done(room.page(7, next=page.next))


async def test_without_a_store_collections_move_with_their_key() -> None:
    async with on_stage(2, kind=Room) as stage:
        one, two = stage.members
        key = stage.key_of(one)
        await use_all(stage, two[key])
        before = await stage.done(two[key].all())
        await stage.move(key, two)
        assert await stage.done(one[key].all()) == before
        assert await stage.done(one[key].say(text="moved")) == [305]
        assert await pages_of(stage, two[key]) == [*before[1], "moved 303"]


async def test_with_any_store_collections_survive(any_store_url: str) -> None:
    async with on_stage(1, kind=Room, store=any_store_url) as stage:
        (one,) = stage.members
        await use_all(stage, one["key"])
        before = await stage.done(one["key"].all())
        await stage.crash(one)
        two = await stage.enter(kind=Room, store=any_store_url)
        await stage.spread()
        assert await stage.done(two["key"].all()) == before
        assert await pages_of(stage, two["key"]) == before[1]
        assert await pages_of(stage, two["key"], newest=True) == before[1][::-1]
        await stage.done(two["key"].end())
        assert await stage.done(two["key"].all()) == (0, [], [], [])
        assert await stage.done(two["key"].say()) == [1]
        assert (await stage.done(two["key"].page())).texts == ["text 1"]


async def test_pages_have_bounds_by_number() -> None:
    async with on_stage(kind=Room) as stage:
        room = stage.members[0]["key"]
        await stage.done(room.say(count=30))
        assert await pages_of(stage, room, after=3, before=20) == texts(range(4, 20))
        back = await pages_of(stage, room, after=3, before=20, newest=True)
        assert back == texts(range(4, 20))[::-1]
        assert await pages_of(stage, room, after=30) == []
        assert await pages_of(stage, room, after=9, before=9) == []


async def test_pages_have_bounds_by_time() -> None:
    async with on_stage(kind=Room) as stage:
        member = stage.members[0]
        gate, began = member.station.host.gate, datetime(2030, 1, 1, tzinfo=UTC)
        for i in range(20):
            gate.wall = lambda i=i: (began + timedelta(hours=i // 2)).timestamp()  # type: ignore[misc]
            await stage.done(member["key"].say())
        room = member["key"]
        every = [began + timedelta(hours=i // 2) for i in range(20)]
        assert await stage.done(room.times(None, None)) == every
        for hour in (-1, 0, 3, 9, 10):
            at = began + timedelta(hours=hour)
            assert await stage.done(room.times(at, None)) == [each for each in every if each > at]
            assert await stage.done(room.times(None, at)) == [each for each in every if each < at]
        with pytest.raises(UsageError, match="no time zone"):
            await stage.done(room.times(datetime(2030, 1, 1), None))  # noqa: DTZ001


async def test_names_are_in_order_whatever_they_are() -> None:
    async with on_stage(kind=Room) as stage:
        room = stage.members[0]["key"]
        numbers = [-(1 << 63), -300, -1, 0, 1, 255, 256, (1 << 63) - 1]
        await stage.done(room.place(numbers[::-1]))
        assert await stage.done(room.numbered(False, None, None)) == numbers
        assert await stage.done(room.numbered(True, None, None)) == numbers[::-1]
        assert await stage.done(room.numbered(False, -300, 255)) == numbers[2:5]


async def test_a_page_token_of_another_key_is_refused() -> None:
    async with on_stage(kind=Room) as stage:
        rooms = stage.members[0]
        await stage.done(rooms["one"].say(count=9))
        await stage.done(rooms["two"].say(count=9))
        page = await stage.done(rooms["one"].page(3))
        with pytest.raises(UsageError, match="of another key"):
            await stage.done(rooms["two"].page(3, next=page.next))
        for bad in ("", "x", "ö", "AAAA", page.next * 100):
            with pytest.raises(UsageError, match="next is what a page has"):
                await stage.done(rooms["one"].page(3, next=bad))
        with pytest.raises(UsageError, match="leave out newest="):
            await stage.done(rooms["one"].page(3, newest=True, next=page.next))


async def test_what_cannot_be_kept_is_refused_and_nothing_is() -> None:
    class Bad(Room):
        async def too_large(self) -> None:
            await self.say()
            self.history.add(Message("ann", "x" * (1 << 16)))

        async def of_another_type(self) -> None:
            await self.say()
            self.history.add("text")  # type: ignore[arg-type]

        async def not_encoded(self) -> None:
            await self.say()
            self.latest.add(object())  # type: ignore[arg-type]

        async def too_many(self) -> None:
            await self.say(count=501)

        async def too_much(self) -> None:
            await self.say(count=17, text="x" * 65_000)

        async def named(self, name: Any) -> None:  # noqa: ANN401
            self.places.put(name, "x")

        async def assign(self) -> None:
            self.history = []

    refused: list[tuple[str, type[Exception], str]] = [
        ("too_large", ValueTypeError, "at most 65536 are allowed"),
        ("of_another_type", ValueTypeError, "Room.history, whose items are Message"),
        ("not_encoded", ValueTypeError, "cannot be kept in Room.latest"),
        ("too_many", UsageError, "1001 items"),
        ("too_much", UsageError, "in one commit"),
        ("add_in_a_reading", UsageError, "is marked @reading, and cannot add to a series"),
        ("assign", UsageError, "Room.history is a collection"),
    ]
    async with on_stage(kind=Bad) as stage:
        room: Any = stage.members[0]["key"]
        for method, error, message in refused:
            with pytest.raises(error, match=message):
                await stage.done(getattr(room, method)())
        for name in ("x", 1 << 63, True, None):
            with pytest.raises(UsageError, match="a name is a number"):
                await stage.done(room.named(name))
        for text in ("", "x" * 201):
            with pytest.raises(UsageError, match="a name is a text of 1 to 200 characters"):
                await stage.done(room.join([text]))
        for first in (0, 1001):
            with pytest.raises(UsageError, match="first is a number from 1 to 1000"):
                await stage.done(room.page(first))
        assert await stage.done(room.all()) == (0, [], [], [])


async def test_without_a_store_state_and_collections_have_one_room() -> None:
    async with on_stage(kind=Room) as stage:
        room = stage.members[0]["key"]
        await stage.done(room.say(count=5, text="x" * 60_000))
        with pytest.raises(ValueTypeError, match="give Entities a store="):
            await stage.done(room.say(count=5, text="x" * 60_000))
        assert (await stage.done(room.all()))[0] == 5


async def test_a_reading_sees_one_commit_until_it_waits() -> None:
    class Watched(Room):
        @reading
        async def watch(self) -> list[int]:
            seen = [self.history.last]
            await self.changed()
            seen.append(len(await self.history.page()))
            return seen

        @reading
        async def look_twice(self) -> list[int]:
            first = len(await self.history.page())
            events[0].set()
            await events[1].wait()
            return [first, len(await self.history.page()), self.state.count]

    events = asyncio.Event(), asyncio.Event()
    async with on_stage(kind=Watched) as stage:
        room: Any = stage.members[0]["key"]
        await stage.done(room.say())
        watching = asyncio.ensure_future(room.watch())
        looking = asyncio.ensure_future(room.look_twice())
        await stage.until(events[0].is_set)
        await stage.done(room.say())
        events[1].set()
        assert await stage.done(looking) == [1, 1, 1]
        assert await stage.done(watching) == [1, 2]


async def test_what_cannot_be_a_collection_is_refused_when_the_class_is_made() -> None:
    for make in (
        lambda: Series(lambda: None),
        lambda: Series(Message, most=0),
        lambda: Mapping(bytes, str),  # type: ignore[type-var]
    ):
        with pytest.raises(ConfigurationError):
            make()
    shared = Series(str)
    with pytest.raises((ConfigurationError, RuntimeError)):

        class Twice(Entity[Lines]):
            one = shared
            two = shared


class Log(Entity[Lines]):
    lines = Series(str)

    def add(self, text: str) -> list[str]:
        self.lines.add(text)
        return self.lines.page().wait()

    async def wait_in_the_loop(self) -> list[str]:
        return self.lines.page().wait()


async def test_plain_methods_wait_for_what_they_read() -> None:
    def use(url: str) -> None:
        with Entities(Log, "counters", url) as logs:
            assert [logs["key"].add(each) for each in "ab"] == [["a"], ["a", "b"]]
            with pytest.raises(UsageError, match="await the read instead"):
                asyncio.run(logs["key"].wait_in_the_loop())

    async with serving() as manager:
        await asyncio.to_thread(use, manager.service.url)


def typed(room: Room) -> None:
    """What type checkers know of collections; never called."""

    async def method() -> None:
        number: int = room.history.add(Message("ann", "text"))
        page: list[Message] = await room.history.page(after=number)
        member: Member | None = await room.members.get("ann")
        named: dict[int, str] = await room.places.page(after=3)
        del page, member, named
        room.places.put("name", "x")  # type: ignore[arg-type]
        room.history.add("text")  # type: ignore[arg-type]

    del method
