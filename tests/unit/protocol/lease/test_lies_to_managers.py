"""A manager survives lies of its peers, and of its journal, as the machines in `test_lies` do."""

from random import Random
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from tenure.base.instants import Instant, seconds
from tenure.base.machine import Output
from tenure.base.noted import Noted
from tenure.protocol.lease.leader import events as manager_events
from tenure.protocol.lease.leader.manager import Manager, ManagerConfig
from tenure.protocol.lease.leader.noted import LeaderKind
from tenure.protocol.lease.messages import (
    Attested,
    Held,
    Hello,
    Join,
    LeaseRequest,
    Sync,
    ToLookup,
    ToManager,
)
from tenure.protocol.lease.records import JournalAction, JournalEvent, State
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
    Mandate,
    SeatRead,
    Unknown,
)
from tenure.sim.journal import LeaseContents, failure_of
from tenure.wire.lease import decode_to_lookup, decode_to_manager, decode_to_owner, encode
from tenure.wire.lease_records import LEASE_RECORDS
from tenure.wire.versions import NEWEST
from tests.unit.protocol.lease.lies import (
    ADDRESSES,
    ADVANCES_A_SECOND,
    BRIEF,
    LONGEST_KEY,
    NAMES,
    Lies,
    process,
)


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
            return Attested(
                pool=pool,
                incarnation=lies.number(4),
                process=process(lies),
                witness=process(lies),
                owner_nonce=owner,
                manager_nonce=nonce,
            )
        case 0:
            return Hello(pool=pool, token=lies.number())
        case 1 | 2 | 3:
            kind = lies.data.draw(st.sampled_from(("hashed", "hashed", "ordered", None)))
            own = process(lies) if lies.coin() else None
            return Join(
                pool=pool,
                kind=kind,  # type: ignore[arg-type]
                name=name,
                address=lies.data.draw(st.sampled_from(ADDRESSES)),
                owner_nonce=owner,
                manager_nonce=nonce,
                sequence=sequence,
                process=own,
            )
        case 4:
            lsn = (
                leader.context.history.lsn + lies.number(1) * (lies.number(9) == 0) if leader else 0
            )
            return Sync(
                pool=pool,
                sequence=sequence,
                journal=lies.data.draw(st.sampled_from((journal, 0))),
                leadership=1,
                lsn=lsn,
                nonce=1,
            )
        case _:
            held = given_to(lies, manager, pool, number := lies.number(4))
            return LeaseRequest(
                pool=pool,
                incarnation=number,
                owner_nonce=owner,
                manager_nonce=nonce,
                sequence=sequence,
                journal=journal,
                leadership=leadership,
                held=held,
                leaving=lies.number(5) == 0,
            )


def given_to(lies: Lies, manager: Manager, pool: str, incarnation: int) -> tuple[Held, ...]:
    """Return what it has, or only a part of that, or anything at all."""
    there = manager.leader.pools.get(pool) if manager.leader else None
    if there is None or lies.number(3) == 0:
        return tuple(
            Held(start=start, end=end, number=lies.number(9)) for start, end in lies.pieces()
        )
    return tuple(item for item in there.table.held_by(incarnation) if lies.number(9))


def answer_of(lies: Lies, journal: LeaseContents, action: JournalAction) -> JournalEvent | None:
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
            return Campaigned(leadership, Mandate(7, leadership) if lies.coin() else None)
        case 2:
            return Beaten(leadership, lies.near(manager.leadership.seat.beat + 1), lies.coin())
        case 3:
            return Appended(leadership, lies.near(lsn) + 1_000, Committed(lies.near(lsn)))
        case 4:
            return Appended(leadership + 1, lsn, Deposed())
        case _:
            return Appended(leadership + 1, lsn, Unknown())


def check_can_be_said(actions: list[manager_events.ManagerAction]) -> None:
    """Check that what was accepted can be answered, journaled, and read back."""
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
                    assert (
                        LEASE_RECORDS.decode_record(LEASE_RECORDS.encode_record(record), "here")
                        == record
                    )
            case Compact(state=state):
                assert (
                    LEASE_RECORDS.decode_state(LEASE_RECORDS.encode_state(state), "here") == state
                )
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
        self.journal = LeaseContents(Random(2), State(), lambda *_: None)
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
            elif isinstance(action, Noted):
                assert action.kind is not LeaderKind.QUESTION_FAILED, action.detail
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
    *(manager_events.ListOwners(pool) for pool in "pq"),
    manager_events.ListPools(),
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
