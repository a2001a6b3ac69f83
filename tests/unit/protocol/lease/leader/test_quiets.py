"""How long the next owner of a range is told that caches may hit (V13)."""

from tenure.base.instants import Instant, seconds
from tenure.base.ranges import WHOLE
from tenure.protocol.lease.leader.noted import LeaderKind
from tenure.protocol.lease.leader.session import Session
from tenure.protocol.lease.messages import Copy, LeaseResponse, OwnerInfo, Sync, SyncResponse
from tenure.protocol.lease.timing import DEFAULT
from tests.unit.protocol.lease.desk import SEAL, T0, ByName, Desk, at, listed

A, B, C = 101, 102, 103  # nonces, and connections
POLICY = ByName((WHOLE, "a b c"))
READS_S = 3.0
QUIET_NS = seconds(3.25)
"""How long 3 s may be on another clock."""


def holding(*, next_reads_s: float = READS_S, hand_off: bool = False) -> Desk:
    """Return a desk where `a` has everything, and gives read leases, and `b` is a member."""
    desk = Desk(POLICY)
    desk.owner(T0, "a", A, reads_s=READS_S, hand_off=hand_off)
    assert desk.settle(at(0.5), 1, A)
    desk.owner(at(0.6), "b", B, reads_s=next_reads_s, hand_off=hand_off)
    return desk


def session(desk: Desk, incarnation: int) -> Session:
    return desk.pool.sessions[incarnation]


def dies(desk: Desk, now: Instant, incarnation: int, why: LeaderKind = LeaderKind.ATTESTED) -> None:
    desk.pool.on_death(now, session(desk, incarnation), why)
    desk.advance(Instant(now + DEFAULT.gather_ns))


def quiet(answer: object) -> int:
    """Return the quiet of the only range that the answer grants."""
    assert isinstance(answer, LeaseResponse), answer
    (lease,) = answer.leases
    assert lease.mark == "granted", lease
    return lease.quiet_ns


def test_an_attested_death_leaves_a_quiet_and_time_shortens_it() -> None:
    desk = holding()
    dies(desk, at(2), 1)
    left_ns = QUIET_NS - seconds(2)
    assert quiet(desk.ask(at(4), 2, B, ())) == DEFAULT.on_any_clock(left_ns)


def test_at_once_the_quiet_is_what_the_dead_may_have_given_on_any_clock() -> None:
    desk = holding()
    dies(desk, at(2), 1)
    assert quiet(desk.ask(at(2.1), 2, B, ())) == QUIET_NS


def test_a_confirmed_death_is_an_attested_one() -> None:
    desk = holding()
    dies(desk, at(2), 1, LeaderKind.EVICTED)
    assert quiet(desk.ask(at(2.1), 2, B, ())) == QUIET_NS


def test_whoever_waits_out_the_hold_waits_for_nothing_else() -> None:
    """V11: no read lease outlives its owner's term."""
    desk = holding()
    desk.ask(at(12), 2, B, ())
    desk.advance(at(14))
    desk.advance(at(15))
    assert quiet(desk.ask(at(15), 2, B, ())) == 0


def test_what_was_returned_was_drained_before() -> None:
    """V12."""
    desk = holding()
    desk.ask(at(1), 1, A, (), leaving=True)
    desk.advance(at(1.2))
    assert quiet(desk.ask(at(1.3), 2, B, ())) == 0


def test_granted_twice_the_quiet_goes_along() -> None:
    """The grant is lost, or its owner dies: the readers of the first one still hit."""
    desk = holding()
    dies(desk, at(2), 1)
    assert quiet(desk.ask(at(2.1), 2, B, ()))
    assert quiet(desk.ask(at(3), 2, B, ()))
    desk.owner(at(3), "c", C, reads_s=1)
    dies(desk, at(3.1), 2)
    assert quiet(desk.ask(at(3.2), 3, C, ())) == QUIET_NS, "the second may have given some too"


def test_what_is_handed_over_meanwhile_is_as_quiet() -> None:
    desk = holding(hand_off=True)
    dies(desk, at(2), 1)
    answer = desk.ask(at(2.1), 2, B, ())
    held = listed(answer)
    desk.owner(at(2.2), "c", C, reads_s=READS_S, hand_off=True)
    desk.pool.planner.policy = ByName((WHOLE, "c"))
    desk.pool.planner.soon(at(2.3))
    desk.advance(at(2.5))
    answer = desk.ask(at(2.5), 2, B, held)
    assert isinstance(answer, LeaseResponse)
    (order,) = answer.hand_offs
    copy = Copy(start=order.start, end=order.end, number=order.number, taker=3)
    desk.ask(at(3), 2, B, (), copies=(copy,))
    assert quiet(desk.ask(at(3), 3, C, (), copies=(copy,))) > 0


def test_who_does_not_know_what_a_quiet_is_is_granted_when_it_is_over() -> None:
    """An owner of an earlier version, or one without caches, would write too early."""
    desk = holding(next_reads_s=0)
    dies(desk, at(2), 1)
    answer = desk.ask(at(2.2), 2, B, ())
    assert isinstance(answer, LeaseResponse)
    assert answer.leases == ()
    desk.pokes(B)
    wake_at = desk.pool.wake_at
    assert wake_at <= at(2) + QUIET_NS
    desk.advance(Instant(at(2) + QUIET_NS))
    assert desk.pokes(B) == 1
    assert quiet(desk.ask(at(5.3), 2, B, ())) == 0


def test_nothing_is_handed_to_whom_does_not_know_while_it_is_quiet() -> None:
    desk = holding(hand_off=True)
    dies(desk, at(2), 1)
    held = listed(desk.ask(at(2.1), 2, B, ()))
    desk.owner(at(2.2), "c", C, hand_off=True)
    desk.pool.planner.policy = ByName((WHOLE, "c"))
    desk.pool.planner.soon(at(2.3))
    desk.advance(at(2.5))
    answer = desk.ask(at(2.5), 2, B, held)
    assert isinstance(answer, LeaseResponse)
    assert answer.hand_offs == ()
    assert listed(answer) == held, "it is served meanwhile"
    desk.advance(at(5.3))
    answer = desk.ask(at(5.3), 2, B, held)
    assert isinstance(answer, LeaseResponse)
    assert len(answer.hand_offs) == 1


def test_whatever_an_owner_says_it_gives_no_longer_than_its_term() -> None:
    """A request can say 292 years. Nobody would be granted anything in them that can be said."""
    before = holding()
    before.join(at(1), "z", 104, reads_s=9e9)
    assert before.pool.table.members[3].reads_ns == DEFAULT.term_ns
    desk = Desk(POLICY, state=before.context.history.state(), inherited_until=at(1))
    desk.ask(at(0.5), 2, B, ())
    desk.advance(at(2))
    assert quiet(desk.ask(at(2), 2, B, ())) <= DEFAULT.hold_ns
    assert desk.pool.quiets.longest_ns(at(0)) == DEFAULT.hold_ns


def test_a_new_leader_waits_from_its_takeover_for_the_longest_there_was() -> None:
    """It does not know whose deaths its predecessor took for attested."""
    before = holding()
    before.join(at(1), "z", 104, reads_s=6.0)
    desk = Desk(POLICY, state=before.context.history.state(), inherited_until=at(1))
    assert desk.pool.table.reads_ns == seconds(6)
    desk.ask(at(0.5), 2, B, ())
    desk.advance(at(1.5))
    desk.advance(at(2))
    assert quiet(desk.ask(at(2), 2, B, ())) == DEFAULT.on_any_clock(
        DEFAULT.on_any_clock(seconds(6)) - at(2)
    )


def test_how_long_the_pool_is_not_to_be_deleted() -> None:
    """A new pool of the same name would know of no quiet."""
    desk = holding()
    dies(desk, at(2), 1)
    assert desk.pool.quiets.longest_ns(at(2)) == QUIET_NS
    assert desk.pool.quiets.longest_ns(at(5.25)) == 0


def test_a_pool_without_caches_waits_for_nothing() -> None:
    desk = Desk(POLICY)
    desk.owner(T0, "a", A)
    desk.settle(at(0.5), 1, A)
    desk.owner(at(0.6), "b", B)
    dies(desk, at(2), 1)
    assert quiet(desk.ask(at(2.1), 2, B, ())) == 0


def test_what_an_owner_says_of_its_reads_outlives_the_leader() -> None:
    desk = holding()
    state = desk.context.history.state()
    assert [each.reads_ns for each in state.pools[0].members] == [seconds(READS_S)] * 2
    again = Desk(POLICY, state=state, inherited_until=at(13))
    answer = again.ask(at(1), 1, A, again.pool.table.held_by(1))
    assert isinstance(answer, LeaseResponse)
    assert answer.reads_ns == seconds(READS_S)


def test_lookups_are_told_where_an_owner_takes_caches() -> None:
    desk = holding()
    sync = Sync(pool="p", sequence=1, journal=0, leadership=0, lsn=0, nonce=5)
    desk.pool.publisher.on_sync(at(1), 9, sync)
    desk.commit()
    (answer,) = desk.told(9, SyncResponse)
    assert answer.journal == SEAL.journal
    assert answer.owners == (
        OwnerInfo(incarnation=1, name="a", address="http://a", cache="ws://a/caches"),
    )
