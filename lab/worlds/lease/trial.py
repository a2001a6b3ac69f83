"""The trial: what to simulate."""

from lab.worlds.lease.strikes import FAULTS
from tenure.protocol.lease.timing import PAPER, Timing
from tenure.sim.lease.trial import ManagedTrial


class Trial(ManagedTrial, frozen=True, kw_only=True):
    """The settings of a run of one seed of leases."""

    timing: Timing = PAPER
    owners: int = 3
    lookups: int = 2
    faults: tuple[str, ...] = FAULTS.kinds
