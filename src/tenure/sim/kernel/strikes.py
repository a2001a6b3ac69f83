"""The faults that strike at times of their own, and that any world may have."""

from collections.abc import Sequence
from typing import TypeVar

from tenure.sim.kernel.clocks import SimClock
from tenure.sim.kernel.faults import Fault, terms_apart
from tenure.sim.kernel.network import Network
from tenure.sim.kernel.process import SimProcess, Site

P = TypeVar("P", bound=SimProcess)


class Strikes:
    """The faults of processes, clocks and connections."""

    def __init__(self, site: Site, network: Network, clocks: dict[str, SimClock]) -> None:
        self.site = site
        self.network = network
        self.clocks = clocks
        self.random = site.random
        self.span = site.faults.span

    def any_of(self, processes: Sequence[P]) -> P | None:
        """One of the processes that run. None if none of them runs."""
        running = [process for process in processes if process.alive and not process.is_frozen]
        return self.random.choice(running) if running else None

    def crash(self, processes: Sequence[SimProcess]) -> None:
        """Kill one of the processes. Another one starts in its place."""
        process = self.any_of(processes)
        if process is not None:
            self.site.bring_down(process)

    def freeze(self, span: int, *, suspended: bool = False) -> None:
        """Stop any process for a while."""
        process = self.any_of(self.random.choice(self.site.groups()))
        if process is not None:
            process.freeze(span, suspended=suspended)

    def short_pause(self) -> None:
        """Stop a process for less time than anybody would notice."""
        self.freeze(self.span(0.001, 0.3))

    def pause_past_the_term(self) -> None:
        """Stop a process for long enough that its term may have expired."""
        self.freeze(self.span(0.8, 2.5))

    def suspend(self) -> None:
        """Suspend the machine of a process. Its clock must go on."""
        self.freeze(self.span(0.2, 2.5), suspended=True)

    def cut(self, one: str, other: str, *, both_ways: bool, most_terms: float = 2.5) -> None:
        """Let nothing pass between two slots, or nothing in one direction."""
        ends = [one, other]
        self.random.shuffle(ends)
        self.site.tell(ends[0], "cut from", ends[1])
        lasts_ns = self.span(0.1, most_terms)
        self.network.cut(ends[0], ends[1], lasts_ns, both_ways=both_ways)

    def cut_between(
        self, some: Sequence[SimProcess], others: Sequence[SimProcess], *, both_ways: bool
    ) -> None:
        """Cut one of `some` from one of `others`, in one direction or both ways."""
        one, other = self.any_of(some), self.any_of(others)
        if one is not None and other is not None:
            self.cut(one.slot, other.slot, both_ways=both_ways)

    def wall_clocks_set_back(self) -> None:
        """Set the wall clocks of all hosts back, as if their time server had been wrong. No process
        may notice. They go back by more than a successor waits; otherwise a process that relies on
        them could be right by luck.
        """
        by_ns = self.span(1.5, 6.0)
        for clock in self.clocks.values():
            clock.set_back(by_ns)
        self.site.tell("world", "wall clocks set back", f"{by_ns / 1e9:.1f} s")


SHORT_PAUSE = Fault("short pause", terms_apart, Strikes.short_pause)
PAUSE_PAST_THE_TERM = Fault("pause past the term", terms_apart, Strikes.pause_past_the_term)
SUSPEND = Fault("suspend", terms_apart, Strikes.suspend)
WALL_CLOCKS = Fault(
    "wall clocks set back",
    # often: this disturbs nothing, and matters only together with another fault
    lambda strength: float(2 * 10**strength),
    Strikes.wall_clocks_set_back,
)
