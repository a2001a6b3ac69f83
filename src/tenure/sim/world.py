"""One simulated world: its time, its processes, and its phases of faults and of healing."""

import heapq
from collections import Counter
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

import msgspec

from tenure.base.instants import FAR_FUTURE, MILLISECOND_NS, SECOND_NS
from tenure.base.keys import PoolKind
from tenure.journals.memory import JournalContents
from tenure.protocol.balance.deal import Deal
from tenure.protocol.balance.policy import Policy
from tenure.protocol.balance.ring import Ring
from tenure.protocol.balance.tuning import Tuning
from tenure.protocol.balance.weighted import Weighted
from tenure.protocol.lease.leader.manager import Manager, ManagerConfig
from tenure.protocol.lease.leader.policies import policy_name
from tenure.protocol.lease.lookup.events import LookupConfig
from tenure.protocol.lease.lookup.machine import LookupMachine
from tenure.protocol.lease.owner.events import Look, Looked, OwnerConfig
from tenure.protocol.lease.owner.machine import OwnerMachine
from tenure.protocol.lease.records import AnyRecord
from tenure.protocol.lease.table import LeaseTable
from tenure.protocol.lease.timing import PAPER, Timing
from tenure.protocol.log.journal import JournalAction
from tenure.sim.canaries import NONE, Canary, LeadershipByWallClock
from tenure.sim.checkers import Checkers, Violation
from tenure.sim.clocks import MILLION, SimClock
from tenure.sim.faults import KINDS, SKEW, Faults, Mix
from tenure.sim.hosts import Hosts
from tenure.sim.journal import LATENCY_NS, failure_of
from tenure.sim.network import Network
from tenure.sim.operator import Operator
from tenure.sim.process import (
    LookupProcess,
    ManagerProcess,
    OwnerProcess,
    Process,
    random_for,
)
from tenure.sim.states import States
from tenure.sim.story import Story
from tenure.sim.traffic import Counting, Traffic
from tenure.sim.workload import Workload

POOL = "pool"
LOOK_NS = MILLISECOND_NS
"""What a look at a neighbour's process takes."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to simulate."""

    seed: int
    hours: float = 1.0
    timing: Timing = PAPER
    owners: int = 3
    spare_owners: int = 2
    lookups: int = 2
    managers: int = 2
    virtual_nodes: int | None = None
    """None: drawn."""
    journal: str | None = None
    """`memory`, with one manager, or `durable`; None: drawn."""
    faults: tuple[str, ...] = KINDS
    fault_rate: float = 1.0
    """How often they strike, beside what is drawn."""


class World:
    """Everything there is in one run."""

    def __init__(self, plan: Plan, canary: Canary = NONE) -> None:
        self.plan = plan
        self.canary = canary
        self.timing = plan.timing
        self.manager_timing = canary.timing(plan.timing)
        self.random = Random(plan.seed)
        self.pool = POOL
        self.now = 0
        self.phase = 0
        self.story = Story()
        self.notes: Counter[str] = Counter()
        self.taken_over_at = 0
        self.takeovers = 0
        self._queue: list[tuple[int, int, Callable[[Any], None], Any]] = []
        self._order = count()
        self._uids = count(1)
        self._clients: dict[int, Process] = {}
        self._thawed: dict[int, int] = {}
        self.slots: dict[str, Process] = {}
        self._draw()
        self.network = Network(self)
        self.checkers = Checkers(self)
        self.faults = Faults(self, self.mix)
        self.workload = Workload(self)
        self.states = States(self)
        self.operator = Operator(self)
        self.traffic = Traffic(self)
        self.journal = JournalContents(self.random, self._on_commit)

    def _draw(self) -> None:
        """What this seed's world is like."""
        random, plan = self.random, self.plan
        self.mix = Mix(random, plan.faults, plan.fault_rate)
        drawn = random.choice(("durable", "durable", "durable", "memory"))
        self.journal_kind = plan.journal or drawn
        managers = random.choice((1, plan.managers, plan.managers, plan.managers))
        if self.journal_kind == "memory":
            managers = 1
        self.manager_slots = tuple(f"m{i}" for i in range(managers))
        drawn_nodes = random.choice((1, 2, 4, 8, 16))
        self.virtual_nodes = plan.virtual_nodes or drawn_nodes
        self.first_policy = random.choice(("weighted", "ring"))
        """Of a hashed pool, until the operator chooses one."""
        self.kind: PoolKind = random.choice(("hashed", "hashed", "hashed", "ordered"))
        self.split_points = tuple(random.randbytes(2) for _ in range(random.randrange(12)))
        self.hand_off = random.choice((1.0, 1.0, 0.7, 0.0))
        self.fixed_names = random.random() < 0.5
        self.compact_after = random.choice((3, 20, 100, 10_000))
        self.clocks: dict[str, SimClock] = {}
        self.hosts = Hosts(random_for(random))

    # --- time ---

    def at(self, real: int, call: Callable[[Any], None], argument: Any) -> None:
        """Call later."""
        if real < FAR_FUTURE:
            heapq.heappush(self._queue, (real, next(self._order), call, argument))

    def run_until(self, real: int) -> None:
        """Let everything happen that happens before a real instant."""
        queue = self._queue
        while queue and queue[0][0] <= real:
            self.now, _, call, argument = heapq.heappop(queue)
            call(argument)
        self.now = real

    # --- phases ---

    def run(self, tell: Callable[[int], None]) -> None:
        """Run to the end: phases of faults, each healed until all is well. Raises Violation.

        `tell` is called after each phase, with the time that has passed.
        """
        self.start_all()
        end = round(self.plan.hours * 3600 * SECOND_NS)
        while self.now < end:
            self.phase += 1
            self.faults.begin()
            self.run_until(min(self.now + self._fault_span(), end))
            self.faults.end()
            self.heal()
            tell(self.now)

    def _fault_span(self) -> int:
        return round(self.timing.hold_ns * (3 + 12 * self.random.random()))

    def heal(self) -> None:
        """All faults over and everybody up: within the bound, every key has an owner (L1)."""
        self.tell("world", "heals")
        for process in self.processes():
            process.thaw()
        deadline = self.now + self.healing_bound_ns
        while True:
            for slot in list(self.slots):
                self._restart(slot)  # also who was still leaving when all was healed
            self.operator.let_go()
            self.run_until(min(self.now + self.timing.renew_ns, deadline))
            missing = self.operator.still_steers() or self.checkers.not_converged()
            if missing is None and all(process.alive for process in self.processes()):
                return
            if self.now >= deadline:
                waited = self.healing_bound_ns / SECOND_NS
                raise Violation(
                    f"L1: not well {waited:.0f} s after all faults were over: {missing}"
                )

    @property
    def promise_ns(self) -> int:
        """The longest that a manager's word outlives it, on the slowest clock."""
        timing = self.timing
        promise = timing.hold_ns + timing.on_any_clock(timing.leadership_ns)
        return timing.on_any_clock(promise)

    @property
    def healing_bound_ns(self) -> int:
        """Within which all must be well: a takeover, the wait it imposes, a straggler that begins
        another, the recalls of a new plan, and the rounds of asking that bring it about.
        """
        timing = self.timing
        rounds = 5 * timing.renew_ns + timing.recall_ns + timing.sync_ns
        watch = timing.on_any_clock(timing.leadership_ns) + 2 * timing.beat_ns
        begins_anew = self.journal_kind == "memory" or not self.checkers.committed.waited_out
        new = timing.on_any_clock(timing.longest_hold_ns) if begins_anew else 0
        return timing.on_any_clock(rounds + watch) + 2 * self.promise_ns + new + 5 * SECOND_NS

    @property
    def loss_bound_ns(self) -> int:
        """Within which a loss must be signalled, counted from the last takeover."""
        timing = self.timing
        return self.promise_ns + timing.on_any_clock(2 * timing.contact_ns) + 5 * SECOND_NS

    def on_takeover(self) -> None:
        """A manager has begun to lead."""
        self.taken_over_at = self.now
        self.takeovers += 1

    # --- processes ---

    def start_all(self) -> None:
        """Begin with everybody but the spare owners."""
        for slot in self.manager_slots:
            self._restart(slot)
        for i in range(self.plan.owners):
            self._restart(f"o{i}")
        for i in range(self.plan.lookups):
            self._restart(f"l{i}")

    def next_uid(self) -> int:
        """A number for a process."""
        return next(self._uids)

    def restart_later(self, slot: str, after_ns: int) -> None:
        """Start a process in the slot after a while, if none is alive there then."""
        self.at(self.now + after_ns, self._restart, slot)

    def _restart(self, slot: str) -> None:
        present = self.slots.get(slot)
        if present is not None and present.alive:
            return
        process = self._make(slot)
        self.slots[slot] = process
        self.tell(slot, "starts", f"process {process.uid}")
        if isinstance(process, LookupProcess):
            self.workload.start(process)
        process.start()

    def _make(self, slot: str, name: str | None = None) -> Process:
        match slot[0]:
            case "m":
                return self._make_manager(slot)
            case "o":
                return self._make_owner(slot, name)
            case _:
                return self._make_lookup(slot)

    def _make_manager(self, slot: str) -> ManagerProcess:
        if self.journal_kind == "memory":
            self.journal = JournalContents(self.random, self._on_commit)
        config = ManagerConfig(
            url=slot, timing=self.manager_timing, compact_after=self.compact_after
        )
        machine = Manager(config, random_for(self.random), self._policy)
        clock = self._clock(slot)
        if self.canary.leads_by_wall_clock:
            leadership = LeadershipByWallClock(
                slot, self.manager_timing, lambda: clock.wall(self.now)
            )
            machine.leadership = leadership
        return ManagerProcess(self, slot, clock, machine)

    def _policy(self, table: LeaseTable, chosen: str) -> Policy:
        """The policy of that name, of as many ranges as were drawn."""
        match policy_name(table, chosen or self.first_policy):
            case "deal":
                return Deal(self.split_points)
            case "ring":
                return self.traffic.watched(Ring(self.virtual_nodes))
            case _:
                return self.traffic.watched(Weighted(Tuning(ranges=self.virtual_nodes)))

    def _make_owner(self, slot: str, name: str | None) -> OwnerProcess:
        uid = next(self._uids)
        drawn = slot if self.fixed_names else f"{slot}-{uid}"
        on_host = self.hosts.begin(self.hosts.place_of(slot), self.now)
        config = OwnerConfig(
            managers=self.manager_slots,
            pool=POOL,
            name=name or drawn,
            address=f"{slot}/{uid}",
            kind=self.kind,
            process=on_host.as_process() if on_host.place.is_told else None,
            hand_off=f"{slot}/{uid}" if self.random.random() < self.hand_off else None,
        )
        machine = OwnerMachine(config, random_for(self.random))
        process = OwnerProcess(self, slot, self._clock(slot), machine, on_host)
        if self.traffic.is_told:
            process.counting = Counting(process)
        self._clients[process.uid] = process
        return process

    def _make_lookup(self, slot: str) -> LookupProcess:
        config = LookupConfig(managers=self.manager_slots, pool=POOL)
        machine = LookupMachine(config, random_for(self.random))
        process = LookupProcess(self, slot, self._clock(slot), machine)
        self._clients[process.uid] = process
        return process

    def _clock(self, slot: str) -> SimClock:
        """The clock of the slot's host; it outlives the processes there."""
        if slot not in self.clocks:
            skew = self.canary.skew if SKEW in self.mix.rates else 100
            drawn = self.random.choice((-skew, skew, self.random.randint(-skew, skew)))
            base = self.random.randrange(1, 1_000_000 * SECOND_NS)
            self.clocks[slot] = SimClock(base, MILLION + drawn)
        return self.clocks[slot]

    def start_twin(self, owner: OwnerProcess) -> None:
        """Start a second process under the name of one that lives, on another host."""
        for slot in self.spare_slots():
            present = self.slots.get(slot)
            if present is None or not present.alive:
                self.tell(slot, "starts as a twin of", owner.slot)
                self.slots[slot] = self._make(slot, owner.machine.config.name)
                self.slots[slot].start()
                return

    def look(self, owner: OwnerProcess, look: Look) -> None:
        """An owner looks at a neighbour, and says later what it saw."""
        sight = self.hosts.look(owner.on_host, look.question.process.pid)
        told_at = self.now + LOOK_NS + self.faults.lateness_of_a_look()
        self.at(told_at, owner.post, Looked(look.manager, look.question, sight))

    def on_owner_ended(self, owner: OwnerProcess) -> None:
        """It is a zombie, until its parent comes to it."""
        owner.on_host.has_ended = True
        patience = self.random.choice((1, 50 * MILLISECOND_NS, self.timing.term_ns))
        self.at(self.now + self.random.randrange(patience), self.hosts.reap, owner.on_host)

    # --- who is there ---

    def spare_slots(self) -> list[str]:
        """The owners that come in bursts, and go."""
        first = self.plan.owners
        return [f"o{i}" for i in range(first, first + self.plan.spare_owners)]

    def processes(self) -> list[Process]:
        """The present life of every slot."""
        return list(self.slots.values())

    def managers(self) -> list[ManagerProcess]:
        """The managers."""
        return [p for p in self.slots.values() if isinstance(p, ManagerProcess)]

    def owners(self) -> list[OwnerProcess]:
        """The owners."""
        return [p for p in self.slots.values() if isinstance(p, OwnerProcess)]

    def lookups(self) -> list[LookupProcess]:
        """The lookups."""
        return [p for p in self.slots.values() if isinstance(p, LookupProcess)]

    def clients(self) -> list[Process]:
        """Owners and lookups."""
        return [p for p in self.slots.values() if not isinstance(p, ManagerProcess)]

    def client(self, uid: int) -> Process | None:
        """The client process behind a connection."""
        return self._clients.get(uid)

    def owner_at(self, address: str) -> OwnerProcess | None:
        """The owner that serves at an address, if that very process is still there."""
        process = self.slots.get(address.partition("/")[0])
        if isinstance(process, OwnerProcess) and process.machine.config.address == address:
            return process
        return None

    def thawed_at(self, process: Process) -> int:
        """When it last went on after a stop."""
        return self._thawed.get(process.uid, 0)

    def on_thawed(self, process: Process) -> None:
        """It goes on."""
        self._thawed[process.uid] = self.now

    # --- the journal ---

    def call_journal(self, process: ManagerProcess, action: JournalAction) -> None:
        """Carry out a journal action, in its time."""
        late_ns, effective, answered = self.faults.of_a_journal_call(process)
        self.at(
            self.now + LATENCY_NS + late_ns,
            self._take_effect,
            (process, action, self.journal, effective, answered),
        )

    def _on_commit(self, journal: JournalContents, record: AnyRecord) -> None:
        self.checkers.on_commit(journal, record)
        self.traffic.on_commit(record)

    def _take_effect(self, call: tuple[Any, ...]) -> None:
        process, action, journal, effective, answered = call
        if self.journal_kind == "memory" and not process.alive:
            return
        event = journal.carry_out(action) if effective else None
        if not answered:
            patience = max(self.timing.beat_ns, 100 * MILLISECOND_NS)
            failure = failure_of(action, "no answer came")
            if failure is not None:
                self.at(self.now + patience, process.post, failure)
        elif event is not None:
            self.at(self.now + LATENCY_NS, process.post, event)

    # --- telling ---

    def tell(self, who: str, what: str, detail: Any = "") -> None:
        """Note for the story."""
        self.story.tell(self.now, who, what, detail)

    def count_note(self, what: str) -> None:
        """Count something that a machine noted."""
        self.notes[what] += 1
