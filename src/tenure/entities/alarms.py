"""Handling an alarm: a turn of its own, in whose commit the alarm is removed.

So a handler that was cut before that is called again. One that raises is called again later, and
later still, until it returns.
"""

import logging

from tenure.entities.entity import Alarm
from tenure.entities.entity_turn import EntityTurn
from tenure.entities.host import EntityHost
from tenure.entities.methods import NOTHING
from tenure.errors import Busy, LeaseLost, NotOwner
from tenure.protocol.entity.envelope import SetAlarm
from tenure.protocol.entity.key_line import EntityCall

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 300.0
"""Seconds between attempts of a handler that raises: they double."""
logger = logging.getLogger("tenure.entities")


async def ring_alarm(host: EntityHost, key: str | int) -> None:
    """Handle the alarm of `key` that is due first, if any is. Raises as `take_turn` does."""
    rung: list[tuple[str, SetAlarm]] = []

    async def handle(turn: EntityTurn) -> bytes:
        now = turn.now()
        name = turn.live.envelope.due_alarm(now)
        if name is not None:
            entry = turn.live.envelope.alarms[name]
            rung.append((name, entry))
            await turn.live.seen_by(turn).on_alarm(Alarm.of(name, entry, now))
            if name not in turn.named_alarms:
                turn.changes.alarms[name] = None
        return NOTHING

    async def put_off(turn: EntityTurn) -> bytes:
        name, entry = rung[0]
        if turn.live.envelope.alarms.get(name) == entry:  # it was not set anew, and committed
            pause = min(FIRST_PAUSE * 2 ** min(entry.attempts, 20), LONGEST_PAUSE)
            later = SetAlarm(entry.due, turn.now() + pause, entry.attempts + 1)
            turn.changes.alarms[name] = later
        return NOTHING

    call = EntityCall(key, b"", "on_alarm", b"")
    try:
        await host.take_turn(call, handle)
    except (NotOwner, LeaseLost, Busy):
        raise
    except Exception:
        if not rung:
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
