"""One simulated world: its processes, and its phases of faults and of healing."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from random import Random

import msgspec

from tenure.base.instants import SECOND_NS
from tenure.sim.kernel.checkers import Violation
from tenure.sim.kernel.clocks import MILLION, SimClock
from tenure.sim.kernel.faults import SKEW, FaultDice, FaultTable, Mix
from tenure.sim.kernel.network import Network
from tenure.sim.kernel.process import SimProcess, Site
from tenure.sim.kernel.story import Story
from tenure.sim.kernel.strikes import Strikes

STORY_LINES = 60


class AnyTrial(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a run of one seed, for any tier."""

    seed: int
    hours: float = 1.0
    faults: tuple[str, ...]
    fault_rate: float = 1.0
    """The factor by which the drawn rates of faults are multiplied."""
    has_all_faults: bool = False
    """Whether every fault can strike. Otherwise a seed draws some of them."""


class World(Site):
    """All parts of one run. A tier says which processes exist, and when the world is healthy."""

    network: Network
    strikes: Strikes
    heals_every_ns: int
    """How often the world checks whether all is well again."""
    phase_ns: int
    """The measure of a phase: faults last three to fifteen times as long before all heals."""

    def __init__(self, trial: AnyTrial, table: FaultTable, story: Story) -> None:
        super().__init__(Random(trial.seed), story)
        self.hours = trial.hours
        self.table = table
        self.mended_at = 0
        """When healing began, or when something outside was last put right."""
        self.mix = Mix(
            self.random, table, trial.faults, trial.fault_rate, has_all=trial.has_all_faults
        )
        self.clocks: dict[str, SimClock] = {}
        self.slots: dict[str, SimProcess] = {}

    # --- what a tier says ---

    @property
    @abstractmethod
    def healing_bound_ns(self) -> int:
        """How long after the last fault all must be well at the latest."""

    @abstractmethod
    def first_slots(self) -> Iterable[str]:
        """The processes that exist from the beginning."""

    @abstractmethod
    def make(self, slot: str) -> SimProcess:
        """A new process for a slot."""

    @abstractmethod
    def seen_by_clients(self) -> Mapping[str, int]:
        """How often clients saw each outcome."""

    def on_started(self, process: SimProcess) -> None:
        """A process is about to begin."""

    def while_healing(self) -> None:
        """The world heals: mend what else must be mended."""

    def when_well(self, left_ns: int) -> None:
        """All is well, and nothing goes wrong until this returns. The run has `left_ns` left."""

    def story_of(self, violation: str) -> list[str]:
        """The events that led to the violation."""
        return self.story.lines(STORY_LINES)

    # --- phases ---

    def run(self, tell: Callable[[int], None] = lambda _: None) -> None:
        """Run to the end: phases of faults, each healed until all is well. Raises Violation.

        `tell` is called after each phase, with the time that has passed.
        """
        until_ns = round(self.hours * 3600 * SECOND_NS)
        self.start_all()
        while self.now < until_ns:
            self.faults.begin(self.table, self.strikes)
            span = round(self.phase_ns * (3 + 12 * self.random.random()))
            self.run_until(min(self.now + span, until_ns))
            self.end_faults()
            self.heal()
            self.when_well(until_ns - self.now)
            tell(self.now)

    def end_faults(self) -> None:
        """Let nothing more go wrong, and mend the network."""
        self.faults.end()
        self.network.cuts.clear()

    def heal(self) -> None:
        """End all faults and start everybody: within the bound, all must be well (L1)."""
        self.tell("world", "heals")
        for process in self.processes():
            process.thaw()
        self.mended_at = deadline = self.now
        while True:
            for slot in list(self.slots):
                self._restart(slot)  # also a process that was still leaving when all was healed
            self.while_healing()
            # Asked each time: a fault that was under way, such as a journal being restored, may
            # end only now. All begins anew then, and what it imposes is part of the bound. It stays
            # so when what was imposed is over: all is well soon afterwards, not at that instant.
            deadline = max(deadline, self.mended_at + self.healing_bound_ns)
            self.run_until(min(self.now + self.heals_every_ns, deadline))
            missing = self.not_well()
            if missing is None and all(process.alive for process in self.processes()):
                return
            if self.now >= deadline:
                waited = (deadline - self.mended_at) / SECOND_NS
                raise Violation(
                    "L1", f"not well {waited:.0f} s after all faults were over: {missing}"
                )

    # --- processes ---

    def start_all(self) -> None:
        """Start the processes that exist from the beginning."""
        for slot in self.first_slots():
            self._restart(slot)

    def restart_later(self, slot: str, after_ns: int) -> None:
        """Start a process in the slot after a while, if none is alive there then."""
        self.at(self.now + after_ns, self._restart, slot)

    def _restart(self, slot: str) -> None:
        present = self.slots.get(slot)
        if present is None or not present.alive:
            self.put(self.make(slot))

    def put(self, process: SimProcess) -> None:
        """Let a process begin at its slot."""
        self.slots[process.slot] = process
        self.tell(process.slot, "starts", f"process {process.uid}")
        self.on_started(process)
        process.start()

    def on_killed(self, process: SimProcess) -> None:
        """A process was killed."""
        self.network.on_killed(process)

    def clock_of(self, slot: str, skew: int) -> SimClock:
        """The clock of the slot's host; it outlives the processes there."""
        if slot not in self.clocks:
            if SKEW.name not in self.mix.rates:
                skew = 100
            drawn = self.random.choice((-skew, skew, self.random.randint(-skew, skew)))
            base = self.random.randrange(1, 1_000_000 * SECOND_NS)
            self.clocks[slot] = SimClock(base, MILLION + drawn)
        return self.clocks[slot]

    def dice(self, term_ns: int) -> FaultDice:
        """The dice that let faults strike, with rates in units of `term_ns`."""
        return FaultDice(self, self.mix, term_ns)
