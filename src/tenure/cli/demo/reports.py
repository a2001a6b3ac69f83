"""The messages between the demo and its processes: a line of JSON each, over pipes.

Down, through standard input: the orders first, and a line when it is to stop. Up, through
standard output: reports, several a second. Counts begin with the process and only grow.
"""

from typing import TypeAlias

import msgspec

from tenure.base.instants import Instant

POOL = "presence"
STOP = b"stop"


class OwnerOrders(msgspec.Struct, frozen=True):
    """The orders that an owner gets at its start."""

    manager: str
    """The URLs of all managers, separated by commas."""
    name: str
    directory: str
    """The directory of the owner's record."""
    is_broken: bool = False
    """Whether the owner serves whatever its leases say, for tests."""


class FrontendOrders(msgspec.Struct, frozen=True):
    """The orders that a frontend gets at its start."""

    manager: str
    clients: tuple[str, ...]
    """The users that are connected to it."""
    users: tuple[str, ...]
    """All users there are."""
    hold_ns: int


class Crowd(msgspec.Struct, frozen=True):
    """The users that nearly everybody looks up from now on; sent to frontends that already run."""

    users: tuple[str, ...]


class OwnerReport(msgspec.Struct, frozen=True, tag="owner"):
    """How an owner is."""

    at: Instant
    address: str
    ranges: int = 0
    users: int = 0
    """The number of users whose presence it has."""
    served: int = 0
    refused: int = 0
    """Operations that found no lease when they came."""
    voided: int = 0
    """Operations whose lease ended while they were done."""
    lapsed: int = 0
    """How often its leases ran out because no manager had renewed them."""
    granted: float = 0.0
    """All that it was ever granted, as parts of the key space: how much has moved to it."""
    loads: int = 0
    """Objects that caches have asked for and did not have."""
    with_state: int = 0
    """Ranges that came with their state."""


class FrontendReport(msgspec.Struct, frozen=True, tag="frontend"):
    """How a frontend is. The summary is the sum of these."""

    has_published: bool = False
    """Whether all its clients have published once."""
    requests: int = 0
    """Operations that came to an end, done or failed."""
    failed: int = 0
    rerouted: int = 0
    """Operations that were done by another owner than the one first asked."""
    attempts: int = 0
    refused: int = 0
    """Reachability that were answered 421."""
    refused_late: int = 0
    """The refused attempts whose answer no client waited for any more."""
    found_nothing: int = 0
    """Reads of users whose presence was lost and not yet republished."""
    losses_signalled: int = 0
    ranges_lost: int = 0
    keys_republished: int = 0
    contact_lost: int = 0
    """How often all managers were silent for so long that everything counted as lost."""
    keys_lost: int = 0
    """The keys of its clients whose state was ever lost: a loss was signalled, or a read found less
    than had been answered."""
    slowest_ns: int = 0
    """The longest that an operation took, from its beginning to its answer."""

    def plus(self, other: "FrontendReport") -> "FrontendReport":
        """The two as one."""
        names = (name for name in self.__struct_fields__ if name not in ("has_published", SLOWEST))
        summed = {name: getattr(self, name) + getattr(other, name) for name in names}
        return FrontendReport(
            has_published=self.has_published and other.has_published,
            slowest_ns=max(self.slowest_ns, other.slowest_ns),
            **summed,
        )


SLOWEST = "slowest_ns"


ChildReport: TypeAlias = OwnerReport | FrontendReport

encode = msgspec.json.Encoder().encode
decode_report = msgspec.json.Decoder(ChildReport).decode
