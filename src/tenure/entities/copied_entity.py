"""An entity in a process that does not own it: a copy of its state, and readings of that copy.

A reading that needs more than the state, such as sockets or collections, is made at the owner.
"""

import asyncio
from typing import Any, NoReturn, Protocol

from tenure.entities.entity_kind import EntityKind
from tenure.entities.entity_turn import EntityTurn
from tenure.entities.live_entity import UNREAD, LiveEntity
from tenure.entities.turn_items import TurnItems
from tenure.errors import UsageError
from tenure.protocol.entity.envelope import Envelope, SetAlarm
from tenure.protocol.entity.key_line import EntityCall


class OwnerNeeded(UsageError):
    """The reading needs what only the owner has."""


class CopiedEntity(LiveEntity):
    """One copy of a state. It never changes, and has no line: only readings have it."""

    __slots__ = ()

    def __init__(self, key: str | int, pool: str, kind: EntityKind, state: bytes) -> None:
        self.key = key
        self.pool = pool
        self.type = kind.type
        self._codec = kind.codec
        self.envelope = Envelope(state=kind.codec.current(key, state))
        self.attributes = {}


class NewerCopies(Protocol):
    """Knows when there is another copy."""

    async def newer(self, seen: CopiedEntity) -> CopiedEntity | None:
        """Wait for a copy of another state; None if the owner must be asked."""
        ...


class CopyReading(EntityTurn):
    """A reading that knows the state of its entity, and nothing else."""

    __slots__ = ("_copies", "needs_owner")
    live: CopiedEntity

    def __init__(self, copies: NewerCopies, copied: CopiedEntity, call: EntityCall) -> None:
        self._copies = copies
        self.live = copied
        self.call = call
        self.phase = "reading"
        self.record = "none"
        self.loop = asyncio.get_running_loop()
        self._copy: Any = UNREAD
        self._seen = copied.envelope
        self._has_read = True
        self.needs_owner = False
        """Whether it has asked for more than there is here: then its answer does not count."""

    def _ask_owner(self, what: str) -> NoReturn:
        self.check()
        self.needs_owner = True
        raise OwnerNeeded(f"{what} of {self.call.key!r:.100} are known to its owner only")

    async def changed(self) -> None:
        self.check()
        newer = await self._copies.newer(self.live)
        if newer is None:
            self._ask_owner("changes")
        self.live, self._seen, self._copy = newer, newer.envelope, UNREAD

    @property
    def items(self) -> TurnItems:
        self._ask_owner("collections")

    @property
    def lease(self) -> Any:  # type: ignore[override]  # noqa: ANN401  # it is never returned
        self._ask_owner("leases")

    @property
    def was_interrupted(self) -> bool:
        self._ask_owner("interruptions")

    def now(self) -> float:
        self._ask_owner("times")

    def fair_now(self) -> float:
        self._ask_owner("times")

    def alarms(self) -> dict[str, SetAlarm]:
        self._ask_owner("alarms")

    def sockets(self) -> list[bytes]:
        self._ask_owner("sockets")

    def attachment(self, socket: bytes) -> Any:  # noqa: ANN401  # the user's
        self._ask_owner("sockets")
