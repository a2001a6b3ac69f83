"""Finding the manager that leads, when the one that did is quiet (P24).

All managers are known to all clients. The search asks every one of them at once, since only the
leader answers for itself, and again after a while that grows and is jittered, so that a pool whose
manager restarts does not come back as one wave.
"""

from random import Random

from tenure.base.instants import FAR_FUTURE, MILLISECOND_NS, Instant
from tenure.protocol.lease.patience import Patience

FIRST_PAUSE_NS = 100 * MILLISECOND_NS
"""A new leader of the default preset answers about 2 s after a crash: asked 5 times until then."""
LONGEST_PAUSE_NS = 2_000 * MILLISECOND_NS
"""With ten thousand clients, five thousand small messages a second to each manager."""


class Search:
    """When to ask all managers next."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.at = FAR_FUTURE
        self._pause_ns = FIRST_PAUSE_NS

    @property
    def is_on(self) -> bool:
        """Whether a leader is being looked for."""
        return self.at != FAR_FUTURE

    def start(self, now: Instant) -> None:
        """Look for a leader, from now on."""
        if not self.is_on:
            self._pause_ns = FIRST_PAUSE_NS
            self.at = now

    def asked(self, now: Instant, patience: Patience, longest_ns: int = LONGEST_PAUSE_NS) -> None:
        """All managers were asked: ask again after a pause, of `longest_ns` at the most, unless
        answers are known to take longer.
        """
        pause_ns = min(self._pause_ns, longest_ns)
        jitter = 0.5 + self.random.random()
        self.at = Instant(now + round(patience.at_least(pause_ns) * jitter))
        self._pause_ns = min(2 * pause_ns, LONGEST_PAUSE_NS)

    def found(self) -> None:
        """A leader answered."""
        self.at = FAR_FUTURE
