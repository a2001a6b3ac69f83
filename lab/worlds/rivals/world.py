"""The world with two masters, and all draws about it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lab.worlds.lease.processes import LookupProcess, OwnerProcess
from lab.worlds.rivals.processes import RivalManager, RivalOwner, RivalsSite
from lab.worlds.rivals.seen import as_seen
from lab.worlds.rivals.strikes import FAULTS, Knows, RivalsStrikes, RivalsTrial
from lab.worlds.rivals.watch import RivalsWatch
from tenure.base.instants import MILLISECOND_NS
from tenure.base.ranges import KeyRange
from tenure.protocol.balance.planning import Planning
from tenure.protocol.balance.tuning import Tuning
from tenure.protocol.balance.weighted import Weighted
from tenure.protocol.lease.history import LeaseHistory
from tenure.protocol.lease.leader.events import LookAround, OthersSeen, PlanMade
from tenure.protocol.lease.leader.manager import Manager, ManagerConfig
from tenure.protocol.lease.owner.events import Look, OwnerConfig, Revoked
from tenure.protocol.lease.owner.machine import OwnerMachine
from tenure.protocol.lease.records import JournalAction
from tenure.sim.journal import LATENCY_NS, failure_of, waited_out
from tenure.sim.kernel.checkers import Violation
from tenure.sim.kernel.hosts import Hosts
from tenure.sim.kernel.network import Network
from tenure.sim.kernel.process import SimProcess
from tenure.sim.kernel.scene import random_for
from tenure.sim.kernel.story import Story
from tenure.sim.kernel.world import World
from tenure.sim.lease.faults import LeaseFaults
from tenure.sim.lease.managed_world import LeaseCodec
from tenure.sim.lease.processes import POOL, ManagerProcess
from tenure.sim.lease.trial import SKEW_AT_THE_BOUND
from tenure.sim.lease.words import in_words

SIDES = 0, 1
AROUND_TERMS = 20
"""Within so many terms whoever can see both has seen both, and what was granted has run out."""
RANGES_OF_AN_OWNER = 2


class LetGo:
    """Applications that let go at once."""

    def on_revoke(self, owner: OwnerProcess, revocation: int, ranges: Sequence[KeyRange]) -> None:
        """See `Users`."""
        del ranges
        owner.post(Revoked(revocation))

    def on_loss(self, lookup: LookupProcess, ranges: Sequence[KeyRange]) -> None:
        """There are no lookups."""


class RivalsWorld(World, RivalsSite):
    """All parts of one run."""

    checkers: RivalsWatch

    def __init__(self, trial: RivalsTrial) -> None:
        super().__init__(trial, FAULTS, Story(in_words))
        self.trial = trial
        self.timing = trial.timing
        self.heals_every_ns, self.phase_ns = self.timing.renew_ns, self.timing.hold_ns
        drawn: Knows = self.random.choice(("managers", "an owner", "in turn"))
        self.knows = trial.knows or drawn
        self.pools, self.kinds = (POOL,), {POOL: "hashed"}
        self.journals = [waited_out(random_for(self.random)) for _ in SIDES]
        self.turn = 0
        """The side whose managers there are, if they begin in turn."""
        self.journal = self.journals[0]
        self.has_second = False
        """Whether the managers of the second journal have begun."""
        self.hosts = Hosts(random_for(self.random))
        self.lists = self._drawn_lists()
        self._clients: dict[int, SimProcess] = {}
        self.told_of_two = 0
        self.faults = LeaseFaults(self, self.mix, self.timing.term_ns)
        self.network = Network(self, LeaseCodec())
        self.checkers = RivalsWatch(self)
        self.workload = LetGo()
        self.strikes = RivalsStrikes(self, self.network, self.clocks)

    # --- who there is, and who knows whom ---

    def managers_of(self, side: int) -> tuple[str, ...]:
        """The managers of a journal: one leads, and perhaps one stands by."""
        return tuple(f"m{2 * each + side}" for each in range(1 + self.trial.seed % 2))

    @staticmethod
    def side_of(manager: str) -> int:
        """Whose journal it has."""
        return int(manager[1:]) % len(SIDES)

    def _drawn_lists(self) -> list[tuple[str, ...]]:
        """The managers that each owner lists. Some know one side only; if nobody else can see that
        there are two, one owner at least knows both.
        """
        sides = [self.managers_of(side) for side in SIDES]
        both = tuple(manager for pair in zip(*sides, strict=True) for manager in pair)
        some = [self.random.choice((*sides, both)) for _ in range(self.trial.owners)]
        if self.knows == "in turn":
            return [both] * self.trial.owners
        some[:2] = sides
        return some if self.knows == "managers" else [*some[:-1], both]

    def first_slots(self) -> Iterable[str]:
        """The first journal's managers, and the owners."""
        return (*self.managers_of(0), *(f"o{each}" for each in range(self.trial.owners)))

    def make(self, slot: str) -> SimProcess:
        """A new process for a slot."""
        if slot.startswith("m"):
            return self._make_manager(slot)
        return self._make_owner(slot)

    def _make_manager(self, slot: str) -> RivalManager:
        config = ManagerConfig(
            url=slot, timing=self.timing, plans_at_once=0, others=self.knows == "managers"
        )
        machine = Manager(
            config, random_for(self.random), lambda *_: Weighted(Tuning(ranges=RANGES_OF_AN_OWNER))
        )
        contents = self.journals[self.side_of(slot)]
        return RivalManager(contents, self, slot, self._clock(slot), machine)

    def _make_owner(self, slot: str) -> RivalOwner:
        uid = self.next_uid()
        on_host = self.hosts.begin(self.hosts.place_of(slot), self.now)
        config = OwnerConfig(
            managers=self.lists[int(slot[1:])],
            pool=POOL,
            name=f"{slot}-{uid}",
            address=f"{slot}/{uid}",
            kind="hashed",
        )
        machine = OwnerMachine(config, random_for(self.random))
        owner = RivalOwner(self, slot, self._clock(slot), machine, on_host)
        self._clients[owner.uid] = owner
        return owner

    def _clock(self, slot: str) -> Any:
        return self.clock_of(slot, SKEW_AT_THE_BOUND)

    def client(self, uid: int) -> SimProcess | None:
        """The client process behind a connection."""
        return self._clients.get(uid)

    def groups(self) -> Sequence[Sequence[SimProcess]]:
        """Managers and owners."""
        return self.managers(), self.owners()

    # --- the second master ---

    def start_all(self) -> None:
        """The first begins, and the second some time later."""
        super().start_all()
        later = round(self.timing.hold_ns * (0.2 + 2 * self.random.random()))
        self.at(self.now + later, self._begin_second, None)

    def _begin_second(self, _: None) -> None:
        self.has_second = True
        if self.knows == "in turn":
            self._take_turns()
            return
        for slot in self.managers_of(1):
            self.put(self.make(slot))

    def _take_turns(self, _: None = None) -> None:
        """The managers that there are end for good; then others begin, on another journal."""
        if self.faults.is_on:
            for slot in self.managers_of(self.turn):
                process = self.slots.pop(slot, None)
                if process is not None:
                    process.kill()
            self.turn = 1 - self.turn
            self.journals[self.turn] = waited_out(random_for(self.random))
            for slot in self.managers_of(self.turn):
                self.put(self.make(slot))
        soon = self.timing.term_ns * self.random.choice((0.05, 0.2, 1, 4)) * self.random.random()
        self.at(self.now + round(soon), self._take_turns, None)

    def _restart(self, slot: str) -> None:
        is_manager = slot.startswith("m")
        if self.knows == "in turn" and is_manager and self.side_of(slot) != self.turn:
            return
        super()._restart(slot)

    # --- what processes ask of the world ---

    def look_around(self, manager: RivalManager, action: LookAround) -> None:
        """Ask each of the others; who is stopped, cut off or gone does not answer."""
        self.at(self.now + 2 * MILLISECOND_NS, self._look, (manager, action.asked_at))

    def _look(self, asked: tuple[RivalManager, Any]) -> None:
        manager, asked_at = asked
        seen = [
            as_seen(other.machine.view(other.now()))
            for other in self.managers()
            if other.slot != manager.slot
            and other.alive
            and not other.is_frozen
            and not {(manager.slot, other.slot), (other.slot, manager.slot)}
            & self.network.cuts.keys()
        ]
        late_ns = self.faults.span(0.0, 0.1) if self.faults.is_on else MILLISECOND_NS
        self.at(self.now + late_ns, manager.post, OthersSeen(asked_at, tuple(seen)))

    def two_leaders_told(self, owner: OwnerProcess) -> None:
        """P25: an answer tells of two only if both are alive."""
        self.told_of_two += 1
        if self.knows == "in turn":
            raise Violation("P25: two were told of, and there was one", owner.slot)

    def call_journal(self, manager: ManagerProcess, action: JournalAction) -> None:
        """Carry out a journal action, in its time."""
        late_ns, effective, answered = self.faults.of_a_journal_call(
            manager.slot, self.network.cuts
        )
        call = manager, action, effective, answered
        self.at(self.now + LATENCY_NS + late_ns, self._take_effect, call)

    def _take_effect(self, call: tuple[RivalManager, JournalAction, bool, bool]) -> None:
        manager, action, effective, answered = call
        event = manager.contents.carry_out(action) if effective else None
        if not answered:
            patience = max(self.timing.beat_ns, 100 * MILLISECOND_NS)
            failure = failure_of(action, "no answer came")
            if failure is not None:
                self.at(self.now + patience, manager.post, failure)
        elif event is not None:
            late_ns = self.faults.lateness_of_an_answer()
            self.at(self.now + LATENCY_NS + late_ns, manager.post, event)

    def ask_policy(self, manager: ManagerProcess, work: Planning) -> None:
        """Ask a policy, and take time for it."""
        self.at(self.now + MILLISECOND_NS, manager.post, PlanMade(work, work.carry_out()))

    # --- when all is well ---

    def not_well(self) -> str | None:
        """Why it is not settled yet that there are two, or that there is one."""
        if not self.has_second:
            return "the second has not begun"
        if self.knows == "in turn":
            return self._not_served()
        for side in SIDES:
            if not self._history(side).rivalries:
                return f"the journal of side {side} has no rival in writing"
        return None

    def _history(self, side: int) -> LeaseHistory:
        contents = self.journals[side]
        history = LeaseHistory(contents.state, contents.state_lsn)
        for record in contents.records:
            history.apply(record)
        return history

    def _not_served(self) -> str | None:
        believing = [each for each in self.owners() if each.believes_until > self.now]
        held = sum(len(each.holdings.leases) for each in believing)
        return None if held else "nobody holds anything under the second"

    def when_well(self, left_ns: int) -> None:
        """Let what was granted run out; from then on no key has two owners."""
        if self.knows == "in turn":
            return
        self.run_until(self.now + self.timing.on_any_clock(2 * self.timing.hold_ns))
        self.checkers.is_armed = True
        self.checkers.check_all()

    @property
    def healing_bound_ns(self) -> int:
        """How soon two are seen, or one serves after the other."""
        timing = self.timing
        new = timing.on_any_clock(timing.longest_hold_ns + timing.hold_ns)
        return new + timing.on_any_clock(AROUND_TERMS * timing.term_ns)

    @property
    def loss_bound_ns(self) -> int:
        """There are no lookups."""
        return self.healing_bound_ns

    def seen_by_clients(self) -> Mapping[str, int]:
        """How often owners said that there are two."""
        return {"told of two leaders": self.told_of_two}

    # --- what does not happen here ---

    def on_step(self, process: SimProcess) -> None:
        """See `Site`: watched by what owners publish."""

    def on_takeover(self) -> None:
        """A manager has begun to lead."""
        self.taken_over_at = self.now
        self.count_note("takeovers")

    def copied_journal(self) -> LeaseHistory:
        raise AssertionError

    def begin_journal(self, copy: LeaseHistory | None) -> None:
        raise AssertionError

    def restore_journal(self, at: int, copy: LeaseHistory) -> None:
        raise AssertionError

    def put_back(self, copy: Any) -> None:
        raise AssertionError

    def on_gave_up(self) -> None:
        """A manager will not go on; it is started again."""

    def look(self, owner: OwnerProcess, look: Look) -> None:
        raise AssertionError  # no owner tells its process

    def start_twin(self, slot: str, of: OwnerProcess) -> None:
        raise AssertionError
