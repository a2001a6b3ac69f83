"""A world of leases: managers, their journal and whoever steers them, and all draws about them.

A subclass says who their clients are.
"""

from abc import abstractmethod
from typing import Any, ClassVar

import msgspec

from tenure.base.instants import SECOND_NS
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
from tenure.protocol.lease.table import LeaseTable
from tenure.protocol.lease.timing import Timing
from tenure.sim.kernel.clocks import SimClock
from tenure.sim.kernel.faults import FaultTable
from tenure.sim.kernel.hosts import Hosts
from tenure.sim.kernel.network import Codec, Network
from tenure.sim.kernel.process import SimProcess
from tenure.sim.kernel.scene import random_for
from tenure.sim.kernel.story import Happening, Story
from tenure.sim.kernel.world import STORY_LINES
from tenure.sim.lease.checkers import LeaseCheckers
from tenure.sim.lease.faults import SHORTER_PRESET, LeaseFaults
from tenure.sim.lease.journaled_world import JournaledWorld
from tenure.sim.lease.operator import Operator
from tenure.sim.lease.policy_watch import PolicyWatch
from tenure.sim.lease.processes import POOL, ManagerProcess, OwnerParty
from tenure.sim.lease.strikes import LeaseStrikes
from tenure.sim.lease.trial import SKEW_AT_THE_BOUND, ManagedTrial
from tenure.sim.lease.words import in_words
from tenure.wire.lease import decode_to_lookup, decode_to_manager, decode_to_owner, encode
from tenure.wire.versions import NEWEST

KEYS = 24
"""How many keys are looked at one by one."""
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
            case OwnerParty():
                return decode_to_owner(data, NEWEST)
            case _:
                return decode_to_lookup(data, NEWEST)


class ManagedWorld(JournaledWorld):
    """All parts of one run but its owners and lookups."""

    faults_there_are: ClassVar[FaultTable]
    codec: ClassVar[type[Codec]] = LeaseCodec
    faults: LeaseFaults
    checkers: LeaseCheckers

    def __init__(self, trial: ManagedTrial) -> None:
        super().__init__(trial, self.faults_there_are, Story(in_words))
        self.trial = trial
        self.timing = trial.timing
        self.heals_every_ns = self.timing.renew_ns
        self.phase_ns = self.timing.hold_ns
        self._clients: dict[int, SimProcess] = {}
        self._draw()
        self.faults = LeaseFaults(self, self.mix, self.timing.term_ns)
        self.network = Network(self, self.codec())
        self.checkers = self.make_checkers()
        self.draw_users()
        self.operator = Operator(self)
        self.policy_watch = self.make_policy_watch()
        self.strikes = self.make_strikes()
        self.begin_journaling()

    def make_checkers(self) -> LeaseCheckers:
        """The judges of the promises."""
        return LeaseCheckers(self)

    def make_policy_watch(self) -> PolicyWatch:
        """The watch over policies, and over the load by which they plan."""
        return PolicyWatch(self)

    @abstractmethod
    def make_strikes(self) -> LeaseStrikes:
        """The faults that strike at times of their own."""

    def draw_users(self) -> None:
        """Draw the keys that users ask for, and how soon their applications let go of them."""
        self.watched_keys = [self.random.randbytes(8) for _ in range(KEYS)]
        # Drawn for users' programs, too, which let go as they are written: seeds stay as they are.
        self.slow_callbacks = self.random.random() < 0.3
        """Whether `on_revoke` sometimes takes longer than the manager waits for it."""

    def _draw(self) -> None:
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
        """The policy of pools until the operator chooses one."""
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

    def story_of(self, violation: str) -> list[str]:
        """The events that led to the violation. Lookups tell much and play a part in few promises,
        so most stories leave theirs out.
        """
        if violation.startswith(ABOUT_LOOKUPS):
            return super().story_of(violation)
        return self.story.lines(STORY_LINES, is_of_a_lookup)

    # --- healing and its bounds ---

    def while_healing(self) -> None:
        """The operator takes back its commands."""
        self.operator.let_go()

    def not_well(self) -> str | None:
        """The reason why not every key has an owner yet."""
        return self.operator.still_steers() or self.checkers.not_converged()

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

    def on_takeover(self) -> None:
        """A manager has begun to lead."""
        self.taken_over_at = self.now
        self.count_note(TAKEOVERS)

    # --- processes ---

    def make_manager(self, slot: str) -> ManagerProcess:
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
        tuning = Tuning(ranges=self.virtual_nodes)
        match policy_name(table, chosen or self._first_policy(table)):
            case "deal":
                return Deal(self.split_points)
            case "ring":
                return self.policy_watch.watched(Ring(self.virtual_nodes))
            case _ if table.kind == "ordered":
                return self.policy_watch.watched(Weighted(tuning, self.split_points))
            case _:
                return self.policy_watch.watched(Weighted(tuning))

    def _first_policy(self, table: LeaseTable) -> str:
        """Ordered pools are dealt where hashed ones have a ring."""
        if table.kind == "hashed" or self.first_policy == "weighted":
            return self.first_policy
        return "deal"

    def clock_at(self, slot: str) -> SimClock:
        """The clock of the slot's host."""
        return self.clock_of(slot, SKEW_AT_THE_BOUND)

    def client(self, uid: int) -> SimProcess | None:
        """The client process behind a connection."""
        return self._clients.get(uid)

    def on_step(self, process: SimProcess) -> None:
        """The machine of a process has taken an event."""
        self.checkers.on_step(process)

    # --- policies ---

    def ask_policy(self, manager: ManagerProcess, work: Planning) -> None:
        """Ask a policy, and take time for it."""
        made = PlanMade(work, work.carry_out())
        self.at(self.now + self.policy_watch.planning_ns(), manager.post, made)
