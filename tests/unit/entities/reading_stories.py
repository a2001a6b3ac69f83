"""Stories of entities that are read everywhere: each fails if a rule is left out."""

import asyncio
from collections.abc import Callable
from tempfile import TemporaryDirectory

from tests.unit.entities.reading import everywhere, shared


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


STORIES: dict[str, Callable[[], object]] = {
    "earlier-owners-gave-no-copies": copies_outlast_a_move,
}
"""With the rules of copies, the stories come out well; with one left out, they do not."""
