"""A world of leases: managers, owners and lookups, and all draws about them."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from lab.worlds.lease.checkers import Checkers
from lab.worlds.lease.drills import Drills
from lab.worlds.lease.hosts import as_process, sight
from lab.worlds.lease.processes import LookupProcess, OwnerProcess, OwnerSite
from lab.worlds.lease.states import States
from lab.worlds.lease.strikes import FAULTS, OwnerStrikes
from lab.worlds.lease.traffic import Counting, Traffic
from lab.worlds.lease.trial import Trial
from lab.worlds.lease.workload import Workload
from tenure.base.instants import MILLISECOND_NS, SECOND_NS
from tenure.errors import JournalDamaged
from tenure.protocol.lease.history import LeaseHistory
from tenure.protocol.lease.lookup.events import LookupConfig
from tenure.protocol.lease.lookup.machine import LookupMachine
from tenure.protocol.lease.owner.events import Look, Looked, OwnerConfig
from tenure.protocol.lease.owner.machine import OwnerMachine
from tenure.protocol.lease.records import JournalAction
from tenure.protocol.log.journal import Seat
from tenure.sim.journal import LeaseContents
from tenure.sim.kernel.faults import FaultTable
from tenure.sim.kernel.hosts import HostProcess
from tenure.sim.kernel.process import SimProcess
from tenure.sim.kernel.scene import random_for
from tenure.sim.lease.managed_world import ManagedWorld
from tenure.sim.lease.processes import ManagerProcess

LOOK_NS = MILLISECOND_NS
"""How long a look at a neighbour's process takes."""


class LeaseWorld(ManagedWorld, OwnerSite):
    """All parts of one run."""

    faults_there_are: ClassVar[FaultTable] = FAULTS
    trial: Trial
    checkers: Checkers
    policy_watch: Traffic
    workload: Workload
    states: States
    was_put_back = False
    """Whether the journal is an old copy, or was one when a process that is now at work began."""

    def __init__(self, trial: Trial) -> None:
        super().__init__(trial)
        self.workload = Workload(self, self.checkers.losses)
        self.states = States(self)
        self.drills = Drills(self, self.checkers, first_starts=trial.seed % 6 == 1)

    def make_checkers(self) -> Checkers:
        """The judges of the promises."""
        return Checkers(self)

    def make_policy_watch(self) -> Traffic:
        """The watch over policies, and over the load by which they plan."""
        return Traffic(self)

    def make_strikes(self) -> OwnerStrikes:
        """The faults that strike at times of their own."""
        return OwnerStrikes(self, self.clocks, self.operator, self.spare_slots(), self.policy_watch)

    # --- what came of it ---

    def seen_by_clients(self) -> Mapping[str, int]:
        """How often clients saw each outcome."""
        return self.workload.counts

    # --- the journal ---

    def begin_journal(self, copy: LeaseHistory | None) -> None:
        """Put another journal in the place of the present one: empty, or restored from a copy."""
        super().begin_journal(copy)
        if self.journal_kind != "memory":
            self.is_old_copy = self.was_put_back = False

    def put_back(self, copy: tuple[int, Seat, LeaseHistory]) -> None:
        """Put an old copy in the journal's place, under the very same identity."""
        identity, seat, history = copy
        if self.journal_kind == "memory" or identity != self.journal.journal:
            return  # another journal has taken the place by now
        self.journal = LeaseContents(self.random, history.state(), self._on_commit)
        self.journal.journal, self.journal.seat = identity, seat
        self.journal.state_lsn = history.lsn
        self.is_old_copy = self.was_put_back = True
        self.checkers.begin_history(self.journal, self.copied_journal())
        self.tell("journal", "put back")

    def on_gave_up(self) -> None:
        """A manager gave up. If the journal went back, the operator goes on from it as `tenure
        restore` does.
        """
        if self.is_old_copy:
            identity = self.journal.journal
            self.at(self.now + self.timing.renew_ns, self._restore, identity)

    def _restore(self, identity: int) -> None:
        if self.is_old_copy and self.journal.journal == identity:
            self.begin_journal(self.copied_journal())

    def carry_out(self, manager: ManagerProcess, action: JournalAction) -> Any:
        try:
            return super().carry_out(manager, action)
        except JournalDamaged as error:
            if not self.was_put_back:
                raise
            manager.give_up(str(error))  # the manager led the journal that this is a copy of
            return None

    # --- healing and its bounds ---

    def while_healing(self) -> None:
        """The operator takes back its commands, and ends the processes that hang."""
        if self.is_old_copy and self.checkers.went_back_unnoticed():
            self.operator.prod()
        super().while_healing()
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
        return unnoticed or super().not_well()

    @property
    def loss_bound_ns(self) -> int:
        """How soon a loss must be signalled, counted from the last takeover."""
        timing = self.timing
        return self.promise_ns + timing.on_any_clock(2 * timing.contact_ns) + 5 * SECOND_NS

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
                return self.make_manager(slot)
            case "o":
                return self.make_owner(slot)
            case _:
                return self._make_lookup(slot)

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
        if self.policy_watch.is_told:
            process.counting = Counting(process, self.policy_watch)
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

    def on_started(self, process: SimProcess) -> None:
        """A lookup begins: start the client that uses it."""
        if isinstance(process, LookupProcess):
            self.workload.start(process)

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
