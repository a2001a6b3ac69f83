"""What if the peer lies? Or is of an earlier life, says it twice, or never?

Any valid message, in any state, at any time: what it may not do is to raise, to break an invariant,
to be answered after the end, or to make its victim busy for ever. Each machine is driven as its
driver would, by its own `wake_at`, and what it says is believed or lost as Hypothesis likes.
"""

from random import Random
from typing import Any, get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.base.instants import FAR_FUTURE, MILLISECOND_NS, Instant, seconds
from tenure.base.keys import KEY_BYTES
from tenure.base.machine import Machine, Output
from tenure.journals.memory import JournalContents
from tenure.protocol.lease.attestation import Sight
from tenure.protocol.lease.client_events import ManagerLost, ManagerSaid
from tenure.protocol.lease.leader import events as manager_events
from tenure.protocol.lease.leader.manager import Manager, ManagerConfig
from tenure.protocol.lease.lookup import events as lookup_events
from tenure.protocol.lease.lookup.machine import LookupMachine
from tenure.protocol.lease.messages import (
    Attest,
    Attested,
    Changes,
    Entry,
    Held,
    Hello,
    Introduction,
    Join,
    Leased,
    LeaseRequest,
    LeaseResponse,
    Mark,
    OwnerInfo,
    Poke,
    Process,
    Refusal,
    Standby,
    Sync,
    SyncRefusal,
    SyncResponse,
    ToLookup,
    ToManager,
    ToOwner,
)
from tenure.protocol.lease.owner import events as owner_events
from tenure.protocol.lease.owner.machine import OwnerMachine
from tenure.protocol.lease.records import JournalAction, JournalEvent
from tenure.protocol.lease.steering_events import PinKey
from tenure.protocol.lease.timing import TEST
from tenure.protocol.log.journal import (
    LOG_ACTIONS,
    Append,
    Appended,
    Beaten,
    Campaigned,
    Committed,
    Compact,
    Deposed,
    SeatRead,
    Unknown,
)
from tenure.sim.journal import failure_of
from tenure.wire.journal_codec import decode_record, decode_state, encode_record, encode_state
from tenure.wire.lease import decode_to_lookup, decode_to_manager, decode_to_owner, encode
from tenure.wire.versions import NEWEST

ADVANCES_A_SECOND = 200
"""A beat every 0.1 s, pushes, renewals and searches: some dozens. A busy machine has thousands."""
CUTS: tuple[bytes, ...] = (b"", b"c", b"h", b"k" * 1024, b"m", b"t")
LONGEST_KEY = b"k" * KEY_BYTES
NAMES = ("a", "a", "b", "\U0010ffff" * 200)
ADDRESSES = ("http://a", "http://a", "\x00" * 2000)
MARKS: tuple[Mark, ...] = ("renewed", "granted", "recalled")
BRIEF = settings(max_examples=60)


class Lies:
    """What Hypothesis draws, in the words of the protocol."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data

    def number(self, most: int = 6) -> int:
        return self.data.draw(st.integers(0, most))

    def coin(self) -> bool:
        return self.data.draw(st.booleans())

    def near(self, right: int) -> int:
        """Mostly the right one."""
        return max(right + self.data.draw(st.sampled_from((0, 0, 0, 0, 1, -1))), 0)

    def duration(self) -> int:
        return self.data.draw(
            st.sampled_from((0, 1, MILLISECOND_NS, TEST.renew_ns, TEST.term_ns, FAR_FUTURE))
        )

    def pieces(self) -> list[tuple[bytes, bytes | None]]:
        """Ranges, in order, not overlapping."""
        cuts = self.data.draw(st.lists(st.sampled_from(CUTS), unique=True, max_size=4).map(sorted))
        ends: list[bytes | None] = [*cuts[1:], None]
        return [piece for piece in zip(cuts, ends, strict=bool(cuts)) if self.coin()][: len(cuts)]

    def entries(self) -> tuple[Entry, ...]:
        return tuple(
            Entry(start, end, self.number(3), number, self.data.draw(st.integers(0, number)))
            for start, end in self.pieces()
            for number in [self.number(20)]
        )

    def pause(self) -> int:
        return self.data.draw(
            st.sampled_from((0, 0, MILLISECOND_NS, seconds(0.05), seconds(0.4), seconds(2)))
        )


def drive(
    machine: Machine[Any, Any], now: Instant, until: Instant, wake_at: Instant
) -> list[object]:
    """Wake the machine when it wants to be woken; what it did."""
    done: list[object] = []
    woken = 0
    while (wake_at := max(wake_at, now)) <= until:
        now, woken = wake_at, woken + 1
        output = machine.advance(now)
        machine.invariants()
        done += output.actions
        wake_at = output.wake_at
        most = ADVANCES_A_SECOND * (1 + (until - now) // seconds(1)) + 50
        assert woken <= 5 * most, f"woken {woken} times"
    return done


# --- to an owner ----------------------------------------------------------------------------------


def leases(lies: Lies) -> tuple[Leased, ...]:
    return tuple(
        Leased(start, end, number, min(number, 3), lies.data.draw(st.sampled_from(MARKS)))
        for start, end in lies.pieces()
        for number in [lies.number(9)]
    )


def process(lies: Lies) -> Process:
    return Process("host", 1, lies.number(1), lies.number(2), 100)


def lie_to_owner(lies: Lies, owner: OwnerMachine) -> ToOwner:
    sequence, nonce = lies.near(owner.sequence), lies.near(owner.owner_nonce)
    seal = lies.near(owner.manager_nonce), owner.belief.journal or 5, lies.near(owner.leadership)
    match lies.number(8):
        case 8:
            return Attest("p", lies.number(4), process(lies), seal[0])
        case 0:
            return Poke()
        case 1:
            return Standby(None)
        case 2:
            token = lies.near(owner.token)
            return Introduction(lies.near(5), seal[2], 77, token, nonce, sequence)
        case 3:
            return Introduction(lies.near(5), seal[2], 78, 0, nonce, sequence)
        case 4:
            reason = lies.data.draw(st.sampled_from(("past", "name_held", "no_pool", "pool_kind")))
            return Refusal(nonce, sequence, *seal, reason, "", lies.duration())  # type: ignore[arg-type]
        case _:
            incarnation = lies.near(owner.belief.incarnation or 3)
            durations = lies.duration(), lies.duration()
            return LeaseResponse(incarnation, nonce, sequence, *seal, *durations, leases(lies))


def owner_event(lies: Lies, owner: OwnerMachine) -> owner_events.OwnerEvent:
    match lies.number(12):
        case 5:
            sight = Sight(seen_from=owner.config.process, is_there=lies.coin())
            question = Attest("p", 1, process(lies), lies.near(owner.manager_nonce))
            return owner_events.Looked("a", question, sight)
        case 0:
            return ManagerLost(lies.data.draw(st.sampled_from("ab")))
        case 1:
            return owner_events.Revoked(lies.number(4))
        case 2:
            return owner_events.Lapsed()
        case 3:
            return owner_events.Alive()
        case 4 if lies.number(3) == 0:
            return owner_events.CloseRequested()
        case _:
            message = decode_to_owner(encode(lie_to_owner(lies, owner), NEWEST), NEWEST)
            return ManagerSaid(lies.data.draw(st.sampled_from("aaab")), message)


@BRIEF
@given(st.data())
def test_an_owner_may_be_told_anything(data: st.DataObject) -> None:
    lies = Lies(data)
    watchdog_ns = seconds(1) if lies.number(3) == 0 else None
    config = owner_events.OwnerConfig(
        managers=("a", "b"),
        pool="p",
        name="o",
        address="http://o",
        watchdog_ns=watchdog_ns,
        process=process(lies),
    )
    owner = OwnerMachine(config, Random(1))
    now, wake_at, is_gone = Instant(0), Instant(0), False
    for _ in range(20):
        until = Instant(now + lies.pause())
        done = drive(owner, now, until, wake_at)
        now = until
        actions, wake_at = owner.handle(now, owner_event(lies, owner))
        done += actions
        owner.invariants()
        assert wake_at >= now
        assert not (is_gone and done), "who is gone does nothing more"
        is_gone = owner.phase == "closed"
        assert sum(isinstance(action, owner_events.Closed) for action in done) <= is_gone


# --- to a lookup ----------------------------------------------------------------------------------


def lie_to_lookup(lies: Lies, lookup: LookupMachine) -> ToLookup:
    sequence, nonce, lsn = (
        lies.near(lookup.sequence),
        lies.near(lookup.nonce),
        lies.near(lookup.lsn),
    )
    journal, leadership = lies.near(lookup.journal or 5), lies.near(lookup.leadership)
    owners = tuple(OwnerInfo(i, f"o{i}", f"http://{i}") for i in range(1, lies.number(3) + 1))
    match lies.number(5):
        case 0:
            return Standby("http://b")
        case 1:
            return SyncRefusal(sequence, nonce, "")
        case 2:
            to = lsn + lies.number(3)
            return Changes("p", journal, leadership, lsn, to, lies.entries(), owners)
        case _:
            durations = lies.duration(), lies.duration()
            is_whole, entries = lies.coin(), lies.entries()
            return SyncResponse(
                sequence,
                nonce,
                journal,
                leadership,
                lsn,
                "hashed",
                is_whole,
                entries,
                owners,
                *durations,
            )


@BRIEF
@given(st.data())
def test_a_lookup_may_be_told_anything(data: st.DataObject) -> None:
    lies = Lies(data)
    lookup = LookupMachine(lookup_events.LookupConfig(managers=("a", "b"), pool="p"), Random(1))
    now, wake_at = Instant(0), Instant(0)
    seen: dict[int, tuple[int, int]] = {}
    for _ in range(20):
        until = Instant(now + lies.pause())
        drive(lookup, now, until, wake_at)
        now = until
        event: lookup_events.LookupEvent = ManagerLost("a")
        if lies.number(9):
            message = decode_to_lookup(encode(lie_to_lookup(lies, lookup), NEWEST), NEWEST)
            event = ManagerSaid(data.draw(st.sampled_from("aaab")), message)
        actions, wake_at = lookup.handle(now, event)
        lookup.invariants()
        assert wake_at >= now
        for route in actions:
            if isinstance(route, lookup_events.Route):
                starts, places = route.table.starts, route.table.addresses
                assert (starts, len(places)) == (tuple(sorted(set(starts))), len(starts))
        at = (lookup.leadership, lookup.lsn)
        if lookup.journal in seen and len(seen) == 1:  # P15, within one journal
            assert at >= seen[lookup.journal]
        seen[lookup.journal] = at


# --- to a manager ---------------------------------------------------------------------------------


def lie_to_manager(lies: Lies, manager: Manager) -> ToManager:
    leader = manager.leader
    seal = leader.context.seal if leader else None
    nonce = lies.near(seal.nonce) if seal else 1
    journal, leadership = (seal.journal, seal.leadership) if seal else (1, 1)
    pool = lies.data.draw(st.sampled_from(("p", "p", "p", "q")))
    name, owner = lies.data.draw(st.sampled_from(NAMES)), lies.number(2)
    sequence = lies.number(30)
    match lies.number(10):
        case 10:
            return Attested(pool, lies.number(4), process(lies), process(lies), owner, nonce)
        case 0:
            return Hello(pool, lies.number())
        case 1 | 2 | 3:
            kind = lies.data.draw(st.sampled_from(("hashed", "hashed", "ordered", None)))
            own = process(lies) if lies.coin() else None
            return Join(
                pool,
                kind,  # type: ignore[arg-type]
                name,
                lies.data.draw(st.sampled_from(ADDRESSES)),
                owner,
                nonce,
                sequence,
                process=own,
            )
        case 4:
            lsn = (
                leader.context.history.lsn + lies.number(1) * (lies.number(9) == 0) if leader else 0
            )
            return Sync(pool, sequence, lies.data.draw(st.sampled_from((journal, 0))), 1, lsn, 1)
        case _:
            held = given_to(lies, manager, pool, number := lies.number(4))
            return LeaseRequest(
                pool, number, owner, nonce, sequence, journal, leadership, held, lies.number(5) == 0
            )


def given_to(lies: Lies, manager: Manager, pool: str, incarnation: int) -> tuple[Held, ...]:
    """What it has, or only a part of that, or anything at all."""
    there = manager.leader.pools.get(pool) if manager.leader else None
    if there is None or lies.number(3) == 0:
        return tuple(Held(start, end, lies.number(9)) for start, end in lies.pieces())
    return tuple(item for item in there.table.held_by(incarnation) if lies.number(9))


def answer_of(lies: Lies, journal: JournalContents, action: JournalAction) -> JournalEvent | None:
    """Mostly the true one."""
    if lies.number(9) == 0:
        return failure_of(action, "no answer came")
    event = journal.carry_out(action)
    return failure_of(action, "lost") if lies.number(9) == 0 else event


def lie_of_a_journal(lies: Lies, manager: Manager) -> JournalEvent:
    """An answer that nobody waits for."""
    leadership = lies.near(manager.leadership.leadership)
    lsn = manager.leader.context.ledger.committed if manager.leader else 0
    match lies.number(5):
        case 0:
            return SeatRead(manager.leadership.seat)
        case 1:
            return Campaigned(leadership, lies.coin())
        case 2:
            return Beaten(leadership, lies.near(manager.leadership.seat.beat + 1), lies.coin())
        case 3:
            return Appended(leadership, lies.near(lsn) + 1_000, Committed(lies.near(lsn)))
        case 4:
            return Appended(leadership + 1, lsn, Deposed())
        case _:
            return Appended(leadership + 1, lsn, Unknown())


def check_can_be_said(actions: list[manager_events.ManagerAction]) -> None:
    """What was accepted can be answered, journaled, and read back."""
    for action in actions:
        match action:
            case (
                manager_events.TellClient(message=message)
                | manager_events.TellClients(message=message)
            ):
                is_for_lookups = isinstance(message, get_args(ToLookup))
                receive = decode_to_lookup if is_for_lookups else decode_to_owner
                assert receive(encode(message, NEWEST), NEWEST) == message
            case Append(records=records):
                for record in records:
                    assert decode_record(encode_record(record), "here") == record
            case Compact(state=state):
                assert decode_state(encode_state(state), "here") == state
            case _:
                pass


class Managed:
    """A manager, its journal, and what it waits for."""

    def __init__(self, lies: Lies) -> None:
        self.lies = lies
        self.config = ManagerConfig(
            url="m", timing=TEST, compact_after=lies.number(5) + 1, first_start=lies.coin()
        )
        self.manager = Manager(self.config, Random(1))
        self.journal = JournalContents(Random(2), lambda *_: None)
        self.now, self.wake_at = Instant(0), Instant(0)
        self.gave_up = False

    def take(self, output: Output[manager_events.ManagerAction]) -> None:
        self.wake_at = output.wake_at
        assert self.wake_at >= self.now
        self.manager.invariants()
        check_can_be_said(output.actions)
        for action in output.actions:
            if isinstance(action, manager_events.GiveUp):
                self.gave_up = True
            elif isinstance(action, LOG_ACTIONS):
                answer = answer_of(self.lies, self.journal, action)
                if answer is not None:
                    self.take(self.manager.handle(self.now, answer))

    def run(self, duration_ns: int) -> None:
        until, woken = Instant(self.now + duration_ns), 0
        while self.wake_at <= until:
            self.now, woken = max(self.now, self.wake_at), woken + 1
            assert woken < 5 * ADVANCES_A_SECOND, f"woken {woken} times in {duration_ns} ns"
            self.take(self.manager.advance(self.now))
        self.now = until


QUESTIONS: tuple[manager_events.Question, ...] = (
    manager_events.CreatePool("p", "hashed"),
    manager_events.CreatePool("q", "hashed"),
    manager_events.CreatePool("q", "ordered", (LONGEST_KEY,)),
    *(PinKey(pool=pool, key=LONGEST_KEY[:n], owner="a") for pool in "pq" for n in (8, 1023, 1024)),
)


@BRIEF
@given(st.data())
def test_a_manager_may_be_told_anything(data: st.DataObject) -> None:
    lies = Lies(data)
    managed = Managed(lies)
    managed.run(seconds(0.3))
    for _ in range(20):
        managed.run(lies.pause())
        if managed.gave_up:
            return
        match lies.number(12):
            case 0:
                event: manager_events.ManagerEvent = manager_events.ClientLost(lies.number(2))
            case 1:
                event = lie_of_a_journal(lies, managed.manager)
            case 2:
                event = manager_events.QuestionAsked(1, data.draw(st.sampled_from(QUESTIONS)))
            case 3 if lies.number(9) == 0:
                event = manager_events.StopRequested()
            case _:
                message = decode_to_manager(
                    encode(lie_to_manager(lies, managed.manager), NEWEST), NEWEST
                )
                event = manager_events.ClientSaid(lies.number(2), message)
        managed.take(managed.manager.handle(managed.now, event))
