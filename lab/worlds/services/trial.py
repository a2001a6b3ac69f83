"""The trial of a simulation of services."""

from lab.worlds.services.faults import FAULTS
from tenure.protocol.lease.timing import PAPER, Timing
from tenure.sim.app.world import AppTrial


class ServicesTrial(AppTrial, frozen=True, kw_only=True):
    """The settings of a run of one seed of services."""

    timing: Timing = PAPER
    journal: str | None = None
    topics: int = 3
    devices: int = 3
    documents: int = 3
    stored: bool | None = None
    """Whether documents have a store; None: drawn."""
    apart: float | None = None
    """How far what each user does lies apart, in terms; None: drawn."""
    faults: tuple[str, ...] = FAULTS.kinds
