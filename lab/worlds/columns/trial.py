"""The trial of a simulation of the store."""

from lab.worlds.columns.strikes import FAULTS
from tenure.base.instants import seconds
from tenure.sim.kernel.world import AnyTrial


class ColumnsTrial(AnyTrial, frozen=True, kw_only=True):
    """The settings of a run of one seed of the store."""

    patience_ns: int = seconds(10)
    """How long a request may take. Faults come as often as this is long."""
    nodes: int = 0
    """How many nodes there are at the beginning; 0 means that the number is drawn."""
    spares: int = 2
    """How many nodes wait to be added."""
    clients: int = 0
    """How many there are; 0 means that the number is drawn."""
    keys: int = 0
    """How many rows, sets and owned rows there are, of each kind; 0 means that the
    number is drawn.
    """
    faults: tuple[str, ...] = FAULTS.kinds
    skew: int = 100
    """How far the rate of a clock may be wrong, in a million."""
    apart_us: int = 5_000_000
    """How far a wall clock may be from the right time: two clocks may be twice as far apart."""
