"""One operation on one entity: what it has read and changed, until the changes are kept or dropped.

Frames, alarms and calls to other entities wait here, and go out together through the gate.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Literal, Protocol, TypeAlias

from tenure.base.names import shown
from tenure.client.entering import Done
from tenure.client.guard import GuardedBody
from tenure.client.lease import Lease
from tenure.entities.envelopes import Envelopes
from tenure.entities.live_entity import UNREAD, LiveEntity
from tenure.entities.turn_items import TurnItems
from tenure.errors import UsageError
from tenure.protocol.entity.envelope import Envelope, SetAlarm, TurnChanges
from tenure.protocol.entity.key_line import EntityCall, Place
from tenure.protocol.entity.socket_entry import Frame
from tenure.stores.opening import EntityStore

MOST_ALARMS = 1000
MOST_NAME = 200
"""The most characters of an alarm's name."""
FRAME_BYTES = 1 << 18
CLOSE_CODES = frozenset((*range(1000, 1004), *range(1007, 1015), *range(3000, 5000)))
"""The codes that an end of a WebSocket may send (RFC 6455, 7.4)."""
FIRST = datetime(1, 1, 1, tzinfo=UTC).timestamp()
AFTER_LAST = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
"""The seconds that a datetime in any time zone can say."""
NO_NAMES: set[str] = set()
"""The changes of most turns. Nothing is ever added to it."""


Phase: TypeAlias = Literal["alone", "reading", "over"]
"""Whether the turn has the entity alone, reads beside others, or is over."""
Record: TypeAlias = Literal["none", "new", "unsure", "begun", "repeat"]
"""What is kept of a turn's call, so that it is not carried out twice.

`none`: it has no id, or says by itself which one it is. `new`: nothing yet, and nobody but its
caller in this process, which gets the answer, knows its id. `unsure`: nothing yet, and others may
repeat it. `begun`: this turn has kept that it began. `repeat`: a turn before has.
"""


class TurnsGate(Protocol):
    """The gate through which goes what turns have changed: an `EntityGate`."""

    envelopes: Envelopes
    store: EntityStore | None
    wall: Callable[[], float]

    def keep(self, turn: "EntityTurn", answer: bytes | None) -> Coroutine[Any, Any, None]:
        """Keep what the turn has changed, with the answer of its call if it has ended."""
        ...

    def send_early(self, turn: "EntityTurn", changes: TurnChanges) -> None:
        """Let frames out before the turn ends."""
        ...

    def confirm(self, live: LiveEntity, received: Mapping[bytes, int]) -> None:
        """Forget the frames that edges have received."""
        ...


class EntityTurn:
    """A turn with an entity, or a reading beside."""

    __slots__ = (
        "_copy",
        "_has_read",
        "_items",
        "_saving",
        "_seen",
        "at_end",
        "call",
        "gate",
        "guard",
        "is_touched",
        "latest",
        "lease",
        "live",
        "loop",
        "named_alarms",
        "pending",
        "phase",
        "record",
    )

    def __init__(
        self,
        gate: TurnsGate,
        live: LiveEntity,
        lease: Lease,
        guard: GuardedBody,
        call: EntityCall,
        record: Record = "unsure",
        phase: Phase = "alone",
    ) -> None:
        self.gate = gate
        self.live = live
        self.lease = lease
        self.guard = guard
        self.call = call
        self.record: Record = record if call.id else "none"
        self.phase = phase
        self._copy: Any = UNREAD
        """The copy of the state, for a reading."""
        self._seen = live.envelope
        """What a reading sees: what was kept when it read first."""
        self._has_read = False
        self._items: TurnItems | None = None
        self.is_touched = False
        """Whether the state was read, and may have been changed."""
        self.at_end: Literal["keep", "forget"] | Envelope = "keep"
        """What becomes of the key when the turn ends."""
        self.pending: TurnChanges | None = None
        """The changes to keep besides the state."""
        self.named_alarms = NO_NAMES
        """All alarms that the turn has set or cleared, committed or not."""
        self.latest = 0.0
        self._saving: asyncio.Lock | None = None
        self.loop = asyncio.get_running_loop()

    @property
    def changes(self) -> TurnChanges:
        """The changes to keep besides the state; the caller adds to them."""
        if self.pending is None:
            self.pending = TurnChanges()
        return self.pending

    def put_back(self, changes: TurnChanges | None) -> None:
        """These were not kept; others may have been made meanwhile."""
        later, self.pending = self.pending, changes
        if later:
            self.changes.add(later)

    @property
    def saving(self) -> asyncio.Lock:
        """The lock of the task that saves what the turn has changed."""
        if self._saving is None:
            self._saving = asyncio.Lock()
        return self._saving

    @property
    def place(self) -> Place:
        """The entity."""
        return self.live.pool, self.call.key

    def check(self) -> None:
        """Raise UsageError if the turn is over."""
        if self.phase == "over":
            raise UsageError(
                f"the turn of {self.call.method} with {self.call.key!r:.100} is over: a method's "
                "`self` must not be used after the method has returned"
            )

    def check_exclusive(self, what: str) -> None:
        self.check()
        if self.phase == "reading":
            raise UsageError(
                f"{self.call.method} is marked @reading, and cannot {what}: leave out @reading, "
                "and it has a turn of its own"
            )

    @property
    def seen(self) -> Envelope:
        """What is kept, as the turn sees it: in a reading one commit, until it waits for others."""
        if self.phase != "reading":
            return self.live.envelope
        if not self._has_read:
            self._seen, self._has_read = self.live.envelope, True
        return self._seen

    @property
    def items(self) -> TurnItems:
        """The items of collections. The caller reads them."""
        self.check()
        if self._items is None:
            self._items = TurnItems(self, self.gate.store)
        return self._items

    def items_to_change(self, what: str) -> TurnItems:
        """The items of collections. The caller changes them, as `what` says."""
        self.check_exclusive(what)
        return self.items

    # --- state ---

    @property
    def state(self) -> Any:  # noqa: ANN401  # the user's
        """See `Entity.state`."""
        if self.phase == "over":
            self.check()
        if self.phase == "reading":
            if self._copy is UNREAD:
                self._copy = self.live.decoded(self.seen)
            return self._copy
        self.is_touched = True
        return self.live.read()

    def assign(self, value: Any) -> None:  # noqa: ANN401
        """See `Entity.state`."""
        self.check_exclusive("assign state")
        self.live.read()  # another state keeps the fields that the class does not know
        self.is_touched = True
        self.live.state = value

    def now(self) -> float:
        """See `Entity.now`."""
        self.check()
        live = self.live
        self.latest = live.told = max(self.gate.wall(), live.envelope.latest, live.told)
        return self.latest

    def fair_now(self) -> float:
        """See `Entity.fair_now`."""
        self.check()
        return self.gate.envelopes.fair_now(self.gate.wall())

    @property
    def was_interrupted(self) -> bool:
        """See `Entity.was_interrupted`."""
        self.check()
        kept = self.live.envelope
        return bool(kept.state) and not self.gate.envelopes.is_unbroken(kept, self.lease)

    def commit(self) -> Awaitable[None]:
        """See `Entity.commit`."""
        self.check_exclusive("commit")
        return in_its_loop(self.loop, self.gate.keep(self, None))

    def roll_back(self) -> None:
        """Forget what was changed since the last commit."""
        self.pending = self._items = None
        self.live.state = UNREAD
        self.is_touched, self.at_end = False, "keep"

    def forget(self) -> None:
        """See `Entity.forget`."""
        self.check_exclusive("forget")
        if self.sockets():
            raise UsageError(
                f"{self.call.key!r:.100} has open sockets, and cannot be forgotten: close them "
                "first, in a call before"
            )
        self.at_end = "forget"

    async def changed(self) -> None:
        """See `Entity.changed`."""
        self.check()
        if self.phase != "reading":
            raise UsageError(
                f"{self.call.method} has a turn of its own, in which nobody else changes anything: "
                "mark it @reading to wait for others"
            )
        if self._seen is self.live.envelope:
            await self.live.next_kept()
        # Also if nobody reads it: else a method that only waits would go round here for ever.
        self._seen = self.live.envelope
        self._copy, self._has_read = UNREAD, False

    # --- alarms ---

    def alarms(self) -> dict[str, SetAlarm]:
        """All alarms that are set."""
        self.check()
        found = {**self.live.envelope.alarms, **self.changes.alarms}
        return {name: each for name, each in found.items() if each is not None}

    def set_alarm(self, name: str, at: object) -> None:
        """See `Entity.set_alarm`."""
        self.check_exclusive("set an alarm")
        if not self.live.has_on_alarm:
            raise UsageError(f"{self.live.pool} entities have no on_alarm to handle {name!r:.100}")
        if not isinstance(name, str) or not 0 < len(name) <= MOST_NAME:
            raise UsageError(f"an alarm's name is a text of up to {MOST_NAME} characters: {name!r}")
        name = _plain_text(name)
        due = _wall_time(at)
        if name not in (there := self.alarms()) and len(there) >= MOST_ALARMS:
            raise UsageError(
                f"{self.call.key!r:.100} has {MOST_ALARMS} alarms already, and no room for "
                f"{name!r}: clear_alarm those that are not wanted"
            )
        self._name_alarm(name)
        self.changes.alarms[name] = SetAlarm(due, due)

    def clear_alarm(self, name: str) -> None:
        """See `Entity.clear_alarm`."""
        self.check_exclusive("clear an alarm")
        self._name_alarm(name)
        self.changes.alarms[name] = None

    def _name_alarm(self, name: str) -> None:
        if self.named_alarms is NO_NAMES:
            self.named_alarms = set()
        self.named_alarms.add(name)

    # --- sockets ---

    def sockets(self) -> list[bytes]:
        """The ids of the open sockets."""
        self.check()
        entries = {**self.live.envelope.sockets, **self.changes.opened}
        left = self.changes.closed
        return [each for each, it in entries.items() if not it.closing and each not in left]

    def attachment(self, socket: bytes) -> Any:  # noqa: ANN401  # the user's
        """See `Socket.attachment`."""
        self.check()
        entry = self.changes.opened.get(socket) or self.live.envelope.sockets.get(socket)
        return None if entry is None else self.live.attachment(entry.attachment)

    def send(self, sockets: Collection[bytes], frame: Frame, *, early: bool) -> None:
        """See `Socket.send`."""
        self.check_exclusive("send")
        if not isinstance(frame, str | bytes):
            raise UsageError(f"a frame is text or bytes, not {frame!r:.100}: encode it first")
        if len(frame) > FRAME_BYTES:
            raise UsageError(f"the frame has {len(frame):,} bytes; the limit is {FRAME_BYTES:,}")
        frame = _plain_text(frame) if isinstance(frame, str) else bytes(frame)
        if early:
            sockets = self._send_early(sockets, frame)
        there, alone = self.changes.frames, (frame,)
        for each in sockets:
            there[each] = (*there[each], frame) if each in there else alone

    def _send_early(self, sockets: Collection[bytes], frame: Frame) -> Collection[bytes]:
        """Return those that are being opened, of which nobody knows before the commit."""
        opening = self.pending.opened if self.pending else {}
        at_once = TurnChanges()
        at_once.frames = {each: (frame,) for each in sockets if each not in opening}
        if at_once.frames:
            self.gate.send_early(self, at_once)
        return [each for each in sockets if each in opening]

    def close(self, socket: bytes, code: int) -> None:
        """See `Socket.close`."""
        self.check_exclusive("close a socket")
        if type(code) is not int or code not in CLOSE_CODES:
            raise UsageError(
                f"a socket is closed with a code that may be sent: 1000 or one of 1001 to 1014 "
                f"that has a meaning, or one of your own from 3000 to 4999; not {shown(code)}"
            )
        self.changes.closed[socket] = code


CURRENT: ContextVar[EntityTurn | None] = ContextVar("tenure_entity_turn", default=None)
"""The turn on whose behalf code runs: its calls carry its chain."""


def in_its_loop(
    loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, None]
) -> Awaitable[None]:
    """Run in `loop`: awaited in the loop itself; from another thread, done when this returns."""
    try:
        if asyncio.get_running_loop() is loop:
            return work
    except RuntimeError:
        pass
    asyncio.run_coroutine_threadsafe(work, loop).result()
    return Done()


def _plain_text(said: str) -> str:
    """The same as a plain str, which can be kept and sent."""
    try:
        said.encode()
    except UnicodeEncodeError:
        raise UsageError(
            f"{shown(said)} holds half a character, which cannot be sent: encode it first, for "
            "example with text.encode(errors='replace').decode()"
        ) from None
    return str.__str__(said)


def _wall_time(at: object) -> float:
    seconds = at
    if isinstance(at, datetime):
        if at.tzinfo is None:
            raise UsageError(f"{at!r} has no time zone: write datetime.now(UTC), or add one")
        seconds = at.timestamp()
    if isinstance(seconds, int | float) and not isinstance(seconds, bool):
        if FIRST <= seconds < AFTER_LAST:
            return float(seconds)
        raise UsageError(f"an alarm is for a time that a datetime can say, not {shown(at)}")
    raise UsageError(
        f"an alarm is for a datetime, or for seconds as now() gives them, not {shown(at)}"
    )
