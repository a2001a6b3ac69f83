"""The alarms of all entities here: armed when their keys come, each handled in a turn of its own.

An alarm is removed in the commit of the turn that handles it. So a handler that was interrupted
before that is called again. A handler that raises is called again after longer and longer waits,
until it returns.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from tenure.base.ranges import KeyRange
from tenure.client.environment import Environment
from tenure.client.owner import Owner
from tenure.entities.entity import Alarm, seen_by
from tenure.entities.entity_turn import EntityTurn
from tenure.entities.methods import NOTHING
from tenure.entities.turns import EntityHost
from tenure.errors import Busy, LeaseLost, NewerState, NotOwner, StoreAway
from tenure.protocol.entity.envelope import SetAlarm
from tenure.protocol.entity.key_line import EntityCall
from tenure.runtime.agenda import LATER, Agenda
from tenure.stores.opening import EntityStore

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 300.0
"""The first and the longest pause between attempts of a handler that raises; pauses double."""
logger = logging.getLogger("tenure.entities")


class Alarms:
    """The alarms of one process."""

    host: EntityHost
    owner: Owner

    def __init__(
        self, environment: Environment, go: Callable[[Coroutine[Any, Any, None]], None]
    ) -> None:
        clock, timers = environment.clock, environment.timers()
        self.agenda: Agenda[str | int] = Agenda(clock, environment.wall, timers, self._ring)
        self._go = go

    async def on_grant(self, ranges: tuple[KeyRange, ...]) -> None:
        """The alarms of these keys ring here from now on."""
        gate = self.host.gate
        if gate.store is None:
            self._arm(gate.envelopes.alarms_within(ranges))
        else:
            self._go(self._arm_stored(gate.store, ranges))

    async def _arm_stored(self, store: EntityStore, ranges: tuple[KeyRange, ...]) -> None:
        while True:
            try:
                found = await store.due_within(ranges)
            except StoreAway:  # the store has said so
                await asyncio.sleep(LATER)
            else:
                self._arm([(key, at) for key, at in found if not isinstance(key, bytes)])
                return

    def _arm(self, found: list[tuple[str | int, float]]) -> None:
        for key, at in found:
            self.agenda.arm(key, at)

    async def _ring(self, key: str | int) -> None:
        try:
            await ring_alarm(self.host, key)
        except (NotOwner, LeaseLost):
            if self.owner.check(key) is not None:  # the key was about to move, but did not
                self.agenda.later(key)  # otherwise the next owner finds the alarm
        except (Busy, NewerState, StoreAway):
            self.agenda.later(key)
        except Exception:
            logger.exception("the alarm of %s %.100r could not be handled", self.host.pool, key)
            self.agenda.later(key)


async def ring_alarm(host: EntityHost, key: str | int) -> None:
    """Handle the first due alarm of `key`, if any. Raises as `take_turn` does."""
    rung: list[tuple[str, SetAlarm, float]] = []

    async def handle(turn: EntityTurn) -> bytes:
        now = turn.now()
        name = turn.live.envelope.due_alarm(now)
        if name is not None:
            entry = turn.live.envelope.alarms[name]
            rung.append((name, entry, now))
            await seen_by(turn).on_alarm(Alarm.of(name, entry, now))
            if name not in turn.named_alarms:
                turn.changes.alarms[name] = None
        return NOTHING

    async def put_off(turn: EntityTurn) -> bytes:
        name, entry, told = rung[0]
        # The handler was told this time, which was not kept: the clock may have been set back.
        turn.live.told = max(turn.live.told, told)
        if turn.live.envelope.alarms.get(name) == entry:  # it was not set anew, and committed
            pause = min(FIRST_PAUSE * 2 ** min(entry.attempts, 20), LONGEST_PAUSE)
            later = SetAlarm(entry.due, turn.now() + pause, entry.attempts + 1)
            turn.changes.alarms[name] = later
        return NOTHING

    call = EntityCall(key, b"", "on_alarm", b"")
    try:
        await host.take_turn(call, handle)
    except (NotOwner, LeaseLost):
        raise
    except Exception:
        if not rung:  # the handler was not called
            raise
        logger.exception(
            "on_alarm of %s %.100r failed for the alarm %r, for the %d. time; it is called again",
            host.pool,
            key,
            rung[0][0],
            rung[0][1].attempts + 1,
        )
        await host.take_turn(EntityCall(key, b"", "on_alarm", b""), put_off)
    host.arm_again(key)
