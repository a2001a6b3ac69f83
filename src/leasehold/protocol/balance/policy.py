"""The interface of a policy: from members and the present owners to the owners there should be.

A policy is a stateless function, so that a new leader plans as the old one did, and so that a test
is a table. It may look at who has what now, in order to move little; it never sees leases, clocks
or messages. This is the paper's pluggable module (PRS 4.1, Centrifuge 2.1.2).
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from leasehold.base.rangemap import RangeMap

NOBODY = 0


class Candidate(NamedTuple):
    """A member that may be given ranges."""

    incarnation: int
    name: str
    capacity: float = 1.0


class Policy(Protocol):
    """Which incarnation should have each range."""

    def __call__(self, candidates: Sequence[Candidate], present: RangeMap[int]) -> RangeMap[int]:
        """Plan for `candidates`, NOBODY everywhere without any; `present` says who has what now."""
        ...
