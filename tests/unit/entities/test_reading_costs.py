"""What a change costs whose state nobody reads elsewhere: nothing more than without copies."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.unit.entities.reading import Room
from tests.unit.entities.stage import on_stage

pytestmark = pytest.mark.asyncio


KEEPING = {"copies_given.py", "entity_turn.py", "gate.py", "live_entity.py", "volume_write.py"}
"""What a change passes through. Other code of a process runs now and then, whoever changes what."""


@contextmanager
def calls() -> Iterator[set[str]]:
    """The functions that keep changes, of those that this thread calls meanwhile."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and Path(frame.f_code.co_filename).name in KEEPING:
            found.add(frame.f_code.co_qualname)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(before)


async def called(reads: str, store: str | None) -> set[str]:
    """The functions that a change calls, once nobody has a copy."""
    stored: dict[str, Any] = {} if store is None else {"store": store}
    async with on_stage(1, kind=Room, reads=reads, **stored) as stage:
        [owner] = stage.members
        await stage.done(owner["attic"].say("from here on nobody has a copy"))
        with calls() as found:
            await stage.done(owner["attic"].say("hello"))
    return found


@pytest.mark.parametrize("is_stored", [False, True], ids=["in memory", "stored"])
async def test_a_change_that_nobody_reads_elsewhere_calls_nothing_more(
    is_stored: bool, tmp_path: Path
) -> None:
    def store(reads: str) -> str | None:
        return f"sqlite:{tmp_path / reads}" if is_stored else None

    without = await called("owner", store("owner"))
    found = await called("everywhere", store("everywhere"))
    assert found - without <= {"LiveEntity.end_change"}
    assert "EntityGate.keep" in without
