"""The trial of a simulation of entities."""

from typing import Literal

from lab.worlds.entity.faults import FAULTS
from tenure.protocol.lease.timing import PAPER, Timing
from tenure.sim.app.world import AppTrial


class EntityTrial(AppTrial, frozen=True, kw_only=True):
    """The settings of a run of one seed of entities."""

    timing: Timing = PAPER
    journal: str | None = None
    stored: bool | None = None
    """Whether there is a store; None means that it is drawn."""
    reads: Literal["owner", "everywhere", "mixed"] | None = None
    """Where entities are read; in mixed worlds some processes read copies. None means that it is
    drawn.
    """
    keys: int = 4
    calls_apart: float | None = None
    """The pause of each user between two calls, in terms; None means that it is drawn."""
    faults: tuple[str, ...] = FAULTS.kinds
