"""The judge: what in a record shows that two owners served one key at once, and what does not."""

from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.base.instants import Instant
from tenure.cli.demo.judge import AtOnce, RecordJudge, Span, are_at_once
from tenure.cli.demo.record import Served

KEY = b"8 bytes."


def served(owner: str, number: int, began: int, ended: int, key: bytes = KEY) -> Served:
    return Served(owner, key, number, Instant(began), Instant(ended))


def judge(*record: Served) -> list[AtOnce]:
    judge = RecordJudge()
    for each in record:
        judge.add(each)
    return list(judge.found)


AT_ONCE = [AtOnce(KEY, (1, "a"), (2, "b"))]


def test_owners_that_follow_each_other_are_not_at_once() -> None:
    assert judge(served("a", 1, 0, 10), served("b", 2, 11, 20), served("a", 3, 21, 30)) == []


def test_operations_that_overlap_are_at_once() -> None:
    assert judge(served("a", 1, 0, 10), served("b", 2, 9, 20)) == AT_ONCE


def test_an_operation_within_another_is_at_once() -> None:
    assert judge(served("a", 1, 0, 10), served("b", 2, 4, 5)) == AT_ONCE


def test_an_end_and_a_beginning_at_one_instant_are_at_once() -> None:
    assert judge(served("a", 1, 0, 10), served("b", 2, 10, 20)) == AT_ONCE


def test_two_operations_of_no_length_at_one_instant_are_at_once() -> None:
    assert judge(served("a", 1, 10, 10), served("b", 2, 10, 10)) == AT_ONCE


def test_an_owner_that_serves_between_two_operations_of_another_is_at_once_with_it() -> None:
    """An owner claims the key from its first operation under a number to its last."""
    assert judge(served("a", 1, 0, 1), served("b", 2, 5, 6), served("a", 1, 9, 10)) == AT_ONCE


def test_an_owner_that_first_serves_after_its_successor_is_found_by_its_number() -> None:
    """No other owner was at work then, and yet it may not serve: its lease had ended before."""
    assert judge(served("b", 2, 0, 10), served("a", 1, 50, 60)) == AT_ONCE


def test_one_number_in_two_processes_is_wrong_at_any_time() -> None:
    found = judge(served("a", 1, 0, 10), served("b", 1, 50, 60))
    assert found == [AtOnce(KEY, (1, "a"), (1, "b"))]


def test_a_process_may_not_go_on_under_the_number_that_it_had_before() -> None:
    found = judge(served("a", 1, 0, 10), served("a", 5, 20, 30), served("a", 1, 40, 50))
    assert found == [AtOnce(KEY, (1, "a"), (5, "a"))]


def test_operations_of_one_ownership_may_overlap() -> None:
    assert judge(served("a", 1, 0, 10), served("a", 1, 5, 15), served("a", 1, 5, 15)) == []


def test_keys_are_judged_apart() -> None:
    assert judge(served("a", 1, 0, 10), served("b", 2, 5, 15, key=b"another.")) == []


def test_two_ownerships_are_counted_once_however_often_they_meet() -> None:
    meetings = [served(*who, t, t + 5) for t in range(9) for who in (("a", 1), ("b", 2))]
    assert judge(*meetings) == AT_ONCE


def test_the_judgement_does_not_depend_on_the_order_of_entries() -> None:
    record = [served("a", 1, 0, 1), served("b", 2, 5, 6), served("a", 1, 9, 10)]
    assert {tuple(judge(*order)) for order in permutations(record)} == {tuple(AT_ONCE)}


def test_entries_are_counted_and_spans_kept_by_number() -> None:
    it = RecordJudge()
    for each in (served("b", 2, 5, 6), served("a", 1, 0, 1), served("b", 2, 8, 9)):
        it.add(each)
    assert it.entries == 3
    assert it.spans(KEY) == [
        Span("a", 1, Instant(0), Instant(1)),
        Span("b", 2, Instant(5), Instant(9)),
    ]


def test_what_is_found_says_who_and_under_which_numbers() -> None:
    assert str(AT_ONCE[0]) == "key 382062797465732e: a under lease number 1, b under 2"


def naive(record: list[Served]) -> set[AtOnce]:
    """The dumb twin: a whole record at once, every pair."""
    ownerships = sorted({(each.key, each.number, each.owner) for each in record})
    spans = {}
    for key, number, owner in ownerships:
        own = [e for e in record if (e.key, e.number, e.owner) == (key, number, owner)]
        began, ended = min(e.began for e in own), max(e.ended for e in own)
        spans[key, number, owner] = Span(owner, number, began, ended)
    return {
        AtOnce(a[0], a[1:], b[1:])
        for a, b in combinations(ownerships, 2)
        if a[0] == b[0] and are_at_once(spans[a], spans[b])
    }


entries = st.builds(
    lambda owner, key, number, began, length: served(owner, number, began, began + length, key),
    st.sampled_from("abc"),
    st.sampled_from([b"1", b"2"]),
    st.integers(1, 4),
    st.integers(0, 30),
    st.integers(0, 5),
)


@given(st.lists(entries, max_size=8))
def test_it_judges_as_its_naive_twin_does(record: list[Served]) -> None:
    found = judge(*record)
    assert len(found) == len(set(found))
    assert set(found) == naive(record)


def test_an_entry_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(AssertionError):
        judge(served("a", 1, 10, 9))
