"""The replacements that leave a rule of entities out, for canaries."""

from typing import Any

import msgspec

from tenure.client.lease import Lease
from tenure.entities.caller import Caller
from tenure.entities.entity_turn import EntityTurn
from tenure.entities.gate import EntityGate
from tenure.entities.live_entity import LiveEntity
from tenure.errors import Fenced
from tenure.fencing.database import BlockingDriver
from tenure.fencing.fenced_rows import FencedRows
from tenure.protocol.entity.envelope import Envelope, Frame, SocketEntry
from tenure.protocol.entity.key_line import Begin, EntityCall, KeyLine
from tenure.protocol.entity.socket_end import SocketEnd
from tenure.runtime.agenda import Agenda

EARLY_SECONDS = 2.0
_arm, _due_alarm = Agenda.arm, Envelope.due_alarm
_attempt, _send = Caller._attempt, EntityTurn.send  # noqa: SLF001


def nothing(*_: Any, **__: Any) -> None:
    """Do nothing."""


async def nothing_async(*_: Any, **__: Any) -> None:
    """Do nothing."""


def never(*_: Any) -> bool:
    """Answer no."""
    return False


def at_once(self: KeyLine, now: float, call: EntityCall) -> Begin:
    """Nobody waits."""
    if self.running is None:
        self._begin(now, call)
    return Begin()


async def under_a_new_id(self: Caller, call: EntityCall, address: str, deadline: float) -> Any:
    """Each attempt is a call of its own."""
    call.id = self.new_id()
    return await _attempt(self, call, address, deadline)


def not_for_the_hand_off(self: EntityGate, turn: EntityTurn, new: Envelope) -> None:
    """The change is kept, but not where a hand-off takes it from."""
    del self
    turn.live.envelope = new


def of_any_lease(self: LiveEntity, lease: Lease) -> bool:
    """An instance of any lease will do."""
    del lease
    return self._lease is not None


def sent_at_once(self: EntityTurn, sockets: Any, frame: Frame, *, early: bool) -> None:
    """Frames do not wait until what they tell of is kept."""
    del early
    _send(self, sockets, frame, early=True)


def taken_again(
    self: SocketEnd, lease: tuple[int, int], first: int, frames: tuple[Frame, ...]
) -> tuple[Frame, ...]:
    """Every frame that arrives counts as new."""
    del lease
    self.received = max(self.received, first + len(frames) - 1)
    return frames


def over_gaps(
    self: SocketEnd, lease: tuple[int, int], first: int, frames: tuple[Frame, ...]
) -> tuple[Frame, ...]:
    """Nobody asks for missing frames."""
    del lease
    new = frames[max(self.received + 1 - first, 0) :]
    self.received = max(self.received, first + len(frames) - 1)
    return new


def nothing_follows(self: SocketEntry, received: int) -> tuple[Frame, ...]:
    """No frames follow if it is unknown which do."""
    missing = max(self.sent - received, 0)
    return self.unread[len(self.unread) - missing :] if missing <= len(self.unread) else ()


def armed_early(self: Agenda, key: str | int, at: float | None) -> None:
    """The alarm rings before its time."""
    _arm(self, key, None if at is None else at - EARLY_SECONDS)


def due_early(self: Envelope, now: float) -> str | None:
    """The alarm is due before its time."""
    return _due_alarm(self, now + EARLY_SECONDS)


def wall_time(self: EntityTurn) -> float:
    """The time that this host's clock shows."""
    self.latest = self.gate.wall()
    return self.latest


async def saved_unfenced(
    self: FencedRows, key: str | int, lease: Lease, step: int, data: bytes, due: float | None
) -> None:
    """An older lease writes too."""
    del lease
    values = step, data, due, msgspec.msgpack.encode(key)
    statement = "UPDATE tenure_entity SET step = ?, data = ?, alarm = ? WHERE key = ?"
    await self._do(lambda driver: driver.first(statement, values))


async def saved_over_any(
    self: FencedRows, key: str | int, lease: Lease, step: int, data: bytes, due: float | None
) -> None:
    """A write that was given up is made too, when its time comes."""
    values = lease.number, step, data, due, msgspec.msgpack.encode(key), lease.number
    statement = (
        "UPDATE tenure_entity SET number = ?, step = ?, data = ?, alarm = ? "
        "WHERE key = ? AND number <= ? RETURNING step"
    )

    def save(driver: BlockingDriver) -> None:
        self._check_history(driver, lease, may_begin=False)
        if driver.first(statement, values) is None:
            raise Fenced("a newer lease")

    await self._do(save)


def uncommitted(self: EntityTurn) -> Any:
    """A reading sees what a turn has not committed yet."""
    self.is_touched = not self.is_reading
    found = self.live.state
    if not hasattr(found, "place"):
        found = self.live.state = self.live.decoded()
    return found
