"""An agenda rings once for each key, at the last time that it was told, and keeps nothing else."""

import pytest

from tenure.runtime.agenda import SPARE, Agenda
from tenure.testing.clock import TurnedClock

pytestmark = pytest.mark.asyncio


async def test_a_key_that_is_put_off_again_and_again_takes_no_more_room() -> None:
    clock = TurnedClock()
    rung: list[str | int] = []

    async def ring(key: str | int) -> None:
        rung.append(key)

    agenda = Agenda(clock, lambda: clock() / 1e9, clock.alarm, ring)
    start = clock() / 1e9
    agenda.arm("other", start + 1)
    for i in range(10 * SPARE):
        agenda.arm("busy", start + 2 + (i % 7) / 10)
    assert (len(agenda), len(agenda._heap) < 2 * SPARE) == (2, True)
    await clock.turn(4.0)
    assert rung == ["other", "busy"]
    assert len(agenda) == len(agenda._heap) == 0
    await agenda.close()
