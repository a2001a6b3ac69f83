"""A pool whose owners and promises are an earlier leader's."""

from tenure.base.instants import Instant, seconds
from tenure.protocol.lease.messages import Entry, Held, LeaseResponse
from tenure.protocol.lease.records import Joined, MemberRecord, PoolState, State
from tests.unit.protocol.lease.desk import HIGH, LOW, ByName, Desk, at, marks

A, B = 101, 102  # nonces, and connections
HALVES = ByName((LOW, "a b"), (HIGH, "b a"))
INHERITED = State(
    leadership=1,
    promise_ns=seconds(65),
    waited_out=True,
    pools=(
        PoolState(
            pool="p",
            kind="ordered",
            split_points=(),
            next_number=7,
            next_incarnation=3,
            entries=(
                Entry(start=b"", end=b"m", owner=1, number=5, since=5),
                Entry(start=b"m", end=None, owner=2, number=6, since=6),
            ),
            members=(
                MemberRecord(incarnation=1, name="a", nonce=A, address="http://a"),
                MemberRecord(incarnation=2, name="b", nonce=B, address="http://b"),
            ),
            numbered=(("a", 1, A), ("b", 2, B)),
        ),
    ),
)


def inheriting() -> Desk:
    """A new leader, that waits for what may have been promised until 65 s."""
    return Desk(HALVES, state=INHERITED, inherited_until=at(65))


def test_an_inherited_owner_that_is_not_heard_of_keeps_its_ranges_for_the_longest_promise() -> None:
    """P19."""
    desk = inheriting()
    desk.advance(Instant(at(65) - 1))
    assert (desk.owner_of(b"c"), desk.owner_of(b"z")) == (1, 2)
    desk.advance(at(65))
    assert (desk.owner_of(b"c"), desk.owner_of(b"z")) == (0, 0)


def test_an_inherited_hold_is_not_shortened_by_a_renewal() -> None:
    """P19: the old leader may have answered after the new one."""
    desk = inheriting()
    desk.ask(at(1), 1, A, (Held(start=b"", end=b"m", number=5),))
    desk.advance(at(50))
    assert desk.owner_of(b"c") == 1


def test_what_an_inherited_owner_does_not_list_is_free_at_once() -> None:
    """P19, P5."""
    desk = inheriting()
    answer = desk.ask(at(1), 1, A, ())
    assert marks(answer) == [(b"", b"m", "granted")]


def test_inherited_owners_are_planned_for_before_they_speak() -> None:
    """Otherwise a new leader would begin by recalling everything from the first that finds it."""
    desk = inheriting()
    desk.advance(at(0))
    assert marks(desk.ask(at(1), 1, A, (Held(start=b"", end=b"m", number=5),))) == [
        (b"", b"m", "renewed")
    ]


def test_a_join_that_was_numbered_by_the_predecessor_finds_its_number() -> None:
    """P9: its answer was lost with the leader."""
    desk = inheriting()
    answer = desk.join(at(1), "a", A)
    assert isinstance(answer, LeaseResponse)
    assert answer.incarnation == 1
    assert not any(isinstance(record, Joined) for record in desk.records)
