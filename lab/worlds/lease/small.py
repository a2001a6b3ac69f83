"""A small world of leases: one key, two owners, two managers, perhaps a lookup.

Clocks run at different rates: an owner's term and a manager's hold are both three ticks, exactly at
the bound. A journal call is answered before anything else happens, unless a fault says otherwise.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, TypeAlias

import msgspec

from lab.search.memo import Dice
from lab.search.small import ANYBODY, Move, Packet, SmallWorld
from lab.worlds.lease.small_judge import SeenLease, SmallJudge
from tenure.base.instants import SECOND_NS, Instant
from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.errors import JournalDamaged
from tenure.protocol.balance.policy import NOBODY, Plan, Policy, Situation
from tenure.protocol.lease.client_events import ManagerSaid, TellManager
from tenure.protocol.lease.leader import events as manager_events
from tenure.protocol.lease.leader.context import PLANS_AT_ONCE
from tenure.protocol.lease.leader.manager import Manager, ManagerConfig
from tenure.protocol.lease.lookup import events as lookup_events
from tenure.protocol.lease.lookup.machine import LookupMachine
from tenure.protocol.lease.messages import Sync, SyncResponse
from tenure.protocol.lease.owner import events as owner_events
from tenure.protocol.lease.owner.machine import OwnerMachine
from tenure.protocol.lease.records import AnyRecord, Changed, JournalAction, Left
from tenure.protocol.lease.timing import Timing
from tenure.protocol.log.journal import LOG_ACTIONS
from tenure.sim.journal import LeaseContents, failure_of, waited_out
from tenure.sim.kernel.checkers import Violation
from tenure.sim.lease.words import in_words

KEY: Key = b"k"
POOL = "pool"
MANAGERS = (0, 1)
OWNERS = (2, 3)
LOOKUP, JOURNAL = 4, 5
BEGIN = 1_000 * SECOND_NS
"""The time that all clocks show at the first tick."""
SLOW, FAST = SECOND_NS, 2 * SECOND_NS
"""How far a clock goes on in a tick. Clients are slow and managers fast, which is the worst
case.
"""

SMALL = Timing(
    name="small",
    term_ns=3 * SLOW,  # three ticks of a slow owner's clock
    hold_ns=3 * FAST,  # three ticks of a fast manager's clock: at the bound, not beyond it
    longest_hold_ns=3 * FAST,
    renew_ns=SLOW,  # an owner asks at every tick
    sync_ns=SLOW,
    bunch_ns=1,  # each asks at its own tick
    contact_ns=2 * SLOW,
    recall_ns=FAST,  # one tick
    hand_off_ns=0,
    leadership_ns=FAST,  # a leader that has not beaten at a tick is silent at the next
    beat_ns=FAST,  # a beat a tick
    gather_ns=0,
    push_ns=0,
    keep_changes_ns=1 << 60,
)


Records: TypeAlias = tuple[tuple[int, AnyRecord], ...]
"""Records, each with its LSN."""
Effect: TypeAlias = tuple[int, int | None, Records]
"""The journal after a call, the answer, and what was committed."""


class Limits(msgspec.Struct, frozen=True):
    """How many faults one story may have, and how long it may be."""

    ticks: int = 6
    starts: int = 1
    """Processes that may start, beside those that exist from the beginning."""
    start_by: int = 0
    """The last tick at which the second owner may start; one that was killed may start later."""
    lose: int = 0
    """Messages lost."""
    late: int = 0
    """Messages and callbacks set aside, to arrive at any later time."""
    double: int = 0
    """Messages that arrive again, at any later time."""
    crash: int = 0
    """Owners killed."""
    manager_crash: int = 0
    """Managers killed: at rest, or between two actions."""
    freeze: int = 0
    """Processes stopped, for any time."""
    journal: int = 0
    """Journal calls that fail, whose answer is lost, or that take effect at any later time."""
    revoke: int = 0
    """Leaderships revoked early."""
    lookups: int = 0
    """1: a lookup is there, and a client that relies on it."""


NO_FAULTS = ("ticks", "start_by", "lookups")


def newest(situation: Situation) -> Plan:
    """A policy that moves much: the newest owner gets everything."""
    incarnations = (each.incarnation for each in situation.candidates)
    return Plan(RangeMap(max(incarnations, default=NOBODY)), RangeMap(None))


def policy_of(*_: object) -> Policy:
    """The policy of every pool here."""
    return newest


def nothing_at_commit(*_: Any) -> None:
    """Do nothing at a commit: the world looks at the records itself."""


class SmallPool(SmallWorld):
    """The events that may happen to the processes of one pool."""

    slots = ("m0", "m1", "o0", "o1", "l0", "journal")
    clients = (*OWNERS, LOOKUP)
    dies_before: ClassVar[tuple[type, ...]] = (manager_events.TellClient, *LOG_ACTIONS)

    def __init__(self, limits: Limits, names: tuple[str, str] = ("o0", "o1")) -> None:
        limited = msgspec.structs.asdict(limits)
        faults = {kind: most for kind, most in limited.items() if kind not in NO_FAULTS}
        super().__init__(faults, limits.ticks)
        self.start_by = limits.start_by
        self.has_lookup = limits.lookups > 0
        self.names = names
        self.timing = SMALL
        self.journals: tuple[int, ...] = (0,)
        self.judge = SmallJudge((SeenLease(),) * len(OWNERS))

    # --- the beginning ---

    def begin(self) -> None:
        """Start both managers and the first owner, until the first manager leads and the owner
        holds the key.
        """
        self.journals = (self.memory.number(waited_out(Dice(1), nothing_at_commit)),)
        self.judge = SmallJudge((SeenLease(),) * len(OWNERS))
        for slot in (*MANAGERS, OWNERS[0]):
            self.start(slot)
        while not self.believes(OWNERS[0]):
            self.go_on()
        if self.has_lookup:
            self.start(LOOKUP)
            while not self.judge.route.relies_on:
                self.go_on()
                self._rely()

    def make(self, slot: int, uid: int) -> Any:
        """The machine of a new process."""
        dice, managers = Dice(1_000 * uid), tuple(self.slots[each] for each in MANAGERS)
        if slot in MANAGERS:
            # The policy is called at once: a plan beside the machine would double the orders of
            # events.
            config = ManagerConfig(
                url=self.slots[slot], timing=self.timing, plans_at_once=PLANS_AT_ONCE
            )
            return Manager(config, dice, policy_of)
        if slot == LOOKUP:
            lookup = lookup_events.LookupConfig(managers=managers, pool=POOL, reads_columns=False)
            return LookupMachine(lookup, dice)
        name, address = self.names[slot - OWNERS[0]], self.slots[slot]
        owner = owner_events.OwnerConfig(managers=managers, pool=POOL, name=name, address=address)
        return OwnerMachine(owner, dice)

    def keep(self) -> tuple[tuple[int, ...], SmallJudge]:
        """The journals, and what the judge remembers."""
        return self.journals, self.judge

    def bring_back(self, kept: tuple[tuple[int, ...], SmallJudge]) -> None:
        self.journals, self.judge = kept

    def opened_by(self, slot: int) -> int:
        """Which of the journals a manager has opened."""
        return 0

    def put(self, slot: int, journal: int) -> None:
        """The journal of a manager is another one from here on."""
        at = self.opened_by(slot)
        self.journals = (*self.journals[:at], journal, *self.journals[at + 1 :])

    def now(self, slot: int) -> Instant:
        """The reading of the clock in a place."""
        return Instant(BEGIN + self.tick * (FAST if slot in MANAGERS else SLOW))

    # --- what may go wrong ---

    def crash_of(self, slot: int) -> str:
        """The kind of fault that kills the process. Managers have a kind of their own; lookups are
        not killed.
        """
        if slot in MANAGERS:
            return "manager_crash"
        return "crash" if slot in OWNERS else ""

    def may_start(self, slot: int) -> bool:
        """Whether a process may start. One that was killed may come again; the second owner comes
        early.
        """
        if slot not in (*MANAGERS, *OWNERS):
            return False
        return self.lives[slot].uid > 0 or self.tick <= self.start_by

    def more_faults(self) -> Iterator[Move]:
        """The journal may take a living leader for dead."""
        if self.may("revoke"):
            yield (self._revoke,)

    def _revoke(self) -> None:
        self.headline(lambda: "the leadership is revoked early")
        self.spend("revoke")
        contents: LeaseContents = self.memory.thing(self.journals[0])
        contents.vacate()
        self.put(0, self.memory.number(contents))

    def on_killed(self, slot: int) -> None:
        """A process was killed: it believes nothing any longer."""
        if slot in OWNERS:
            self.judge = self.judge.with_belief(slot - OWNERS[0], SeenLease())

    # --- actions ---

    def act(self, slot: int, action: Any) -> None:
        """Carry out an action."""
        match action:
            case TellManager(message=message):
                if isinstance(message, Sync) and message.sequence != self.judge.route.sequence:
                    now = self.now(slot)
                    self.judge = self.judge.with_route(sequence=message.sequence, sent_at=now)
                self._tell_manager(slot, action)
            case manager_events.TellClient():
                self._tell_client(slot, action.connection, action, action.message)
            case manager_events.TellClients():
                for connection in action.connections:
                    self._tell_client(slot, connection, action, action.message)
            case owner_events.Revoke(revocation=revocation):
                revoked = self.event_of(action, 0, lambda: owner_events.Revoked(revocation))
                self.send(Packet(slot, slot, self.lives[slot].uid, revoked), "late")
            case owner_events.Hold(holdings=holdings):
                self.tell(lambda: f"{self.slots[slot]} believes: {in_words(holdings)}")
                self.publish(slot, holdings)
            case lookup_events.Route(table=table):
                self._route(table)
            case lookup_events.SignalLoss(ranges=ranges, why=why):
                self.tell(lambda: f"{self.slots[slot]} signals loss: {why}")
                if any(KEY in lost for lost in ranges):
                    self.judge = self.judge.with_loss(why)
            case owner_events.Closed() | manager_events.GiveUp():
                self.tell(lambda: f"{self.slots[slot]} ends")
                self.kill(slot)
            case _ if isinstance(action, LOG_ACTIONS):
                self._call(slot, action)

    def _tell_manager(self, slot: int, action: TellManager) -> None:
        uid, to = self.lives[slot].uid, self.slots.index(action.manager)
        said = self.event_of(action, uid, lambda: manager_events.ClientSaid(uid, action.message))
        self.send(Packet(slot, to, ANYBODY, said), "lose", "late", "double")

    def _tell_client(self, slot: int, uid: int, action: Any, message: Any) -> None:
        to = next((each for each in self.clients if self.lives[each].uid == uid), JOURNAL)
        if self.is_there(to):  # otherwise the receiver is gone
            said = self.event_of(action, 0, lambda: ManagerSaid(self.slots[slot], message))
            self.send(Packet(slot, to, uid, said), "lose", "late", "double")

    # --- the journal ---

    def _call(self, slot: int, action: JournalAction) -> None:
        call, name = self.event_of(action, 0, lambda: action), type(action).__name__
        failure = failure_of(action, "")
        journal, answer, records = self._effect(slot, call)
        fates = ["", "late"] if self.may("journal") else [""]
        if failure is not None and self.may("journal"):
            fates += ["fails", "answer lost"] if journal not in self.journals else ["fails"]
        fate = fates[self.choose(len(fates))]
        if fate:
            self.spend("journal")
            self.tell(lambda: f"{name}: {fate}")
        if fate == "late":
            self.aside.append(Packet(slot, JOURNAL, self.lives[slot].uid, call))
            return
        if fate != "fails":
            self.put(slot, journal)
            self.judge_commit(records)
        heard = self.memory.number(failure) if fate else answer
        if heard is not None:
            self.answer(heard)

    def deliver(self, packet: Packet) -> None:
        """Let a packet arrive, or a late journal call take effect. A call is answered if the very
        process that made it is still there.
        """
        if packet.to != JOURNAL:
            if packet.to == LOOKUP and packet.uid == self.lives[LOOKUP].uid:
                self._hear(self.memory.thing(packet.event).message)
            super().deliver(packet)
            return
        journal, answer, records = self._effect(packet.sender, packet.event)
        self.put(packet.sender, journal)
        self.judge_commit(records)
        caller = self.lives[packet.sender]
        if answer is not None and caller.machine >= 0 and caller.uid == packet.uid:
            self.flying.append(Packet(JOURNAL, packet.sender, packet.uid, answer))

    def _effect(self, slot: int, call: int) -> Effect:
        journal = self.journals[self.opened_by(slot)]
        question = ("journal", journal, call)
        return self.memory.once(question, lambda: self._carry_out(journal, call))  # type: ignore[no-any-return]

    def _carry_out(self, journal: int, call: int) -> Effect:
        contents: LeaseContents = self.memory.thing(journal)
        before = contents.lsn
        try:
            event = contents.carry_out(self.memory.thing(call))
        except JournalDamaged as error:
            raise Violation("S4: the journal is damaged", str(error)) from error
        new = contents.lsn - before
        records = contents.records[len(contents.records) - new :]
        answer = None if event is None else self.memory.number(event)
        return self.memory.number(contents), answer, tuple(enumerate(records, before + 1))

    # --- the judge ---

    def believes(self, slot: int) -> bool:
        """Whether an owner's readers believe now that the owner holds the key."""
        belief = self.judge.beliefs[slot - OWNERS[0]]
        return belief.number > 0 and self.now(slot) < belief.expires_at

    def publish(self, slot: int, holdings: owner_events.Holdings) -> None:
        """An owner's readers see new holdings."""
        number = next((lease.number for lease in holdings.leases if KEY in lease.range), 0)
        was = self.judge.beliefs[slot - OWNERS[0]]
        went_on = self.believes(slot) and was.number == number
        belief = SeenLease(holdings.incarnation, number, holdings.expires_at if number else 0)
        self.judge = self.judge.with_belief(slot - OWNERS[0], belief)
        if not self.believes(slot):
            return
        for other in OWNERS:
            if other != slot and self.believes(other):
                raise Violation("S1: two owners", f"{self.slots[slot]} and {self.slots[other]}")
        self.judge = self.judge.check_belief(number, went_on=went_on)

    def judge_commit(self, records: Records) -> None:
        """Records are durable: nothing may be freed in which its owner still believes."""
        for lsn, record in records:
            words = f"committed: {type(record).__name__} {in_words(record)}".rstrip()
            self.tell(lambda words=words: words)  # type: ignore[misc]
            for entry in record.entries if isinstance(record, Changed | Left) else ():
                if KEY in entry.range:
                    self._check_not_early(entry.owner)
                    self.judge = self.judge.with_entry(entry.owner, entry.number, entry.since, lsn)

    def _check_not_early(self, owner: int) -> None:
        judge = self.judge
        for slot in OWNERS:
            holder = judge.beliefs[slot - OWNERS[0]].incarnation
            if holder == judge.owner not in (0, owner) and self.believes(slot):
                raise Violation("freed too early", f"{self.slots[slot]} still believes in the key")

    # --- the lookup ---

    def _route(self, table: lookup_events.AnyRoutingTable) -> None:
        """The lookup's readers see a new table."""
        assert len(table.starts) == 1  # there is one key, and nobody cuts the space
        self.tell(lambda: f"l0 finds {table.addresses[0] or 'nobody'}")
        address = table.addresses[0] or ""
        self.judge = self.judge.with_route(address=address, in_contact=table.in_contact)

    def _hear(self, message: Any) -> None:
        route = self.judge.route
        if isinstance(message, SyncResponse) and message.sequence == route.sequence:
            self.judge = self.judge.with_route(asked_at=route.sent_at)

    def check(self) -> None:
        """A step is over: judge what the lookup knows and finds."""
        if self.has_lookup and self.is_there(LOOKUP):
            machine = self.lives[LOOKUP].machine
            lsn = self.memory.once(("lsn", machine), lambda: self.memory.thing(machine).view().lsn)
            self.judge = self.judge.check_route(lsn)
            self._check_contact()
            self._rely()

    def _check_contact(self) -> None:
        """P17: a lookup that finds anything asked the answered question less than the bound ago."""
        life, route = self.lives[LOOKUP], self.judge.route
        now = self.now(LOOKUP)
        has_looked = not life.frozen and now < life.wake_at
        if has_looked and route.in_contact and now - route.asked_at >= SMALL.contact_ns:
            raise Violation("S2: finds without contact", f"asked at {route.asked_at}, now {now}")

    def _rely(self) -> None:
        """The lookup's client publishes where the key is found, unless it has done so."""
        route = self.judge.route
        if route.relies_on or route.address not in self.slots:
            return
        slot = self.slots.index(route.address)
        if self.believes(slot) and not self.lives[slot].frozen:
            number = self.judge.beliefs[slot - OWNERS[0]].number
            self.judge = self.judge.with_route(relies_on=number)

    # --- telling ---

    def in_words(self, packet: Packet) -> str:
        """The contents of the packet, as a story tells them."""
        event = self.memory.thing(packet.event)
        message = getattr(event, "message", event)
        words = in_words(message) if message is not event else ""
        name = f"{type(message).__name__} of {self.slots[packet.sender]}"
        return f"{name}: {words}" if words else name
