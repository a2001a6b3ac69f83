"""The board of holdings: what is read, by whom, and that what ended never comes back."""

from collections.abc import Callable
from random import Random
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple, replace

from tenure.base.instants import Instant
from tenure.base.keys import UserKey, hashed_key
from tenure.client.holdings import Board
from tenure.client.lease import Lease
from tenure.client.snapshot import CHECKED_AT_MOST, LONGEST_CHECKED
from tenure.errors import ClosedError, ForkedError, KeyTypeError, UsageError
from tenure.protocol.lease.messages import Held, Leased
from tenure.protocol.lease.owner.events import Holdings
from tenure.protocol.lease.owner.meter import Sampler
from tenure.testing.clock import TurnedClock

JOURNAL = 7


def leased(start: bytes, end: bytes | None, number: int) -> Leased:
    return Leased(start=start, end=end, number=number, since=number, mark="renewed")


def holdings(*leases: Leased, until: int, journal: int = JOURNAL) -> Holdings:
    return Holdings(journal, 1, leases, Instant(until))


class Stage:
    """An ordered pool, so that keys can be read, and a term of 10 s from now."""

    def __init__(self) -> None:
        self.clock = TurnedClock()
        self.board = Board("ordered", self.clock)
        self.board.open()
        self.lapses = 0
        self.board.on_lapsed = self.on_lapsed

    def on_lapsed(self) -> None:
        self.lapses += 1

    def hold(self, *leases: Leased, term: float = 10, journal: int = JOURNAL) -> bool:
        until = self.clock.after(term)
        return self.board.publish(holdings(*leases, until=until, journal=journal))

    def check(self, key: UserKey) -> Lease:
        lease = self.board.check(key)
        assert lease is not None
        return lease


@pytest.fixture
def stage() -> Stage:
    return Stage()


# --- reading --------------------------------------------------------------------------------------


def test_a_held_key_has_a_lease_that_says_what_it_is(stage: Stage) -> None:
    stage.hold(leased(b"c", b"m", 5))
    assert stage.check("d") == Lease(b"d", 5, JOURNAL)
    assert stage.check(b"c") == Lease(b"c", 5, JOURNAL)


def test_ends_are_excluded_and_gaps_not_held(stage: Stage) -> None:
    stage.hold(leased(b"c", b"m", 5), leased(b"p", b"q", 6))
    assert [stage.board.check(key) for key in ("", "b", "m", "o", "q", "z")] == [None] * 6


def test_neighbours_have_their_own_numbers(stage: Stage) -> None:
    stage.hold(leased(b"", b"c", 1), leased(b"c", b"m", 2), leased(b"m", None, 3))
    assert [stage.check(key).number for key in ("", "b", "c", "l", "m", "z")] == [1, 1, 2, 2, 3, 3]


def test_a_lease_is_a_value(stage: Stage) -> None:
    stage.hold(leased(b"", None, 1))
    assert stage.check("a") == stage.check("a")
    assert len({stage.check("a"), stage.check("a"), stage.check("b")}) == 2
    with pytest.raises(AttributeError):
        stage.check("a").number = 2  # type: ignore[misc]


def test_keys_of_a_hashed_pool_are_hashed() -> None:
    clock = TurnedClock()
    board = Board("hashed", clock)
    board.open()
    board.publish(holdings(leased(b"", None, 1), until=clock.after(1)))
    for key in ("röom", b"room", 0, 42, 2**64 - 1):
        assert board.check(key) == Lease(hashed_key(key), 1, JOURNAL)
    assert board.check("room") == board.check(b"room")
    assert board.key("room") == hashed_key("room")


class Text(str):
    """A str of somebody's own."""

    __slots__ = ()


def test_a_key_of_a_subclass_is_taken_as_what_it_is() -> None:
    clock = TurnedClock()
    board = Board("hashed", clock)
    board.open()
    board.publish(holdings(leased(b"", None, 1), until=clock.after(1)))
    assert board.check(Text("room")) == board.check("room")


@pytest.mark.parametrize("key", [None, 1.5, True, -1, 2**64, ("a",), bytearray(b"a")])
def test_what_is_no_key_of_a_hashed_pool(key: UserKey) -> None:
    board = Board("hashed", TurnedClock())
    board.open()
    with pytest.raises(KeyTypeError, match="a key of a hashed pool is a str, bytes, or an int"):
        board.check(key)


def test_an_ordered_pool_takes_no_ints(stage: Stage) -> None:
    with pytest.raises(KeyTypeError, match=r"'.ud800' is not a key: .* pass bytes"):
        stage.board.check("\ud800")
    with pytest.raises(KeyTypeError, match="a key of an ordered pool is a str or bytes, not 5"):
        stage.board.check(5)


SPLITS = st.lists(st.binary(max_size=2), unique=True, max_size=8).map(sorted)


@given(SPLITS, st.lists(st.integers(0, 3), min_size=9, max_size=9), st.binary(max_size=3))
def test_it_holds_what_a_naive_search_finds(
    splits: list[bytes], numbers: list[int], key: bytes
) -> None:
    ends = [*splits, None]
    starts = [b"", *splits]
    leases = [
        leased(start, end, number)
        for start, end, number in zip(starts, ends, numbers, strict=False)
        if number and start != end
    ]
    stage = Stage()
    stage.hold(*leases)
    naive = [lease.number for lease in leases if key in lease.range]
    found = stage.board.check(key)
    assert ([found.number] if found else []) == naive


# --- continuity -----------------------------------------------------------------------------------


def test_a_lease_holds_over_renumbering_and_not_over_what_was_before_its_grant(
    stage: Stage,
) -> None:
    """P11: the right was not interrupted, only its number is another."""
    stage.hold(leased(b"a", b"m", 5), leased(b"m", b"z", 7))
    first, other = stage.check("b"), stage.check("n")
    unbroken = (Held(start=b"a", end=b"m", number=5),)
    now = (leased(b"a", b"m", 9), leased(b"m", b"z", 9))
    until = Instant(stage.clock.after(10))
    assert stage.board.publish(Holdings(JOURNAL, 1, now, until, unbroken))
    assert (stage.check("b"), stage.board.holds(first)) == (first, True)
    assert not stage.board.holds(other)  # which was lost, and granted again
    assert stage.check("n").number == 9
    stage.hold(leased(b"m", b"z", 9))
    assert not stage.board.holds(first)


def test_a_lease_holds_over_renewals_trims_and_other_grants(stage: Stage) -> None:
    stage.hold(leased(b"c", b"m", 5))
    lease = stage.check("d")
    stage.hold(leased(b"c", b"m", 5))
    stage.hold(leased(b"a", b"c", 9), leased(b"c", b"f", 5))
    assert stage.board.holds(lease)


def test_a_lease_is_lost_with_its_range_its_number_or_its_journal(stage: Stage) -> None:
    for after in (
        holdings(until=stage.clock.after(10)),
        holdings(leased(b"e", b"m", 5), until=stage.clock.after(10)),
        holdings(leased(b"c", b"m", 6), until=stage.clock.after(10)),
        holdings(leased(b"c", b"m", 5), until=stage.clock.after(10), journal=8),
    ):
        stage.hold(leased(b"c", b"m", 5))
        lease = stage.check("d")
        stage.board.publish(after)
        assert not stage.board.holds(lease)


def test_all_ends_at_the_end_of_the_term(stage: Stage) -> None:
    stage.hold(leased(b"", None, 5))
    lease = stage.check("d")
    stage.clock.jump(10 - 1e-9)
    assert stage.board.holds(lease)
    stage.clock.jump(1e-9)
    assert not stage.board.holds(lease)
    assert stage.board.check("d") is None
    assert stage.board.ranges() == ()


def test_the_first_reader_who_sees_the_end_has_the_machine_told_once(stage: Stage) -> None:
    stage.hold(leased(b"", None, 5))
    stage.clock.jump(11)
    assert [stage.board.check(key) for key in "abc"] == [None, None, None]
    assert stage.lapses == 1


@pytest.mark.parametrize("look", [Board.check, lambda board, _: board.ranges() or None])
def test_what_a_reader_saw_end_is_not_prolonged_by_a_renewal_decided_before(
    look: Callable[[Board, str], object],
) -> None:
    """The interleaving of S3: decided at 9.9 s, looked at 10.1 s, published at 10.2 s."""
    stage = Stage()
    stage.hold(leased(b"", None, 5))
    lease = stage.check("d")
    stage.clock.jump(9.9)
    assert stage.board.holds(lease)
    decided = holdings(leased(b"", None, 5), until=stage.clock.after(9))
    stage.clock.jump(0.2)
    assert look(stage.board, "d") is None
    stage.clock.jump(0.1)
    assert not stage.board.publish(decided)
    assert not stage.board.holds(lease)
    assert stage.board.check("d") is None
    # The machine's word is refused, whatever it is, if it comes before the machine was told.
    assert not stage.hold(leased(b"", None, 6))
    assert stage.hold(), "it has dropped everything"
    assert stage.hold(leased(b"", None, 7))
    assert stage.check("d").number == 7
    assert not stage.board.holds(lease)


def test_a_renewal_published_before_anybody_looked_prolongs(stage: Stage) -> None:
    stage.hold(leased(b"", None, 5))
    lease = stage.check("d")
    stage.clock.jump(11)
    assert stage.hold(leased(b"", None, 5))
    assert stage.board.holds(lease)
    assert stage.lapses == 0


def test_a_reader_who_was_overtaken_by_a_renewal_looks_again(stage: Stage) -> None:
    """It read the old snapshot, and the clock after its end; meanwhile the new one came up."""
    stage.hold(leased(b"", None, 5))
    lease = stage.check("d")
    clock = stage.clock
    was_overtaken = False

    def reading() -> Instant:
        nonlocal was_overtaken
        if not was_overtaken:
            was_overtaken = True
            clock.jump(11)
            stage.hold(leased(b"", None, 5))
        return clock()

    stage.board._clock = reading
    assert stage.board.holds(lease)
    assert stage.lapses == 0


def test_threads_that_look_while_terms_end_never_see_a_lease_come_back() -> None:
    stage = Stage()
    board, broken = stage.board, list[str]()
    over = False

    def look() -> None:
        lease: Lease | None = None
        lost: list[Lease] = []
        while not over:
            lease = lease or board.check("d")
            if lease and not board.holds(lease):
                lost.append(lease)
                lease = None
            if any(board.holds(each) for each in lost[-3:]):
                broken.append(f"{lost[-3:]} came back")

    threads = [Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    number = 1
    for turn in range(3_000):
        stage.clock.jump(1.1 if turn % 3 == 0 else 0.4)  # past the end now and then
        if not stage.hold(leased(b"", None, number), term=1):
            stage.hold()
            number += 1
            assert stage.hold(leased(b"", None, number), term=1)
    over = True
    for thread in threads:
        thread.join()
    assert broken == []


@pytest.mark.parametrize("given", [None, "room", 5])
def test_holds_takes_leases_only(stage: Stage, given: Lease) -> None:
    stage.hold(leased(b"", None, 5))
    with pytest.raises(UsageError, match=r"holds\(\) takes the Lease that check\(\) returned, not"):
        stage.board.holds(given)


# --- load -----------------------------------------------------------------------------------------


def test_checks_are_counted_by_range_and_refusals_are_not(stage: Stage) -> None:
    stage.hold(leased(b"c", b"m", 5), leased(b"p", b"q", 6))
    for key in ("d", "e", "p", "z"):
        stage.board.check(key)
    ranges = stage.board.ranges()
    assert stage.board.loads() == ((ranges[0], 2), (ranges[1], 1))


def test_counts_go_on_over_renewals_and_for_ranges_that_stayed(stage: Stage) -> None:
    stage.hold(leased(b"c", b"m", 5), leased(b"p", b"q", 6))
    for key in ("d", "p", "p"):
        stage.board.check(key)
    stage.hold(leased(b"c", b"m", 5), leased(b"p", b"q", 6))
    stage.board.check("p")
    stage.hold(leased(b"c", b"m", 8), leased(b"p", b"q", 6))
    assert [count for _, count in stage.board.loads()] == [0, 3]


def test_checks_of_a_key_that_is_remembered_are_counted_and_sampled(stage: Stage) -> None:
    sampler = Sampler(Random(1))
    stage.board.sample(sampler)
    stage.hold(leased(b"c", b"m", 5), leased(b"p", b"q", 6))
    for key in ["d"] * 900 + ["p"] * 100:
        stage.board.check(key)
    assert [count for _, count in stage.board.loads()] == [900, 100]
    assert [each.load for each in stage.board.tallies()] == [900, 100]
    assert [count for _, count in stage.board.loads()] == [900, 100]
    hottest = dict(sampler.take().hottest)
    assert hottest[b"d"] == pytest.approx(900, rel=0.3)
    assert hottest[b"p"] == pytest.approx(100, rel=0.6)


def test_checks_of_what_is_remembered_count_for_the_range_that_stays(stage: Stage) -> None:
    stage.hold(leased(b"c", b"m", 5))
    for _ in range(5):
        stage.check("d")
    stage.hold(leased(b"c", b"m", 5), leased(b"p", b"q", 6))
    stage.check("d")
    assert [count for _, count in stage.board.loads()] == [6, 0]


# --- what is remembered ---------------------------------------------------------------------------


def test_a_key_that_was_checked_before_gives_the_same_lease(stage: Stage) -> None:
    stage.hold(leased(b"", None, 5))
    assert stage.check("d") is stage.check("d")
    stage.hold(leased(b"", None, 5))
    assert stage.check("d") is stage.check("d")


def test_no_more_keys_are_remembered_than_have_room_and_a_renewal_makes_room(stage: Stage) -> None:
    stage.hold(leased(b"", None, 5))
    for i in range(2 * CHECKED_AT_MOST):
        stage.check(str(i))
    stage.check("x" * (LONGEST_CHECKED + 1))
    assert len(stage.board.current.checked) == len(stage.board.current.leased) == CHECKED_AT_MOST
    last = str(2 * CHECKED_AT_MOST - 1)
    assert stage.check(last) is not stage.check(last)
    stage.hold(leased(b"", None, 5))
    assert stage.check(last) is stage.check(last)
    assert stage.board.loads()[0][1] == 2 * CHECKED_AT_MOST + 1 + 4


def test_what_only_looks_like_a_remembered_key_is_not_taken_for_it() -> None:
    clock = TurnedClock()
    board = Board("hashed", clock)
    board.open()
    board.publish(holdings(leased(b"", None, 1), until=clock.after(1)))

    class AnyCase(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            return isinstance(other, str) and self.lower() == other.lower()

    class Disguise(AnyCase):
        __slots__ = ()

        def __hash__(self) -> int:
            return hash("room")

    for key in ("room", b"room", 1):
        assert board.check(key) == board.check(key)
    assert board.check(Disguise("ROOM")) == Lease(hashed_key("ROOM"), 1, JOURNAL)
    for wrong in (True, 1.0, ["room"]):
        with pytest.raises(KeyTypeError):
            board.check(wrong)  # type: ignore[arg-type]


CUTS = st.lists(st.sampled_from([b"b", b"d", b"f", b"h"]), unique=True).map(sorted)
"""Where ranges end, among the keys that the histories ask for."""


@st.composite
def published(draw: st.DrawFn) -> tuple[tuple[Leased, ...], int, tuple[Held, ...], float]:
    """Leases, their journal, what was renumbered of them, and a term."""
    starts = [b"", *draw(CUTS)]
    leases = tuple(
        leased(start, end, number)
        for start, end in zip(starts, [*starts[1:], None], strict=True)
        if (number := draw(st.integers(0, 3)))
    )
    unbroken = tuple(
        Held(start=each.start, end=each.end, number=each.number - 1)
        for each in leases
        if each.number > 1 and draw(st.booleans())
    )
    return leases, draw(st.integers(7, 8)), unbroken, draw(st.sampled_from([0.5, 1, 2]))


STEPS = st.one_of(
    st.tuples(st.just("check"), st.sampled_from("aceg")),
    st.tuples(st.just("check"), st.sampled_from("aceg")),
    st.tuples(st.just("publish"), published()),
    st.tuples(st.just("renew"), st.sampled_from([0.5, 1, 2])),
    st.tuples(st.just("jump"), st.sampled_from([0.25, 0.5, 1, 3600])),
    st.tuples(st.sampled_from(["lapse", "close", "empty"]), st.none()),
)


@given(st.lists(STEPS, max_size=30))
def test_what_is_remembered_says_what_a_search_says(steps: list[tuple[str, Any]]) -> None:
    """One board is asked by `str`, which it remembers, and for the very leases that it gave out;
    the other by bytes, and for equal leases, which it has to search for.
    """
    clock = TurnedClock()
    quick, slow = boards = [Board("ordered", clock) for _ in range(2)]
    for board in boards:
        board.open()
    last = holdings(until=clock.after(1))
    leases: list[Lease] = []
    for step, what in steps:
        if step == "publish":
            listed, journal, unbroken, term = what
            last = Holdings(journal, 1, listed, Instant(clock.after(term)), unbroken)
            assert quick.publish(last) == slow.publish(last)
        elif step == "renew":
            last = replace(last, expires_at=clock.after(what))
            assert quick.publish(last) == slow.publish(last)
        elif step == "empty":
            last = holdings(until=clock.after(1))
            assert quick.publish(last) == slow.publish(last)
        elif step == "jump":
            clock.jump(what)
        elif step == "check":
            found = quick.check(what)
            assert found == slow.check(what.encode())
            leases += [found] if found else []
        else:
            for board in boards:
                getattr(board, step)()
        for lease in leases:
            assert quick.holds(lease) == slow.holds(Lease(*astuple(lease))), step
        assert quick.loads() == slow.loads()
    assert not slow.current.checked


# --- what cannot be used --------------------------------------------------------------------------


def test_before_it_is_entered_and_after_it_is_left(stage: Stage) -> None:
    stage.hold(leased(b"", None, 5))
    lease = stage.check("d")
    new = Board("ordered", stage.clock)
    with pytest.raises(ClosedError, match="this Owner is not entered yet: use it inside "):
        new.check("d")
    stage.board.close()
    assert (stage.board.check("d"), stage.board.holds(lease)) == (None, False)
    assert (stage.board.ranges(), stage.board.loads()) == ((), ())
    stage.board.record_load("d", 1)
    assert not stage.hold(leased(b"", None, 6))


def test_in_a_forked_child(stage: Stage) -> None:
    stage.hold(leased(b"", None, 5))
    lease = stage.check("d")
    with stage.board._lock:  # as another thread of the parent might at that moment
        stage.board.on_fork()
    for use in (lambda: stage.board.check("d"), lambda: stage.board.holds(lease)):
        with pytest.raises(ForkedError, match="this Owner belongs to the parent process"):
            use()
    assert not stage.hold(leased(b"", None, 6))
