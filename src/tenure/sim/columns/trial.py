"""What to simulate of the store."""

from tenure.base.instants import seconds
from tenure.sim.columns.strikes import FAULTS
from tenure.sim.kernel.world import AnyTrial


class ColumnsTrial(AnyTrial, frozen=True, kw_only=True):
    """What one seed of the store runs."""

    patience_ns: int = seconds(10)
    """What a request may take; faults are as frequent as this is long."""
    nodes: int = 0
    """At the beginning; 0: as many as are drawn."""
    spares: int = 2
    """Nodes that wait to be added."""
    clients: int = 0
    """0: as many as are drawn."""
    keys: int = 0
    """Of each kind: so many rows, sets and owned rows; 0: as many as are drawn."""
    faults: tuple[str, ...] = FAULTS.kinds
    skew: int = 100
    """How far the rate of a clock may be off, in a million."""
    apart_us: int = 5_000_000
    """How far a wall clock may be off the right time: so two may be twice as far apart."""
