"""Stories in which a release raises the version of its class: each fails if a rule is left out."""

import asyncio
from collections.abc import Callable

from tenure import NewerState
from tests.unit.entities.releases import NewRoom, VersionedRoom
from tests.unit.entities.stage import on_stage


async def _an_older_process_gets_newer_state() -> None:
    async with on_stage(1, kind=VersionedRoom) as stage:
        (new,) = stage.members
        await stage.done(new["a"].say("one"))
        old = await stage.enter(kind=NewRoom)
        await stage.move("a", old)
        try:
            await stage.done(old["a"].say("two"))
        except NewerState:
            pass
        else:
            raise AssertionError("it was read as if it were an older one")
        await stage.move("a", new)
        assert await stage.done(old["a"].say("two")) == 2


async def _a_newer_process_leaves_another_and_older_ones() -> None:
    async with on_stage(1, kind=NewRoom) as stage:
        news = [await stage.enter(kind=VersionedRoom) for _ in range(2)]
        keys = [f"key-{i}" for i in range(16)]
        await stage.move(keys[0], news[0])  # so the first is not idle when it leaves
        await stage.leave(stage.members[0])
        await stage.until(lambda: all(map(stage.owner_of, keys)))
        for key in keys:
            await stage.done(news[0][key].say("one"))
        old = await stage.enter(kind=NewRoom)
        await stage.leave(news[0])
        await stage.until(lambda: all(map(stage.owner_of, keys)))
        at_old = [key for key in keys if stage.owner_of(key) is old]
        assert at_old == [], "an older process was given what a newer one has kept"


async def _a_state_of_two_versions_ago() -> None:
    async with on_stage(1, kind=NewRoom) as stage:
        await stage.done(stage.members[0]["a"].say("one word"))
        after = await stage.enter(kind=VersionedRoom)
        await stage.move("a", after)
        found = await stage.done(after["a"].everything())
        assert (found.total, found.words) == (11, 2)


def older_process_gets_newer_state() -> None:
    """It refuses it, and touches nothing."""
    asyncio.run(_an_older_process_gets_newer_state())


def newer_process_leaves() -> None:
    """Its keys go to the other one that can read them."""
    asyncio.run(_a_newer_process_leaves_another_and_older_ones())


def state_of_two_versions_ago() -> None:
    """All upgrades run, one after another, on the fields' names of today."""
    asyncio.run(_a_state_of_two_versions_ago())


STORIES: dict[str, Callable[[], object]] = {
    "newer-state-read": older_process_gets_newer_state,
    "behind-get-all": newer_process_leaves,
    "one-upgrade-only": state_of_two_versions_ago,
    "names-of-before": state_of_two_versions_ago,
}
