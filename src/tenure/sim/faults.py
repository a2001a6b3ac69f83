"""What goes wrong, and how often: every seed draws its own mix (swarm testing).

A seed that has everything go wrong at once rarely gets deep into anything. So each seed chooses
which kinds of fault it has at all, and how often each strikes; some seeds are almost quiet with one
very frequent fault. Rates are given in the preset's own measure, its term, so that a run is as
eventful with a term of a second as with one of a minute.
"""

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

from tenure.base.instants import MILLISECOND_NS
from tenure.errors import ConfigurationError
from tenure.protocol.lease.client_events import TellManager
from tenure.protocol.lease.leader import events as manager_events
from tenure.protocol.lease.owner import events as owner_events
from tenure.sim.journal import JOURNAL
from tenure.sim.process import JOURNAL_ACTIONS, ManagerProcess, OwnerProcess, Process

if TYPE_CHECKING:
    from tenure.sim.world import World

MESSAGE_FAULTS = ("drop", "duplicate", "reorder", "delay", "straggler")
JOURNAL_FAULTS = ("journal slow", "journal answer lost", "journal failed")
WALL_CLOCKS = "wall clocks set back"
CUTS = ("one-way cut", "two-way cut", "cut from the journal")
HAND_OFF_FAULTS = ("hand-off slow", "hand-off broken", "import lost")
POINT_FAULTS = ("stopped at a point", "killed at a point")
TIMED_FAULTS = (
    "crash of an owner",
    "crash of a manager",
    "crash of a lookup",
    "short pause",
    "pause past the term",
    "suspend",
    *CUTS,
    "leaving",
    "burst of joins",
    "two of one name",
    "leadership revoked",
    "graceful stop of a manager",
    WALL_CLOCKS,
    "connection lost",
    "first thread ended",
    "steering",
    "load",
)
LATE_TIMER = "late timer"
SKEW = "skew"
KINDS = (
    *TIMED_FAULTS,
    *MESSAGE_FAULTS,
    *JOURNAL_FAULTS,
    *HAND_OFF_FAULTS,
    *POINT_FAULTS,
    LATE_TIMER,
    SKEW,
)
ALIASES = {
    "crash": TIMED_FAULTS[:3],
    "pause": TIMED_FAULTS[3:5],
    "cut": CUTS,
    "message": MESSAGE_FAULTS,
    "journal": JOURNAL_FAULTS,
    "hand-off": HAND_OFF_FAULTS,
    "point": POINT_FAULTS,
    "all": KINDS,
    "none": (),
}

SENDING = (TellManager, TellManager, manager_events.TellClient, manager_events.TellClients)
STOPPABLE = (*SENDING, *JOURNAL_ACTIONS, owner_events.Hold, owner_events.SendLast)


def chosen_kinds(names: str) -> tuple[str, ...]:
    """The kinds that a comma-separated list of names and aliases means, in a fixed order."""
    wanted: set[str] = set()
    for name in (part.strip() for part in names.split(",")):
        if name in ALIASES:
            wanted.update(ALIASES[name])
        elif name in KINDS:
            wanted.add(name)
        else:
            msg = f"no fault is called {name!r}; there are {', '.join((*ALIASES, *KINDS))}"
            raise ConfigurationError(msg)
    return tuple(kind for kind in KINDS if kind in wanted)


class Mix:
    """Which kinds of fault a run has, and how often each strikes."""

    def __init__(self, random: Random, kinds: tuple[str, ...], times: float = 1.0) -> None:
        self.rates: dict[str, float] = {}
        for kind in KINDS:
            is_on, strength = random.random() < 0.5, random.random()
            if kind in kinds and is_on:
                self.rates[kind] = times * self._rate(kind, strength)

    @staticmethod
    def _rate(kind: str, strength: float) -> float:
        """Timed faults: times a term. Others: the chance each time."""
        if kind == WALL_CLOCKS:  # often: it disturbs nothing, and counts only beside something else
            return float(2 * 10**strength)
        if kind in TIMED_FAULTS:
            return float(0.05 * 30**strength)
        if kind in POINT_FAULTS:
            return float(0.0005 * 20**strength)
        if kind == "straggler":
            return float(0.005 * 20**strength)
        if kind == LATE_TIMER:
            return float(0.05 * 10**strength)
        return float(0.01 * 20**strength)

    def __str__(self) -> str:
        return ", ".join(f"{kind} {rate:.3g}" for kind, rate in self.rates.items()) or "none"


class Faults:
    """Strikes where the mix says, while it is on."""

    def __init__(self, world: "World", mix: Mix) -> None:
        self.world = world
        self.mix = mix
        self.random = world.random
        self.term_ns = world.timing.term_ns
        self.counts: Counter[str] = Counter()
        self.is_on = False
        rates = mix.rates
        self._lose = rates.get("drop", 0.0)
        self._double = rates.get("duplicate", 0.0)
        self._shuffle = rates.get("reorder", 0.0)
        self._delay = rates.get("delay", 0.0)
        self._straggle = rates.get("straggler", 0.0)
        self._late = self._shuffle + self._delay + self._straggle
        self._late_timer = rates.get(LATE_TIMER, 0.0)
        self._stop = rates.get("stopped at a point", 0.0)
        self._kill = rates.get("killed at a point", 0.0)
        if SKEW in rates:
            self.counts[SKEW] += 1

    def count(self, kind: str) -> None:
        """One more of `kind`."""
        self.counts[kind] += 1

    # --- in two phases ---

    def begin(self) -> None:
        """Let things go wrong."""
        self.is_on = True
        for kind in TIMED_FAULTS:
            if kind in self.mix.rates:
                self._schedule(kind)

    def end(self) -> None:
        """Let nothing more go wrong, and mend what is broken."""
        self.is_on = False
        self.world.network.cuts.clear()

    def _schedule(self, kind: str) -> None:
        wait_terms = self.random.expovariate(self.mix.rates[kind])
        at = self.world.now + round(wait_terms * self.term_ns)
        self.world.at(at, self._strike, (kind, self.world.phase))

    def _strike(self, which: tuple[str, int]) -> None:
        kind, phase = which
        if not self.is_on or phase != self.world.phase:
            return
        self.count(kind)
        strike: Callable[[], None] = getattr(self, "_" + kind.replace(" ", "_").replace("-", "_"))
        strike()
        self._schedule(kind)

    # --- faults that strike at a time ---

    def _any(self, processes: list[Any]) -> Any:
        running = [process for process in processes if process.alive and not process.is_frozen]
        return self.random.choice(running) if running else None

    def _span(self, least_terms: float, most_terms: float) -> int:
        span = least_terms + (most_terms - least_terms) * self.random.random()
        return round(span * self.term_ns)

    def _down(self, process: Process | None) -> None:
        if process is not None:
            process.kill()
            self.world.restart_later(process.slot, self._span(0.01, 2.0))

    def _crash_of_an_owner(self) -> None:
        self._down(self._any(self.world.owners()))

    def _crash_of_a_manager(self) -> None:
        self._down(self._any(self.world.managers()))

    def _crash_of_a_lookup(self) -> None:
        self._down(self._any(self.world.lookups()))

    def _freeze(self, span: int, *, suspended: bool = False) -> None:
        kinds = (self.world.managers(), self.world.owners(), self.world.lookups())
        process = self._any(list(self.random.choice(kinds)))
        if process is not None:
            process.freeze(span, suspended=suspended)

    def _short_pause(self) -> None:
        self._freeze(self._span(0.001, 0.3))

    def _pause_past_the_term(self) -> None:
        self._freeze(self._span(0.8, 2.5))

    def _suspend(self) -> None:
        self._freeze(self._span(0.2, 2.5), suspended=True)

    def _cut(self, other: str | None, *, both_ways: bool, most_terms: float = 2.5) -> None:
        """Part some manager and `other`."""
        manager = self._any(self.world.managers())
        if other is not None and manager is not None:
            ends = [other, manager.slot]
            self.random.shuffle(ends)
            self.world.tell(ends[0], "cut from", ends[1])
            lasts_ns = self._span(0.1, most_terms)
            self.world.network.cut(ends[0], ends[1], lasts_ns, both_ways=both_ways)

    def _client(self) -> str | None:
        client: Process | None = self._any(self.world.clients())
        return None if client is None else client.slot

    def _one_way_cut(self) -> None:
        self._cut(self._client(), both_ways=False)

    def _two_way_cut(self) -> None:
        self._cut(self._client(), both_ways=True)

    def _cut_from_the_journal(self) -> None:
        """Clients still reach the manager, and it them: for so long that another leads, and has
        waited out what this one may have promised.
        """
        self._cut(JOURNAL, both_ways=self.random.random() < 0.5, most_terms=5.0)

    def _leaving(self) -> None:
        """One leaves, or several at once."""
        there = [owner for owner in self.world.owners() if owner.alive and not owner.is_frozen]
        together = self.random.choice((1, 1, 2, len(there)))
        for owner in self.random.sample(there, min(together, len(there))):
            self.world.tell(owner.slot, "is asked to leave")
            self._leave(owner)
            self.world.restart_later(owner.slot, self._span(0.5, 3.0))

    def _leave(self, owner: OwnerProcess) -> None:
        """At once, or after handing over what it can until a deadline."""
        if self.random.random() < 0.5:
            owner.post(owner_events.DrainRequested())
            at = self.world.now + self._span(0.1, 2.0)
            self.world.at(at, owner.post, owner_events.CloseRequested())
        else:
            owner.post(owner_events.CloseRequested())

    def _burst_of_joins(self) -> None:
        for slot in self.world.spare_slots():
            self.world.restart_later(slot, self.random.randrange(200) * MILLISECOND_NS)

    def _two_of_one_name(self) -> None:
        owner = self._any(self.world.owners())
        if owner is not None:
            self.world.start_twin(owner)

    def _leadership_revoked(self) -> None:
        """The journal took a leader for dead: the seat is vacant, its holder knows nothing."""
        self.world.journal.vacate()
        self.world.tell("journal", "leadership revoked")

    def _graceful_stop_of_a_manager(self) -> None:
        manager = self._any(self.world.managers())
        if manager is not None:
            manager.post(manager_events.StopRequested())
            self.world.at(self.world.now + 100 * MILLISECOND_NS, self._down, manager)

    def _wall_clocks_set_back(self) -> None:
        """On all hosts, as after their time server was wrong. Nobody is to notice: so it is by more
        than a successor waits, or who counted on it would be lucky.
        """
        by_ns = self._span(1.5, 6.0)
        for clock in self.world.clocks.values():
            clock.set_back(by_ns)
        self.world.tell("world", "wall clocks set back", f"{by_ns / 1e9:.1f} s")

    def _connection_lost(self) -> None:
        """A living owner's connection breaks; it may hear of that later than its manager."""
        owner = self._any(self.world.owners())
        if owner is not None:
            self.world.network.lose_connections(owner)

    def _first_thread_ended(self) -> None:
        """The first thread of an owner ends, and its others go on."""
        owner = self._any(self.world.owners())
        if owner is not None:
            self.world.tell(owner.slot, "goes on without its first thread")
            owner.on_host.first_thread_ended = True

    def _steering(self) -> None:
        self.world.operator.steer()

    def _load(self) -> None:
        """Not a fault, but what moves ranges from owners that do well: other keys are hot."""
        self.world.traffic.change()

    # --- faults that strike a message ---

    def copies_of_a_message(self) -> int:
        """How often it arrives."""
        if not self.is_on:
            return 1
        if self._lose and self.random.random() < self._lose:
            self.counts["drop"] += 1
            return 0
        if self._double and self.random.random() < self._double:
            self.counts["duplicate"] += 1
            return 2
        return 1

    def lateness_of_a_message(self) -> tuple[int, bool]:
        """How much later it arrives, and whether it keeps its place in the order."""
        if not self.is_on or not self._late:
            return 0, True
        drawn = self.random.random()
        if drawn < self._straggle:
            self.counts["straggler"] += 1
            return self._span(0.1, 1.2), False
        if drawn < self._straggle + self._shuffle:
            self.counts["reorder"] += 1
            return self.random.randrange(500 * MILLISECOND_NS), False
        if drawn < self._late:
            self.counts["delay"] += 1
            return self._span(0.01, 0.2), True
        return 0, True

    # --- faults that strike between deciding and doing ---

    def strikes_before(self, process: Process, action: Any) -> bool:
        """Stop or kill the process before it carries out `action`, perhaps."""
        if not self.is_on or not isinstance(action, STOPPABLE):
            return False
        drawn = self.random.random()
        if drawn < self._stop:
            self.counts["stopped at a point"] += 1
            process.freeze(self._span(0.001, 2.0))
            return True
        if drawn > 1.0 - self._kill:
            self.counts["killed at a point"] += 1
            self._down(process)
            return True
        return False

    def lateness_of_a_timer(self) -> int:
        """How much later than asked for a process is woken: it is starved, messages are not."""
        rate = self._late_timer
        if not self.is_on or not rate or self.random.random() >= rate:
            return 0
        self.counts[LATE_TIMER] += 1
        return self._span(0.005, 0.3)

    def lateness_of_a_look(self) -> int:
        """How much later a starved witness tells what it saw: by then the pid may be another's."""
        if not self.is_on or not self._strikes(LATE_TIMER):
            return 0
        return self._span(0.05, 1.0)

    # --- faults that strike the journal ---

    def of_a_journal_call(self, process: ManagerProcess) -> tuple[int, bool, bool]:
        """How much later it takes effect, whether it does, and whether an answer comes."""
        if not self.is_on:
            return 0, True, True
        cuts = self.world.network.cuts
        arrives, returns = (process.slot, JOURNAL) not in cuts, (JOURNAL, process.slot) not in cuts
        late_ns = 0
        if self._strikes("journal slow"):
            late_ns = self._span(0.005, 0.3)
        if not arrives or self._strikes("journal failed"):
            return late_ns, False, False
        return late_ns, True, returns and not self._strikes("journal answer lost")

    # --- faults that strike a hand-off ---

    def breaks_a_hand_off(self) -> bool:
        """Whether the connection between the two owners breaks now."""
        return self.is_on and self._strikes("hand-off broken")

    def time_of_a_hand_off(self) -> int:
        """How much longer than usual a step takes."""
        is_slow = self.is_on and self._strikes("hand-off slow")
        return self._span(0.05, 2.5) if is_slow else 0

    def loses_an_import(self) -> bool:
        """Whether the taker loses what it has just said to have."""
        return self.is_on and self._strikes("import lost")

    def _strikes(self, kind: str) -> bool:
        rate = self.mix.rates.get(kind, 0.0)
        if rate and self.random.random() < rate:
            self.counts[kind] += 1
            return True
        return False
