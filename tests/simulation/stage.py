"""A stage: the real machines, and everything that happens to them done by hand.

The simulator draws what goes wrong; here a test says it, so that a schedule reads as its story.
Left alone, the stage carries letters and journal calls at once and wakes machines in time. A test
holds back what it wants to hold back, by kind, sender and receiver, and then delivers, loses,
delays or repeats it; it stops processes, also between two actions or between reading the clock and
using it.

Real time is the judge. Whenever an owner begins to believe, or a record is committed, the stage
checks the promises against what everybody believes at that very instant, and raises BrokenPromise.
"""

from collections.abc import Callable, Sequence
from random import Random

from lab.worlds.lease.hosts import as_process
from tenure.base.instants import FAR_FUTURE, in_seconds, seconds
from tenure.base.keys import Key, PoolKind
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import WHOLE, KeyRange
from tenure.protocol.balance.policy import NOBODY, Plan, Policy, Situation
from tenure.protocol.lease.history import LeaseHistory
from tenure.protocol.lease.leader.events import LookAround
from tenure.protocol.lease.leader.manager import Manager, ManagerConfig
from tenure.protocol.lease.leader.receipts import SECRET_BYTES
from tenure.protocol.lease.lookup.events import LookupConfig
from tenure.protocol.lease.lookup.machine import LookupMachine
from tenure.protocol.lease.messages import (
    AnyMessage,
    Entry,
    Leased,
    LeaseRequest,
    LeaseResponse,
    ShortRequest,
    ShortResponse,
)
from tenure.protocol.lease.owner import events as owner_events
from tenure.protocol.lease.owner.events import OwnerConfig
from tenure.protocol.lease.owner.machine import OwnerMachine
from tenure.protocol.lease.records import AnyRecord, Changed, JournalAction, Left, State
from tenure.protocol.lease.restoration import restored
from tenure.protocol.lease.table import LeaseTable, Right
from tenure.protocol.lease.timing import DEFAULT, Timing
from tenure.protocol.log.journal import Seat
from tenure.sim.journal import LeaseContents, waited_out
from tenure.sim.kernel.hosts import HostProcess, Hosts
from tenure.sim.lease.beliefs import added
from tests.simulation.actors import POOL, Actor, LookupActor, ManagerActor, OwnerActor
from tests.simulation.flight import Call, Hold, InFlight, Letter, LookAcross, Parcel
from tests.simulation.transfers import Step, Transfers

REQUESTS, RESPONSES = (LeaseRequest, ShortRequest), (LeaseResponse, ShortResponse)
"""The messages with the whole list of leases, and the short ones."""
STEPS_WITHOUT_TIME = 5_000
"""More than any story needs at one instant: a machine that wants to be woken for ever."""


class BrokenPromise(AssertionError):
    """One of the protocol's promises does not hold."""


# --- the stage ------------------------------------------------------------------------------------


class Stage:
    """Everybody, what is in flight between them, and the time."""

    def __init__(
        self,
        timing: Timing = DEFAULT,
        *,
        kind: PoolKind = "ordered",
        managers: Sequence[str] = "ab",
    ) -> None:
        self.timing = timing
        self.kind = kind
        self.manager_slots = tuple(managers)
        self.random = Random(7)
        self.now = 0
        self.managers: dict[str, ManagerActor] = {}
        self.owners: list[OwnerActor] = []
        self.lookups: list[LookupActor] = []
        self.preferences: list[tuple[KeyRange, tuple[str, ...]]] = [(WHOLE, ())]
        self.hosts = Hosts(Random(7))
        self.latency_ns: dict[str, int] = {}
        self.journals: dict[str, LeaseContents] = {}
        """The journals of managers that do not have the common one."""
        self.may_have_two_owners = False
        """Whether the story goes on where S1 is broken: it counts for itself."""
        self.holds: list[Hold] = []
        self.transfers = Transfers(self)
        self.sent: list[InFlight] = []
        """All letters and calls there ever were."""
        self._flying: list[InFlight] = []
        self._steps = 0
        self._last_uid = 0
        self._numbers: RangeMap[int] = RangeMap(0)
        self._begin(waited_out(self.random, self._on_commit))

    def begin_history(self, *, waits: bool = True) -> None:
        """An empty journal, with an identity of its own: its leader waits before it grants."""
        fresh = LeaseContents(self.random, State(), self._on_commit)
        self._begin(fresh if waits else waited_out(self.random, self._on_commit))

    def _begin(self, journal: LeaseContents) -> None:
        self.journal = journal
        self.committed = LeaseHistory(journal.state, journal.state_lsn)
        self._numbers = RangeMap(0)

    def put_back(self, seat: Seat, state: State, lsn: int) -> None:
        """The journal of some time ago under the very same identity: an old copy of its file."""
        copy = LeaseContents(self.random, State(), self._on_commit)
        copy.journal = self.journal.journal
        copy.seat, copy.state, copy.state_lsn = seat, state, lsn
        self.journal, self.committed = copy, LeaseHistory(state, lsn)

    def restore(self) -> None:
        """Make of the journal what `tenure restore` makes of it."""
        copy, history = self.journal, LeaseHistory(self.journal.state, self.journal.state_lsn)
        for record in copy.records:
            history.apply(record)
        self.journal = LeaseContents(self.random, State(), self._on_commit)
        self.journal.seat, self.journal.state = restored(
            history, copy.seat, self.random.randbytes(SECRET_BYTES), journal=copy.journal
        )
        self.journal.state_lsn = copy.lsn
        self.committed = LeaseHistory(self.journal.state, copy.lsn)

    def journal_of(self, manager: str) -> LeaseContents:
        """The journal of the manager at that address."""
        return self.journals.get(manager, self.journal)

    def begin_beside(self, manager: str, *, waits: bool = False) -> LeaseContents:
        """Another journal for one manager: somebody forgot to name the common one."""
        fresh = LeaseContents(self.random, State()) if waits else waited_out(self.random)
        self.journals[manager] = fresh
        return fresh

    # --- who is on it ---

    def manager(
        self,
        slot: str,
        *,
        timing: Timing | None = None,
        rate: int = 0,
        compact_after: int = 1_000,
        first_start: bool = False,
        create_pools: bool = True,
        others: Sequence[str] = (),
        realm: str = "",
    ) -> ManagerActor:
        """A manager at the address `slot`; another life of it, if there was one."""
        config = ManagerConfig(
            url=slot,
            timing=timing or self.timing,
            compact_after=compact_after,
            first_start=first_start,
            create_pools=create_pools,
            others=bool(others),
            realm=realm,
        )
        machine = Manager(config, Random(self.random.random()), self._policy_of)
        actor = self.managers[slot] = ManagerActor(self, slot, rate, machine)
        actor.others = tuple(others)
        self.settle()
        return actor

    def owner(
        self,
        slot: str,
        *,
        name: str | None = None,
        rate: int = 0,
        pool: str = POOL,
        on_host: HostProcess | None = None,
        hand_off: bool = False,
        watchdog: float | None = None,
        managers: Sequence[str] = "",
        realm: str = "",
    ) -> OwnerActor:
        """Return an owner, by default called as its place; its process is on a host, if it knows
        that. An owner that can `hand_off` takes state there.
        """
        config = OwnerConfig(
            managers=tuple(managers) or self.manager_slots,
            pool=pool,
            name=name or slot,
            address=f"http://{slot}",
            kind=self.kind,
            process=None if on_host is None else as_process(on_host),
            hand_off=slot if hand_off else None,
            watchdog_ns=None if watchdog is None else seconds(watchdog),
            realm=realm,
        )
        machine = OwnerMachine(config, Random(self.random.random()))
        actor = OwnerActor(self, slot, rate, machine, on_host)
        self.owners.append(actor)
        self.settle()
        return actor

    def lookup(self, slot: str, *, rate: int = 0) -> LookupActor:
        """A lookup."""
        config = LookupConfig(managers=self.manager_slots, pool=POOL)
        actor = LookupActor(self, slot, rate, LookupMachine(config, Random(self.random.random())))
        self.lookups.append(actor)
        self.settle()
        return actor

    def actors(self) -> list[Actor]:
        return [*self.managers.values(), *self.owners, *self.lookups]

    def next_uid(self) -> int:
        self._last_uid += 1
        return self._last_uid

    # --- who should have what ---

    def prefer(self, *preferences: tuple[KeyRange, tuple[str, ...]]) -> None:
        """Name the owners that should have each range; the first one that is there gets it."""
        self.preferences = list(preferences)

    def _policy_of(self, table: LeaseTable, _: str) -> Policy:
        del table
        return self._policy

    def _policy(self, situation: Situation) -> Plan:
        there = {each.name: each.incarnation for each in situation.candidates}
        plan = RangeMap(NOBODY)
        for key_range, names in self.preferences:
            takers = [there[name] for name in names or sorted(there) if name in there]
            plan.assign(key_range, takers[0] if takers else NOBODY)
        return Plan(plan, RangeMap(None))

    # --- what is in flight ---

    def latency_of(self, slot: str) -> int:
        return self.latency_ns.get(slot, 0)

    def send_to_manager(self, sender: Actor, slot: str, message: AnyMessage) -> None:
        self.put_in_flight(Letter(self, sender, slot, message, None))

    def send_to_client(self, sender: Actor, uid: int, message: AnyMessage) -> None:
        for client in (*self.owners, *self.lookups):
            if client.uid == uid:
                self.put_in_flight(Letter(self, sender, client.slot, message, client))

    def send_step(self, source: OwnerActor, step: Step) -> None:
        """Carry a step to the taker's place, and the taker's word back to the source."""
        is_forth = isinstance(step, owner_events.HandOver | owner_events.SendLast)
        receiver = step.order.address if is_forth else source.slot
        self.put_in_flight(Parcel(self, source, receiver, step))

    def look_across(self, sender: ManagerActor, look: LookAround) -> None:
        for other in sender.others:
            self.put_in_flight(LookAcross(self, sender, other, look))

    def call_journal(self, sender: Actor, action: JournalAction) -> None:
        self.put_in_flight(Call(self, sender, action))

    def put_in_flight(self, item: InFlight) -> None:
        self.sent.append(item)
        for hold in self.holds:
            if hold.wants(item):
                hold.caught.append(item)
                return
        self._flying.append(item)

    def hold(self, *kinds: type, sender: str | None = None, receiver: str | None = None) -> Hold:
        """Keep back what is sent from now on and fits; JOURNAL receives journal calls."""
        hold = Hold(self, kinds, sender, receiver)
        self.holds.append(hold)
        return hold

    def part(self, one: str, *others: str) -> Callable[[], None]:
        """Let nothing pass between `one` and others; calling what comes back mends it."""
        holds = [self.hold(sender=one, receiver=other) for other in others]
        holds += [self.hold(sender=other, receiver=one) for other in others]

        def mend() -> None:
            for hold in holds:
                hold.end()

        return mend

    def count(self, kind: type, *, sender: str) -> int:
        """How many of a kind somebody has sent."""
        return sum(isinstance(i.what, kind) and i.sender.slot == sender for i in self.sent)

    # --- time ---

    def settle(self) -> None:
        """Let everything happen that happens at this instant."""
        while True:
            due = [item for item in self._flying if item.due <= self.now]
            if due:
                self._flying.remove(due[0])
                due[0].arrive()
                continue
            awake = [actor for actor in self.actors() if actor.wakes_at <= self.now]
            if not awake:
                return
            awake[0].wake()

    def run(self, duration: float) -> None:
        """Let everything happen that happens within this many seconds."""
        end = self.now + seconds(duration)
        while True:
            self._steps = 0
            self.settle()
            instants = [item.due for item in self._flying]
            instants += [actor.wakes_at for actor in self.actors()]
            following = min(instants, default=FAR_FUTURE)
            if following > end:
                break
            self.now = following
        self.now = end
        self.settle()

    def run_until(self, is_so: Callable[[], bool], at_most: float = 300) -> float:
        """Let time pass until `is_so`; how many seconds did."""
        begin = self.now
        while not is_so():
            waited = in_seconds(self.now - begin)
            assert waited < at_most, f"still not so after {waited:.1f} s"
            self.run(0.05)
        return in_seconds(self.now - begin)

    def count_a_step(self, actor: Actor) -> None:
        """One more at this instant."""
        self._steps += 1
        assert self._steps < STEPS_WITHOUT_TIME, f"{actor.slot} is busy for ever at one instant"

    # --- the promises ---

    def holders(self, key: Key) -> list[str]:
        """Return the processes that believe at this instant that they hold the key."""
        return [owner.slot for owner in self.owners if owner.number_of(key) is not None]

    def right(self, key: Key) -> Right:
        """Return what is committed about the key."""
        return self.committed.tables[POOL].rights[key]

    def check_beliefs(self, owner: OwnerActor, before: tuple[Leased, ...]) -> None:
        """Check a new belief: no other owner believes (S1), and its number is new (S3) and in the
        journal (S4).
        """
        for lease in owner.believed:
            for other in self.owners:
                is_twice = other is not owner and _overlap(other.believed, lease.range)
                if is_twice and not self.may_have_two_owners:
                    raise BrokenPromise(f"S1: {owner.slot} and {other.slot} hold {lease.range}")
        if owner.holdings.journal != self.journal.journal:
            return
        for lease in added(before, owner.believed):
            if any(number >= lease.number for _, number in self._numbers.within(lease.range)):
                raise BrokenPromise(f"S3: {owner.slot} takes {lease} under a number that was used")
            if lease.number >= self.committed.tables[POOL].next_number:
                raise BrokenPromise(f"S4: {owner.slot} was told of {lease} before it was durable")
            self._numbers.assign(lease.range, lease.number)
            wrong = self.transfers.wrong(owner, lease)
            if wrong:
                raise BrokenPromise(f"S2: {owner.slot} takes {lease}, and the state of {wrong}")

    def _on_commit(self, journal: LeaseContents, record: AnyRecord) -> None:
        if journal is self.journal and isinstance(record, Changed | Left):
            for entry in record.entries:
                self._check_not_early(entry)
        self.committed.apply(record)

    def _check_not_early(self, entry: Entry) -> None:
        for piece, right in self.committed.tables[POOL].within(entry.range):
            for owner in self.owners:
                if owner.holdings.journal != self.journal.journal:
                    continue
                had_it = right.owner == owner.holdings.incarnation != entry.owner
                if had_it and _overlap(owner.believed, piece):
                    left = owner.seconds_left
                    raise BrokenPromise(
                        f"freed too early: {piece}, in which {owner.slot} believes for {left:.1f} s"
                    )


def _overlap(leases: tuple[Leased, ...], key_range: KeyRange) -> bool:
    return any(lease.range.intersection(key_range) for lease in leases)
