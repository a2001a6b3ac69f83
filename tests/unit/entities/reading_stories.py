"""Stories of entities that are read everywhere: each fails if a rule is left out."""

import asyncio
from collections.abc import Callable
from tempfile import TemporaryDirectory

from tests.unit.entities.reading import everywhere, shared, waits


async def _copies_outlast_a_move(store: str) -> None:
    async with everywhere(3, store=store) as stage:
        owner, elsewhere, key = await shared(stage)
        third, said = stage.members[2], "old"
        for number, to in enumerate((third, owner, third)):
            await stage.move(key, to)
            # What it has is still current: the next owner says so without loading anything.
            assert await stage.done(elsewhere[key].last()) == said
            said = str(number)
            await stage.done(to[key].say(said))
            assert await stage.done(elsewhere[key].last()) == said


def copies_outlast_a_move() -> None:
    """A key moves, and the process that reads it may go on; the next owner's change comes first."""
    with TemporaryDirectory() as place:
        asyncio.run(_copies_outlast_a_move(f"sqlite:{place}/store"))


async def _copies_follow_demand() -> None:
    async with everywhere() as stage:
        owner, elsewhere, key = await shared(stage)
        waited = 0
        for number in range(40):
            waited += waits(owner, key)
            await stage.done(owner[key].say(str(number)))
            if number in {10, 11, 30}:
                assert await stage.done(elsewhere[key].last()) == str(number)
        assert waited == 4  # after the first copy, and after three more


def copies_follow_demand() -> None:
    """However often a key is changed, changes wait no more often than somebody asked for a copy."""
    asyncio.run(_copies_follow_demand())


STORIES: dict[str, Callable[[], object]] = {
    "earlier-owners-gave-no-copies": copies_outlast_a_move,
    "copies-thought-there-for-ever": copies_follow_demand,
}
"""With the rules of copies, the stories come out well; with one left out, they do not."""
