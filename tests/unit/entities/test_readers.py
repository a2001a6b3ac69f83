"""`rooms.readers()`: a process that owns no entity, and reads them all."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tenure import ClosedError, ConfigurationError, Entities, KeyTypeError, UsageError
from tenure.entities.entity_readers import EntityReaders
from tenure.protocol.lease.answers import Owners
from tenure.protocol.lease.leader.events import ListOwners
from tests.unit.entities.reading import Room, everywhere
from tests.unit.entities.stage import Stage, on_stage

pytestmark = pytest.mark.asyncio


@asynccontextmanager
async def a_frontend(stage: Stage) -> AsyncIterator[EntityReaders[Room]]:
    rooms = Entities(
        Room,
        "counters",
        stage.cluster.urls,
        reads="everywhere",
        _environment=stage.environment(),
    )
    readers = rooms.readers()
    await stage.done(readers.__aenter__())
    try:
        yield readers
    finally:
        await stage.done(readers.__aexit__())


def hits(readers: EntityReaders[Room]) -> int:
    assert readers._place is not None
    return readers._place.copies.hits


async def test_a_frontend_reads_copies_and_calls_owners() -> None:
    async with everywhere() as stage, a_frontend(stage) as readers:
        owner = stage.members[0]
        key = stage.key_of(owner)
        assert await stage.done(readers[key].say("one")) == 1
        for _ in range(10):
            assert await stage.done(readers[key].last()) == "one"
        before = hits(readers)
        assert await readers[key].last() == "one"
        assert hits(readers) == before + 1
        await stage.done(owner[key].say("two"))
        assert await stage.done(readers[key].last()) == "two"
        found = stage.cluster.ask(ListOwners("counters"))
        assert isinstance(found, Owners)
        assert len(found.owners) == 2  # the frontend owns nothing


async def test_a_frontend_asks_the_owner_what_no_copy_has() -> None:
    async with everywhere() as stage, a_frontend(stage) as readers:
        key = stage.key_of(stage.members[0])
        await stage.done(readers[key].say("one"))
        await stage.done(readers[key].alarm())
        assert await stage.done(readers[key].people()) == 1
        assert await stage.done(readers[key].alarmed()) == ["later"]
        with pytest.raises(ValueError, match="two"):
            await stage.done(readers[key].fail("two"))
        assert await stage.done(readers[key].last()) == "one"


async def test_a_frontend_waits_for_changes_and_follows_a_key_that_moves() -> None:
    async with everywhere() as stage, a_frontend(stage) as readers:
        owner, other = stage.members
        key = stage.key_of(owner)
        await stage.done(owner[key].say("one"))
        waiting = asyncio.create_task(readers[key].after("one"))
        await stage.cluster.turn(1)
        await stage.move(key, other)
        await stage.done(other[key].say("two"))
        assert await stage.done(waiting) == "two"


async def test_readers_say_what_they_cannot_do() -> None:
    async with everywhere() as stage, a_frontend(stage) as readers:
        with pytest.raises(UsageError, match="readers take no sockets"):
            await readers["a"].attach(object())
        with pytest.raises(UsageError, match="Room has no method 'shout'"):
            readers["a"].shout()  # type: ignore[attr-defined]
        with pytest.raises(KeyTypeError):
            _ = readers[1.5]  # type: ignore[index]
        with pytest.raises(UsageError, match="entered already"):
            await readers.__aenter__()
    with pytest.raises(ClosedError, match="not entered"):
        await readers["a"].last()


async def test_owners_that_give_no_copies_have_no_readers() -> None:
    with pytest.raises(ConfigurationError, match=r'readers.. is for Entities.*reads="everywhere"'):
        Entities(Room, "counters").readers()


class Passing(Room, name="Room"):
    async def pass_on(self, text: str, to: str) -> None:
        self.state.said.append(text)
        await FRONTEND[0][to].fail(text)


FRONTEND: list[EntityReaders[Room]] = []


async def test_a_call_by_a_turn_commits_first_and_makes_no_circle() -> None:
    """As where a process has entities of one pool, and readers of another."""
    async with on_stage(2, kind=Passing, reads="everywhere") as stage, a_frontend(stage) as readers:
        FRONTEND[:] = [readers]
        one, two = stage.members
        ann, bob = stage.key_of(one), stage.key_of(two)
        with pytest.raises(ValueError, match="hello"):
            await stage.done(one[ann].pass_on("hello", bob))
        assert await stage.done(one[ann].last()) == "hello"
        with pytest.raises(UsageError, match="fail is called in a circle"):
            await stage.done(one[ann].pass_on("again", ann))
