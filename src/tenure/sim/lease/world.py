"""A world of leases: managers, owners and lookups, and all draws about them."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import msgspec

from tenure.base.instants import MILLISECOND_NS, SECOND_NS
from tenure.base.keys import PoolKind
from tenure.protocol.balance.deal import Deal
from tenure.protocol.balance.planning import Planning
from tenure.protocol.balance.policy import Policy
from tenure.protocol.balance.ring import Ring
from tenure.protocol.balance.tuning import Tuning
from tenure.protocol.balance.weighted import Weighted
from tenure.protocol.lease.leader.context import FRAGMENTS, FRESH_PART
from tenure.protocol.lease.leader.events import PlanMade
from tenure.protocol.lease.leader.manager import Manager, ManagerConfig
from tenure.protocol.lease.leader.policies import policy_name
from tenure.protocol.lease.lookup.events import LookupConfig
from tenure.protocol.lease.lookup.machine import LookupMachine
from tenure.protocol.lease.owner.events import Look, Looked, OwnerConfig
from tenure.protocol.lease.owner.machine import OwnerMachine
from tenure.protocol.lease.table import LeaseTable
from tenure.protocol.lease.timing import Timing
from tenure.sim.kernel.clocks import SimClock
from tenure.sim.kernel.faults import FaultTable
from tenure.sim.kernel.hosts import HostProcess, Hosts
from tenure.sim.kernel.network import Codec, Network
from tenure.sim.kernel.process import SimProcess
from tenure.sim.kernel.scene import random_for
from tenure.sim.kernel.story import Happening, Story
from tenure.sim.kernel.world import STORY_LINES
from tenure.sim.lease.checkers import Checkers
from tenure.sim.lease.drills import Drills
from tenure.sim.lease.faults import SHORTER_PRESET, LeaseFaults
from tenure.sim.lease.hosts import as_process, sight
from tenure.sim.lease.journaled_world import JournaledWorld
from tenure.sim.lease.operator import Operator
from tenure.sim.lease.processes import (
    POOL,
    LookupProcess,
    ManagerProcess,
    OwnerProcess,
)
from tenure.sim.lease.strikes import FAULTS, LeaseStrikes
from tenure.sim.lease.traffic import Counting, Traffic
from tenure.sim.lease.trial import SKEW_AT_THE_BOUND, Trial
from tenure.sim.lease.words import in_words
from tenure.sim.lease.workload import Workload
from tenure.sim.states import States
from tenure.wire.lease import decode_to_lookup, decode_to_manager, decode_to_owner, encode
from tenure.wire.versions import NEWEST

LOOK_NS = MILLISECOND_NS
"""How long a look at a neighbour's process takes."""
TAKEOVERS = "takeovers"
ABOUT_LOOKUPS = ("S2", "L1")
"""The promises in whose stories lookups play a part."""


def is_of_a_lookup(event: Happening) -> bool:
    """Whether only a story about lookups needs the event."""
    return event.who.startswith("l") or event.what.startswith("gets Sync ")


def shorter(timing: Timing) -> Timing:
    """Return a timing with half of every duration that managers may set differently."""
    halves = {
        name: getattr(timing, name) // 2
        for name in (
            "term_ns",
            "hold_ns",
            "renew_ns",
            "sync_ns",
            "contact_ns",
            "recall_ns",
            "hand_off_ns",
            "leadership_ns",
            "beat_ns",
        )
    }
    halves["hold_ns"] = max(halves["hold_ns"], halves["term_ns"] + 1)  # a mutant has no margin
    return msgspec.structs.replace(timing, name=f"half of {timing.name}", **halves)


def drawn_pools(seed: int) -> int:
    """How many pools a world has. A fifth of all worlds has two or three, on the same managers and
    hosts.
    """
    return 2 + seed // 5 % 2 if seed % 5 == 3 else 1


class LeaseCodec:
    """Encodes and decodes messages as the service does."""

    def encode(self, message: Any) -> bytes:
        """Encode a message in the newest version."""
        return encode(message, NEWEST)

    def decode(self, data: bytes, receiver: SimProcess) -> Any:
        """Decode a message as a manager, an owner or a lookup reads it."""
        match receiver:
            case ManagerProcess():
                return decode_to_manager(data, NEWEST)
            case OwnerProcess():
                return decode_to_owner(data, NEWEST)
            case _:
                return decode_to_lookup(data, NEWEST)


class LeaseWorld(JournaledWorld):
    """All parts of one run."""

    faults_there_are: ClassVar[FaultTable] = FAULTS
    codec: ClassVar[type[Codec]] = LeaseCodec
    faults: LeaseFaults
    checkers: Checkers
    workload: Workload
    states: States

    def __init__(self, trial: Trial) -> None:
        super().__init__(trial, self.faults_there_are, Story(in_words))
        self.trial = trial
        self.timing = trial.timing
        self.heals_every_ns = self.timing.renew_ns
        self.phase_ns = self.timing.hold_ns
        self._clients: dict[int, SimProcess] = {}
        self._draw()
        self.faults = LeaseFaults(self, self.mix, self.timing.term_ns)
        self.network = Network(self, self.codec())
        self.checkers = Checkers(self)
        self.workload = Workload(self, self.checkers.losses)
        self.states = States(self)
        self.operator = Operator(self)
        self.traffic = Traffic(self)
        self.drills = Drills(self, self.checkers, first_starts=trial.seed % 6 == 1)
        self.strikes = self.make_strikes()
        self.begin_journaling()

    def make_strikes(self) -> LeaseStrikes:
        """The faults that strike at times of their own."""
        return LeaseStrikes(self, self.clocks, self.operator, self.traffic, self.spare_slots())

    def _draw(self) -> None:
        """Draw what this seed's world is like."""
        random, trial = self.random, self.trial
        drawn = random.choice(("durable", "durable", "durable", "memory"))
        self.journal_kind = trial.journal or drawn
        managers = random.choice((1, trial.managers, trial.managers, trial.managers))
        if self.journal_kind == "memory":
            managers = 1
        self.manager_slots = tuple(f"m{i}" for i in range(managers))
        drawn_nodes = random.choice((1, 2, 4, 8, 16))
        self.virtual_nodes = trial.virtual_nodes or drawn_nodes
        self.first_policy = random.choice(("weighted", "ring"))
        """The policy of hashed pools until the operator chooses one."""
        kind: PoolKind = random.choice(("hashed", "hashed", "hashed", "ordered"))
        self.split_points = tuple(random.randbytes(2) for _ in range(random.randrange(12)))
        self.hand_off = random.choice((1.0, 1.0, 0.7, 0.0))
        self.fixed_names = random.random() < 0.5
        self.compact_after = random.choice((3, 20, 100, 10_000))
        self.fragments = FRAGMENTS if trial.seed % 3 else 1
        """How many entries may be joinable before any is renumbered: only one in a third of all
        worlds, so that whatever can be one entry of the table becomes one.
        """
        self.fresh_part = FRESH_PART if (trial.seed + 1) % 11 else 1
        """With 1, lookups are told tables that were made long before, and the changes since."""
        self.hosts = Hosts(random_for(random))
        pools = trial.pools or drawn_pools(trial.seed)
        self.pools = (POOL, *(f"{POOL}-{i}" for i in range(1, pools)))
        others: tuple[PoolKind, ...] = ("hashed", "ordered")
        self.kinds = {pool: random.choice(others) for pool in self.pools[1:]} | {POOL: kind}

    # --- what came of it ---

    def seen_by_clients(self) -> Mapping[str, int]:
        """How often clients saw each outcome."""
        return self.workload.counts

    def story_of(self, violation: str) -> list[str]:
        """The events that led to the violation. Lookups tell much and play a part in few promises,
        so most stories leave theirs out.
        """
        if violation.startswith(ABOUT_LOOKUPS):
            return super().story_of(violation)
        return self.story.lines(STORY_LINES, is_of_a_lookup)

    # --- healing and its bounds ---

    def while_healing(self) -> None:
        """The operator takes back its commands, and ends the processes that hang."""
        if self.is_old_copy and self.checkers.went_back_unnoticed():
            self.operator.prod()
        self.operator.let_go()
        self.workload.end_hanging()

    def when_well(self, left_ns: int) -> None:
        """Perhaps hold one drill, once what was promised before is over."""
        if self.is_old_copy:  # nobody is left that knew more: the copy is the journal now
            self.is_old_copy = False
            self.checkers.begin_history(self.journal, self.copied_journal())
            self.states.written.clear()  # numbers of the lost part may have been given again
            self.checkers.losses.forget()
            self.workload.forget()
        if left_ns > 2 * self.promise_ns:
            self.drills.perform(self.promise_ns)

    def not_well(self) -> str | None:
        """The reason why not every key has an owner yet that every lookup knows."""
        unnoticed = self.checkers.went_back_unnoticed() if self.is_old_copy else None
        return unnoticed or self.operator.still_steers() or self.checkers.not_converged()

    @property
    def promise_ns(self) -> int:
        """The longest time for which a manager's promise outlives it, on the slowest clock."""
        timing = self.timing
        promise = timing.hold_ns + timing.on_any_clock(timing.leadership_ns)
        return timing.on_any_clock(promise)

    @property
    def healing_bound_ns(self) -> int:
        """How soon all must be well: after a takeover, the wait it imposes, a straggler that begins
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
        """How soon a loss must be signalled, counted from the last takeover."""
        timing = self.timing
        return self.promise_ns + timing.on_any_clock(2 * timing.contact_ns) + 5 * SECOND_NS

    def on_takeover(self) -> None:
        """A manager has begun to lead."""
        self.taken_over_at = self.now
        self.count_note(TAKEOVERS)

    # --- processes ---

    def first_slots(self) -> Iterable[str]:
        """The slots of all processes except the spare owners."""
        owners = (f"o{i}" for i in range(self._several(self.trial.owners, each=2)))
        lookups = (f"l{i}" for i in range(self._several(self.trial.lookups, each=1)))
        return (*self.manager_slots, *owners, *lookups)

    def _several(self, told: int, each: int) -> int:
        """The number in the trial, but if there are several pools, at least `each` for
        each pool.
        """
        return told if len(self.pools) == 1 else max(told, each * len(self.pools))

    def pool_of(self, slot: str) -> str:
        """The pool of the process that begins at that slot: slots take turns."""
        return self.pools[int(slot[1:]) % len(self.pools)]

    def spare_slots(self) -> list[str]:
        """The slots of owners that come in bursts, and go."""
        first = self._several(self.trial.owners, each=2)
        return [f"o{i}" for i in range(first, first + self.trial.spare_owners)]

    def make(self, slot: str) -> SimProcess:
        """A new process for a slot."""
        match slot[0]:
            case "m":
                return self._make_manager(slot)
            case "o":
                return self.make_owner(slot)
            case _:
                return self._make_lookup(slot)

    def _make_manager(self, slot: str) -> ManagerProcess:
        if self.journal_kind == "memory":
            self.begin_journaling()
        timing = self.timing
        if self.random.random() < self.mix.rates.get(SHORTER_PRESET.name, 0.0):
            self.faults.counts[SHORTER_PRESET.name] += 1
            timing = shorter(timing)
        config = ManagerConfig(
            url=slot,
            timing=timing,
            compact_after=self.compact_after,
            plans_at_once=0,  # policies are asked beside the machine, and take their time
            fragments=self.fragments,
            fresh_part=self.fresh_part,
            first_start=self.is_first_start,
        )
        machine = Manager(config, random_for(self.random), self._policy)
        clock = self.clock_at(slot)
        return ManagerProcess(self, slot, clock, machine)

    def _policy(self, table: LeaseTable, chosen: str) -> Policy:
        """The policy of that name, with as many ranges as were drawn."""
        match policy_name(table, chosen or self.first_policy):
            case "deal":
                return Deal(self.split_points)
            case "ring":
                return self.traffic.watched(Ring(self.virtual_nodes))
            case _:
                return self.traffic.watched(Weighted(Tuning(ranges=self.virtual_nodes)))

    def make_owner(self, slot: str, twin: OwnerProcess | None = None) -> OwnerProcess:
        """A new owner, under the name of `twin` or one that is drawn."""
        pool = twin.pool if twin else self.pool_of(slot)
        name = twin and twin.machine.view().config.name
        uid = self.next_uid()
        drawn = slot if self.fixed_names else f"{slot}-{uid}"
        on_host = self.hosts.begin(self.hosts.place_of(slot), self.now)
        config = OwnerConfig(
            managers=self.manager_slots,
            pool=pool,
            name=name or drawn,
            address=f"{slot}/{uid}",
            kind=self.kinds[pool],
            process=as_process(on_host) if on_host.place.is_told else None,
            hand_off=f"{slot}/{uid}" if self.random.random() < self.hand_off else None,
        )
        process = self.begin_owner(slot, config, on_host)
        if self.traffic.is_told:
            process.counting = Counting(process, self.traffic)
        self._clients[process.uid] = process
        return process

    def begin_owner(self, slot: str, config: OwnerConfig, on_host: HostProcess) -> OwnerProcess:
        """A new process of an owner."""
        machine = OwnerMachine(config, random_for(self.random))
        return OwnerProcess(self, slot, self.clock_at(slot), machine, on_host)

    def start_twin(self, slot: str, of: OwnerProcess) -> None:
        """Start an owner under another's name, in the same pool."""
        twin = self.make_owner(slot, of)
        self.slots[slot] = twin
        twin.start()

    def _make_lookup(self, slot: str) -> LookupProcess:
        reads_columns = slot[-1] in "02468"  # the others behave as before there were columns
        config = LookupConfig(
            managers=self.manager_slots, pool=self.pool_of(slot), reads_columns=reads_columns
        )
        machine = LookupMachine(config, random_for(self.random))
        process = LookupProcess(self, slot, self.clock_at(slot), machine, config.pool)
        self._clients[process.uid] = process
        return process

    def clock_at(self, slot: str) -> SimClock:
        """The clock of the slot's host."""
        return self.clock_of(slot, SKEW_AT_THE_BOUND)

    def client(self, uid: int) -> SimProcess | None:
        """The client process behind a connection."""
        return self._clients.get(uid)

    def on_started(self, process: SimProcess) -> None:
        """A lookup begins: start the client that uses it."""
        if isinstance(process, LookupProcess):
            self.workload.start(process)

    def on_step(self, process: SimProcess) -> None:
        """The machine of a process has taken an event."""
        self.checkers.on_step(process)

    def on_killed(self, process: SimProcess) -> None:
        """A process was killed. An owner stays a zombie until its parent reaps it."""
        if isinstance(process, OwnerProcess):
            process.end_belief()
            self.states.on_gone(process)
            process.on_host.has_ended = True
            patience = self.random.choice((1, 50 * MILLISECOND_NS, self.timing.term_ns))
            at = self.now + self.random.randrange(patience)
            self.at(at, self.hosts.reap, process.on_host)
        super().on_killed(process)

    def look(self, owner: OwnerProcess, look: Look) -> None:
        """An owner looks at a neighbour, and says later what it saw."""
        seen = sight(self.hosts, owner.on_host, look.question.process.pid)
        told_at = self.now + LOOK_NS + self.faults.lateness_of_a_look()
        self.at(told_at, owner.post, Looked(look.manager, look.question, seen))

    # --- policies ---

    def ask_policy(self, manager: ManagerProcess, work: Planning) -> None:
        """Ask a policy, and take time for it."""
        made = PlanMade(work, work.carry_out())
        self.at(self.now + self.traffic.planning_ns(), manager.post, made)
