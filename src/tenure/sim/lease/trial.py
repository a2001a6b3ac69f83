"""The trial: what to simulate around managers."""

from tenure.protocol.lease.timing import Timing
from tenure.sim.kernel.world import AnyTrial

SKEW_AT_THE_BOUND = 40_000
"""Parts in a million, up and down: rates of 0.96 and 1.04 are 8.33 % apart, as the paper allows."""


class ManagedTrial(AnyTrial, frozen=True, kw_only=True):
    """The settings of a run of one seed with managers."""

    timing: Timing
    spare_owners: int = 2
    managers: int = 2
    virtual_nodes: int | None = None
    """The number of virtual nodes; None if it is to be drawn."""
    pools: int | None = None
    """The number of pools; None if it is to be drawn."""
    journal: str | None = None
    """`memory`, with one manager, or `durable`. None if it is to be drawn."""
