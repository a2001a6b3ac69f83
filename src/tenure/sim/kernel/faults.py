"""Faults, and how often they strike: every seed draws its own mix (swarm testing).

A seed with all faults at once rarely gets deep into anything. So each seed chooses which kinds of
fault it has, and how often each strikes; some seeds are almost quiet with one very frequent fault.
Rates are given in the preset's own measure, its term, so that a run is as eventful with a term of a
second as with one of a minute.

A world has a table of faults. Some strike at times of their own, and the table says what they do;
others strike events that happen anyway: a message, a timer, an action.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Literal, NamedTuple, TypeVar

from tenure.base.instants import MILLISECOND_NS
from tenure.errors import ConfigurationError
from tenure.sim.kernel.scene import Scene

T = TypeVar("T")
Rate = Callable[[float], float]
"""Computes how often a fault strikes from its drawn strength, between 0 and 1."""


def terms_apart(strength: float) -> float:
    """How often a fault strikes in a term on average, if it strikes at times of its own."""
    return float(0.05 * 30**strength)


def each_time(strength: float) -> float:
    """The chance that the fault strikes, each time that it may."""
    return float(0.01 * 20**strength)


class Fault(NamedTuple):
    """One kind of fault."""

    name: str
    rate: Rate = each_time
    strike: Callable[[Any], None] | None = None
    """The function that strikes, given the world's strikes. None for a fault that strikes events
    that happen anyway.
    """


DROP = Fault("drop")
DUPLICATE = Fault("duplicate")
REORDER = Fault("reorder")
DELAY = Fault("delay")
STRAGGLER = Fault("straggler", lambda strength: float(0.005 * 20**strength))
STOPPED = Fault("stopped at a point", lambda strength: float(0.0005 * 20**strength))
KILLED = Fault("killed at a point", lambda strength: float(0.0005 * 20**strength))
LATE_TIMER = Fault("late timer", lambda strength: float(0.05 * 10**strength))
SKEW = Fault("skew")
"""Clocks run at different rates, as long as the world lasts."""
MESSAGE_FAULTS = (DROP, DUPLICATE, REORDER, DELAY, STRAGGLER)
POINT_FAULTS = (STOPPED, KILLED)


class FaultTable:
    """All kinds of fault that a world may have, and names for several of them at once."""

    def __init__(
        self,
        faults: Sequence[Fault],
        aliases: Mapping[str, Sequence[Fault]] | None = None,
        idle: Sequence[Fault] = (),
    ) -> None:
        self.faults = faults
        """All kinds, including those that are `idle`: these strike nothing in this world, and are
        drawn nevertheless, so that each seed gives the same run as before.
        """
        there = tuple(fault for fault in faults if fault not in idle)
        self.idle = idle
        self.aliases = {**(aliases or {}), "all": there, "none": ()}
        self.kinds = tuple(fault.name for fault in there)

    def chosen(self, names: str) -> tuple[str, ...]:
        """The kinds that a comma-separated list of names and aliases stands for, in a
        fixed order.
        """
        wanted: set[str] = set()
        for name in (part.strip() for part in names.split(",")):
            if name in self.aliases:
                wanted.update(fault.name for fault in self.aliases[name])
            elif name in self.kinds:
                wanted.add(name)
            else:
                there = ", ".join((*self.aliases, *self.kinds))
                raise ConfigurationError(f"no fault is called {name!r}; there are {there}")
        return tuple(kind for kind in self.kinds if kind in wanted)


LATEST_TIMER_TERMS = 0.3
AtAPoint = Literal["", "stopped", "killed"]


class Mix:
    """The mix of a run: the kinds of fault that it has, and how often each strikes."""

    def __init__(
        self,
        random: Random,
        table: FaultTable,
        chosen: Sequence[str],
        times: float = 1.0,
        *,
        has_all: bool = False,
    ) -> None:
        self.rates: dict[str, float] = {}
        for fault in table.faults:
            is_on, strength = random.random() < 0.5, random.random()
            if fault.name in chosen and (is_on or has_all):
                self.rates[fault.name] = times * fault.rate(strength)

    def __str__(self) -> str:
        return ", ".join(f"{name} {rate:.3g}" for name, rate in self.rates.items()) or "none"


class FaultDice:
    """Lets faults strike as the mix says, while it is on."""

    def __init__(self, scene: Scene, mix: Mix, term_ns: int) -> None:
        self.scene = scene
        self.mix = mix
        self.random = scene.random
        self.term_ns = term_ns
        self.counts: Counter[str] = Counter()
        self.is_on = False
        self._phase = 0
        rates = mix.rates
        self._lose = rates.get(DROP.name, 0.0)
        self._double = rates.get(DUPLICATE.name, 0.0)
        self._shuffle = rates.get(REORDER.name, 0.0)
        self._straggle = rates.get(STRAGGLER.name, 0.0)
        self._late = self._shuffle + rates.get(DELAY.name, 0.0) + self._straggle
        self._late_timer = rates.get(LATE_TIMER.name, 0.0)
        self._stop = rates.get(STOPPED.name, 0.0)
        self._kill = rates.get(KILLED.name, 0.0)
        if SKEW.name in rates:
            self.counts[SKEW.name] += 1

    # --- in two phases ---

    def begin(self, table: FaultTable, strikes: Any) -> None:
        """Begin the faults: those of the table that strike at times of their own call `strikes`."""
        self.is_on = True
        self._phase += 1
        for fault in table.faults:
            if fault.strike is not None and fault.name in self.mix.rates:
                self._schedule(fault, strikes)

    def end(self) -> None:
        """Let no more faults strike."""
        self.is_on = False

    def _schedule(self, fault: Fault, strikes: Any) -> None:
        wait_terms = self.random.expovariate(self.mix.rates[fault.name])
        at = self.scene.now + round(wait_terms * self.term_ns)
        self.scene.at(at, self._strike, (fault, strikes, self._phase))

    def _strike(self, which: tuple[Fault, Any, int]) -> None:
        fault, strikes, phase = which
        if not self.is_on or phase != self._phase or fault.strike is None:
            return
        self.counts[fault.name] += 1
        fault.strike(strikes)
        self._schedule(fault, strikes)

    def span(self, least_terms: float, most_terms: float) -> int:
        """A random time between `least_terms` and `most_terms` terms."""
        span = least_terms + (most_terms - least_terms) * self.random.random()
        return round(span * self.term_ns)

    def strikes(self, fault: Fault) -> bool:
        """Whether `fault` strikes what is happening now."""
        rate = self.mix.rates.get(fault.name, 0.0)
        if self.is_on and rate and self.random.random() < rate:
            self.counts[fault.name] += 1
            return True
        return False

    def struck(self, fault: Fault, among: Sequence[T]) -> list[T]:
        """Those that `fault` strikes now, each for itself."""
        rate = self.mix.rates.get(fault.name, 0.0)
        if not self.is_on or not rate:
            return []
        draw = self.random.random
        struck = [each for each in among if draw() < rate]
        if struck:
            self.counts[fault.name] += len(struck)
        return struck

    # --- what strikes a message ---

    def copies_of_a_message(self) -> int:
        """How many times a message arrives."""
        if not self.is_on:
            return 1
        if self._lose and self.random.random() < self._lose:
            self.counts[DROP.name] += 1
            return 0
        if self._double and self.random.random() < self._double:
            self.counts[DUPLICATE.name] += 1
            return 2
        return 1

    def lateness_of_a_message(self) -> tuple[int, bool]:
        """How much later a message arrives, and whether it keeps its place in the order."""
        if not self.is_on or not self._late:
            return 0, True
        drawn = self.random.random()
        if drawn < self._straggle:
            self.counts[STRAGGLER.name] += 1
            return self.span(0.1, 1.2), False
        if drawn < self._straggle + self._shuffle:
            self.counts[REORDER.name] += 1
            return self.random.randrange(500 * MILLISECOND_NS), False
        if drawn < self._late:
            self.counts[DELAY.name] += 1
            return self.span(0.01, 0.2), True
        return 0, True

    # --- what strikes between deciding and doing ---

    def at_a_point(self) -> AtAPoint:
        """The fault that strikes a process before it carries out an action."""
        drawn = self.random.random()
        if drawn < self._stop:
            self.counts[STOPPED.name] += 1
            return "stopped"
        if drawn > 1.0 - self._kill:
            self.counts[KILLED.name] += 1
            return "killed"
        return ""

    def lateness_of_a_timer(self) -> int:
        """How much later than requested a process is woken. Such a process is starved, but messages
        are not.
        """
        rate = self._late_timer
        if not self.is_on or not rate or self.random.random() >= rate:
            return 0
        self.counts[LATE_TIMER.name] += 1
        return self.span(0.005, LATEST_TIMER_TERMS)

    @property
    def latest_timer_ns(self) -> int:
        """The most by which a process may be woken late."""
        return round(LATEST_TIMER_TERMS * self.term_ns) if self._late_timer else 0
