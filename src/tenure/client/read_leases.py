"""What an owner says to whoever gives read leases for it: caches read what the owner owns.

The owner's machine decides until when, and which ranges; what decides about caches is a machine of
its own, in the same loop. An owner knows no more of it than what stands here.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from tenure.base.keys import PoolKind
from tenure.base.ranges import KeyRange
from tenure.client.environment import Environment
from tenure.client.guard import Guards
from tenure.client.shell import Shell
from tenure.protocol.lease.messages import HandOff, LeaseResponse, ToOwner
from tenure.protocol.lease.owner.events import OwnerAction, OwnerEvent
from tenure.protocol.lease.reports import VolumeReport


class ReadsOwner(NamedTuple):
    """The owner for which read leases are given."""

    shell: Shell[OwnerEvent, OwnerAction, ToOwner]
    guards: Guards
    environment: Environment
    kind: PoolKind
    address: str
    """Where it serves."""


class GivesReads(Protocol):
    """Gives read leases for one owner. In the loop of the owner's shell, but where it says more."""

    reads_ns: int
    """The longest volume lease that it will ever give."""

    async def open(self) -> str:
        """Take caches; the URL at which they find it. Raises ConfigurationError where it cannot be
        listened.
        """
        ...

    def check_term(self, answer: LeaseResponse) -> None:
        """Do not enter an owner whose term is too short for what caches are to have (V11)."""
        ...

    def perform(self, action: OwnerAction) -> None:
        """The owner does this: whatever caches must be told of it, they are told."""
        ...

    def withdraw(self, order: HandOff, then: Callable[[], None]) -> None:
        """Take back every read lease of what is handed over, and call `then` (V12). From any
        thread.
        """
        ...

    def hand_over(self, order: HandOff, then: Callable[[tuple[bytes, ...]], None]) -> None:
        """The range is not served any more: call `then` with what is known of its writes, for the
        next owner.
        """
        ...

    def take_writes(self, key_range: KeyRange, number: int, data: bytes) -> None:
        """Some of that, of a range whose state arrives here as the lease of `number` left it. From
        any thread. Raises RemoteProtocolError for what tells nothing.
        """
        ...

    def keep_serving(self, order: HandOff) -> None:
        """It is not handed over after all. From any thread."""
        ...

    def report(self) -> VolumeReport:
        """How the volume is, to be shown."""
        ...

    async def close(self) -> None:
        """The owner is gone."""
        ...


class GivesReadsOf(Protocol):
    """What `Owner` is given as `volume`."""

    def reads_of(self, owner: ReadsOwner) -> GivesReads:
        """Read leases of what `owner` holds. Raises ConfigurationError if it is served already."""
        ...
