"""The events that an owner tells the part that gives read leases for it, by which caches read its
keys.

The owner's machine decides which ranges it serves and until when; another machine in the same loop
decides about caches. The owner knows only the interface in this file.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from tenure.base.keys import PoolKind
from tenure.base.ranges import KeyRange
from tenure.client.environment import Environment
from tenure.client.guard import Guards
from tenure.client.shell import Shell
from tenure.protocol.lease.messages import HandOff, LeaseResponse
from tenure.protocol.lease.owner.events import OwnerAction, OwnerEvent
from tenure.protocol.lease.reports import VolumeReport
from tenure.wire.lease import HeardByOwner


class ReadsOwner(NamedTuple):
    """The owner for which read leases are given."""

    shell: Shell[OwnerEvent, OwnerAction, HeardByOwner]
    guards: Guards
    environment: Environment
    kind: PoolKind
    address: str
    """The address at which it serves."""


class GivesReads(Protocol):
    """Gives read leases for one owner. Call it in the loop of the owner's shell, unless a method
    says otherwise.
    """

    reads_ns: int
    """The longest volume lease that it will ever give."""

    async def open(self) -> str:
        """Start to take caches; return the URL at which they connect. Raises ConfigurationError if
        it cannot listen.
        """
        ...

    def check_term(self, answer: LeaseResponse) -> None:
        """Refuse to enter an owner whose term is too short for the leases that caches are to have
        (V11).
        """
        ...

    def perform(self, action: OwnerAction) -> None:
        """The owner does this: tell caches what they must know of it."""
        ...

    def withdraw(self, order: HandOff, then: Callable[[], None]) -> None:
        """Take back every read lease of ranges that are handed over, and call `then` (V12). From
        any thread.
        """
        ...

    def hand_over(self, order: HandOff, then: Callable[[tuple[bytes, ...]], None]) -> None:
        """The range is no longer served: call `then` with what is known of its writes, for the next
        owner.
        """
        ...

    def take_writes(self, key_range: KeyRange, number: int, data: bytes) -> None:
        """Take a part of what another owner knows of the writes of a range, whose state arrives
        here as the lease of `number` left it. From any thread. Raises RemoteProtocolError if it
        cannot be read.
        """
        ...

    def keep_serving(self, order: HandOff) -> None:
        """The range is not handed over after all. From any thread."""
        ...

    def report(self) -> VolumeReport:
        """The state of the volume, to be shown."""
        ...

    async def close(self) -> None:
        """The owner is gone."""
        ...


class GivesReadsOf(Protocol):
    """The kind of object that `Owner` is given as `volume`."""

    def reads_of(self, owner: ReadsOwner) -> GivesReads:
        """Read leases of what `owner` holds. Raises ConfigurationError if it is served already."""
        ...
