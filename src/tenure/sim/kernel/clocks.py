"""The clocks of simulated processes: each runs at its own rate, from its own zero.

Integers throughout, so that a run is the same on every machine. A rate is a count of local
nanoseconds in a million real ones.
"""

from tenure.base.instants import FAR_FUTURE, Instant

MILLION = 1_000_000


class SimClock:
    """Maps real time to one process's time and back."""

    __slots__ = ("base", "rate", "stopped", "stops_in_suspend", "wall_behind")

    def __init__(self, base: int, rate: int = MILLION) -> None:
        self.base = base
        self.rate = rate
        self.stopped = 0
        """Local time that passed unseen. Only a clock that stops in suspend has any."""
        self.stops_in_suspend = False
        """Whether the clock stands still in suspend. Only the clock of a mutant does: every belief
        relies on a clock that goes on.
        """
        self.wall_behind = 0
        """How far the wall clock of the same host was set back in total."""

    def local(self, real: int) -> Instant:
        """The time that the clock shows at a real instant."""
        return Instant(self.base - self.stopped + real * self.rate // MILLION)

    def wall(self, real: int) -> Instant:
        """The time that the wall clock of the same host shows. No machine may rely on it."""
        return Instant(self.local(real) - self.wall_behind)

    def real(self, local: Instant) -> int:
        """The first real instant at which the clock shows `local`."""
        if local >= FAR_FUTURE:
            return FAR_FUTURE
        return -(-(local - self.base + self.stopped) * MILLION // self.rate)

    def stop_for(self, real_ns: int) -> None:
        """Count `real_ns` of real time as not having passed."""
        self.stopped += real_ns * self.rate // MILLION

    def set_back(self, by_ns: int) -> None:
        """Set the wall clock back, as the program that keeps the host's time may do."""
        self.wall_behind += by_ns
