"""A scenario: what the demo does to its service, one of several choices."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from random import Random, SystemRandom
from statistics import median

from tenure.base.instants import Instant
from tenure.cli.demo.places import OwnerPlace
from tenure.cli.demo.service import PresenceService


class Scenario(ABC):
    """Acts on the service, tells what it does, and measures what comes of it."""

    measures = ""
    """The name that `times` has in `Summary`."""
    ends_the_demo = False
    """Whether the demo ends with the scenario, instead of at its own time."""

    def __init__(
        self, service: PresenceService, tell: Callable[[str], None], random: Random | None = None
    ) -> None:
        self.times: list[float] = []
        """The times in seconds; each scenario measures something else."""
        self.counts: Counter[str] = Counter()
        """How often each thing happened, by the names of `Summary`."""
        self.lapsed = 0
        """Ranges whose lease ran out because the scenario stopped their owner."""
        self._service = service
        self._tell = tell
        self._random = random or SystemRandom()

    @abstractmethod
    async def play(self, end: Instant) -> None:
        """Act until it is nearly `end`."""

    def figures(self) -> dict[str, float]:
        """Return what the scenario measured, by the names of `Summary`."""
        if not self.times:
            return {**self.counts}
        return {
            **self.counts,
            f"{self.measures}_seconds": round(median(self.times), 3),
            f"slowest_{self.measures}_seconds": round(max(self.times), 3),
        }

    def _share(self, place: OwnerPlace) -> float:
        return self._service.shares().get(place.address, 0.0)
