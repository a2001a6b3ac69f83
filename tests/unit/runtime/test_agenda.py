"""An agenda rings once for each key, at the last time that it was told, and keeps nothing else."""

import asyncio

import pytest

from tenure.runtime.agenda import SPARE, Agenda
from tenure.testing.clock import TurnedClock, come_to_rest

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


async def test_of_many_keys_that_are_due_only_so_many_ring_at_a_time() -> None:
    clock = TurnedClock()
    ringing: set[int] = set()
    rung: list[int] = []
    most = 0
    go_on = asyncio.Event()

    async def ring(key: int) -> None:
        nonlocal most
        ringing.add(key)
        most = max(most, len(ringing))
        await go_on.wait()
        ringing.remove(key)
        rung.append(key)

    agenda = Agenda(clock, lambda: clock() / 1e9, clock.alarm, ring, 3)
    start = clock() / 1e9
    for i in range(10):
        agenda.arm(i, start + 1)
    await clock.turn(2.0)
    assert ringing == {0, 1, 2}
    go_on.set()
    await come_to_rest()
    assert most == 3
    agenda.arm(10, start + 3)
    await clock.turn(2.0)
    assert rung == [*range(11)]
    await agenda.close()
