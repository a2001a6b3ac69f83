"""The trial of a simulation of caches."""

from collections.abc import Mapping
from typing import Any, TypeVar

from lab.worlds.volume.faults import FAULTS
from tenure.base.instants import seconds
from tenure.protocol.volume.server.terms import Terms
from tenure.sim.kernel.world import AnyTrial

T = TypeVar("T")
SLOW = Terms(
    term_ns=seconds(30),  # ten times the default, so that an hour has a tenth of the messages
    lease_ns=seconds(600),
    keep_ns=seconds(60),
    mute_ns=seconds(60),
)

SKEW_AT_THE_BOUND = 40_000
"""How far the rate of a clock may be off, in a million: twice that is within 13/12."""


class VolumeTrial(AnyTrial, frozen=True, kw_only=True):
    """The settings of a run of one seed of caches."""

    terms: Terms = SLOW
    """The terms. The mode and all lengths but t_v are drawn anew."""
    clients: int = 3
    keys: int = 4
    owners: bool | None = None
    """Whether owners serve, with managers and lookups, or one server without; None: every other
    seed.
    """
    fixed: Mapping[str, Any] = {}
    """The parts of the world that are fixed, by the names that `drawn` is called with."""
    faults: tuple[str, ...] = FAULTS.kinds

    def drawn(self, name: str, value: T) -> T:
        """The value that the trial fixes under this name; otherwise `value`, which was drawn."""
        fixed: T = self.fixed.get(name, value)
        return fixed

    @property
    def has_owners(self) -> bool:
        """Whether owners serve in this world."""
        return self.seed % 2 == 1 if self.owners is None else self.owners
