"""What to simulate."""

import msgspec

from tenure.protocol.lease.timing import PAPER, Timing
from tenure.sim.lease.strikes import KINDS


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What one seed runs."""

    seed: int
    hours: float = 1.0
    timing: Timing = PAPER
    owners: int = 3
    spare_owners: int = 2
    lookups: int = 2
    managers: int = 2
    virtual_nodes: int | None = None
    """None: drawn."""
    journal: str | None = None
    """`memory`, with one manager, or `durable`; None: drawn."""
    faults: tuple[str, ...] = KINDS
    fault_rate: float = 1.0
    """How often they strike, beside what is drawn."""
