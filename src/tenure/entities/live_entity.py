"""One entity in this process: its line, its envelope, and its instance."""

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec

from tenure.client.hand_off.unknown_fields import UnknownFields
from tenure.client.lease import Lease
from tenure.entities.state_codec import StateCodec
from tenure.fencing.fenced_rows import EmptyRow
from tenure.protocol.entity.envelope import Envelope
from tenure.protocol.entity.key_line import EntityCall, KeyLine

NOTHING_KEPT = Envelope()
UNREAD: Any = object()


class LiveEntity:
    """The entity of one key. Its instance belongs to one lease, and is made again under another."""

    __slots__ = (
        "_beginnings",
        "_codec",
        "_kept",
        "_lease",
        "_unchanging",
        "attributes",
        "begun",
        "envelope",
        "found",
        "has_on_alarm",
        "heard",
        "is_changing",
        "is_copied",
        "key",
        "line",
        "pool",
        "readings",
        "state",
        "stored",
        "told",
        "type",
        "unknown",
        "used_at",
        "waiting",
    )

    def __init__(
        self,
        key: str | int,
        pool: str,
        of: type[Any],
        codec: StateCodec,
        most_waiting: int,
        beginnings: Iterator[int],
        *,
        has_on_alarm: bool,
    ) -> None:
        self.key = key
        self.pool = pool
        self.type = of
        """The subclass of Entity."""
        self._codec = codec
        self.line = KeyLine(most_waiting)
        self.waiting: dict[EntityCall, asyncio.Future[None]] = {}
        self.readings = 0
        """How many readings run."""
        self.envelope = self.stored = NOTHING_KEPT
        """What is kept, and what the store had last: sockets go on between two commits."""
        self._beginnings = beginnings
        """Numbers that rise in a process."""
        self.begun = 0
        self.found: dict[bytes, int] = {}
        """The number of the last frame to each socket that was kept when the instance began. The
        numbers after these are given here."""
        self.told = 0.0
        """The latest wall time that the entity was told here, which may not be kept."""
        self.state: Any = UNREAD
        """The decoded state for turns, which change it."""
        self.unknown: UnknownFields | None = None
        """The fields that were kept with that, and its class does not know."""
        self.has_on_alarm = has_on_alarm
        self.used_at = 0.0
        self.heard: dict[bytes, float] = {}
        """When the edge of each socket last asked."""
        self.attributes: dict[str, Any] = {}
        """The attributes of the instance, which all that is `self` in a turn share."""
        self._lease: tuple[int, int] | None = None
        self._kept: asyncio.Future[None] | None = None
        """The future for which readings wait."""
        self.is_copied = True
        """Whether other processes may have copies of the state."""
        self.is_changing = False
        """Whether a change is being kept that has not waited for any copy."""
        self._unchanging: asyncio.Future[None] | None = None

    async def next_kept(self) -> None:
        """Wait until something new is kept."""
        if self._kept is None:
            self._kept = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._kept)

    def keep(self, envelope: Envelope) -> None:
        """Replace what is kept."""
        self.envelope = envelope
        if self._kept is not None:
            kept, self._kept = self._kept, None
            kept.set_result(None)

    async def until_changed(self) -> None:
        """Wait until the change is kept, or has failed."""
        if self._unchanging is None:
            self._unchanging = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._unchanging)

    def end_change(self) -> None:
        """The change is kept, or has failed."""
        self.is_changing = False
        if self._unchanging is not None:
            ended, self._unchanging = self._unchanging, None
            ended.set_result(None)

    def is_active(self, lease: Lease) -> bool:
        """Whether the instance belongs to that lease."""
        return self._lease == (lease.number, lease.journal)

    def begin(self, envelope: Envelope) -> None:
        """Make a new instance of what was kept. It is active only after `activated`."""
        self._lease, self.attributes = None, {}
        self.envelope, self.state = envelope, UNREAD
        self.is_copied = True  # earlier owners gave copies
        self.heard = {}  # others may have heard the edges meanwhile
        self.number_on()

    def number_on(self) -> None:
        """Number frames from what the envelope says, which may be less than edges have."""
        self.begun = next(self._beginnings)
        self.found = {id_: each.sent for id_, each in self.envelope.sockets.items()}

    def activated(self, lease: Lease) -> None:
        """The instance belongs to `lease` from here on."""
        self._lease = lease.number, lease.journal

    def silent_sockets(self, now: float, seconds: float) -> list[bytes]:
        """The sockets whose edges have not been heard for that long."""
        return [
            each
            for each in self.envelope.sockets
            if now - self.heard.setdefault(each, now) > seconds
        ]

    def sockets_at(self, edge: str) -> list[bytes]:
        """The sockets that the process of this address has."""
        return [id_ for id_, each in self.envelope.sockets.items() if each.edge == edge]

    def drop(self) -> None:
        """Drop the state, which may differ from what was kept: the next turn loads it again."""
        self._lease = None

    @property
    def is_idle(self) -> bool:
        """Whether nobody uses the entity."""
        return not self.line and not self.readings

    @property
    def is_asleep(self) -> bool:
        """Whether it has no instance that calls can go on with."""
        return self._lease is None

    @property
    def empty_row(self) -> EmptyRow | None:
        """The row that a store has of the entity although nothing is kept."""
        kept = self.envelope
        if self._lease is None or not kept.is_empty:
            return None
        return EmptyRow(self.key, self._lease[0], kept.step)

    def decoded(self, envelope: Envelope) -> Any:  # noqa: ANN401  # the user's
        """A copy of the state in an envelope of this entity."""
        return self._codec.decode(self.key, envelope.state)

    def read(self) -> Any:  # noqa: ANN401  # the user's
        """The state for turns."""
        if self.state is UNREAD:
            self.state, self.unknown = self._codec.opened(self.key, self.envelope.state)
        return self.state

    def current(self, found: Envelope) -> Envelope:
        """What was kept, with its state as this version of the class has it."""
        state = self._codec.current(self.key, found.state)
        if state is found.state:
            return found
        return msgspec.structs.replace(found, state=state)

    def attachment(self, data: bytes) -> Any:  # noqa: ANN401  # the user's
        """The attachment of a socket."""
        return self._codec.decode_attachment(data)
