"""The ledger: one append at a time, what gathers goes together, and what waits waits in order."""

import pytest

from tenure.protocol.lease.records import AnyRecord, Left
from tenure.protocol.log.journal import Append, Mandate
from tenure.protocol.log.ledger import RECORDS_PER_APPEND, Ledger

MANDATE = Mandate(77, 2)


def record(i: int) -> AnyRecord:
    return Left(pool="p", incarnation=i, entries=())


def ledger() -> Ledger[AnyRecord, str]:
    """Return the ledger of leadership 2, at LSN 10."""
    return Ledger(MANDATE, 10)


def test_nothing_waits_where_nothing_is_written() -> None:
    assert not ledger().unsettled
    assert ledger().next_append() is None


def test_what_is_written_while_an_append_is_under_way_goes_with_the_next() -> None:
    """Group commit: many changes, one fsync."""
    book = ledger()
    assert [book.write(record(i)) for i in (1, 2)] == [11, 12]
    assert book.next_append() == Append(MANDATE, 10, (record(1), record(2)))
    for i in (3, 4, 5):
        book.write(record(i))
        assert book.next_append() is None
    book.on_committed(12)
    assert book.next_append() == Append(MANDATE, 12, (record(3), record(4), record(5)))
    book.invariants()


def test_what_is_said_waits_for_what_was_written_before_it_and_for_no_more() -> None:
    """P18."""
    book = ledger()
    book.write(record(1))
    book.hold_back("after 1")
    book.next_append()
    book.write(record(2))
    book.hold_back("after 2")
    assert book.on_committed(11) == ["after 1"]
    book.next_append()
    book.hold_back("after 2, too")
    assert book.on_committed(12) == ["after 2", "after 2, too"]
    assert not book.unsettled


def test_an_append_is_repeated_as_it_was() -> None:
    """P18: also when more was written meanwhile."""
    book = ledger()
    book.write(record(1))
    append = book.next_append()
    book.write(record(2))
    assert book.repeated_append() == append
    assert book.is_appending


def test_an_append_is_not_longer_than_a_store_takes() -> None:
    book = ledger()
    for i in range(RECORDS_PER_APPEND + 1):
        book.write(record(i))
    append = book.next_append()
    assert append is not None
    assert len(append.records) == RECORDS_PER_APPEND
    book.on_committed(10 + RECORDS_PER_APPEND)
    assert book.unsettled == 1
    rest = book.next_append()
    assert rest == Append(MANDATE, 10 + RECORDS_PER_APPEND, (record(RECORDS_PER_APPEND),))
    book.on_committed(11 + RECORDS_PER_APPEND)
    assert not book.unsettled


def test_a_commit_of_something_else_is_a_contradiction() -> None:
    book = ledger()
    book.write(record(1))
    book.next_append()
    with pytest.raises(AssertionError):
        book.on_committed(12)


def test_there_is_nothing_to_repeat_where_nothing_is_under_way() -> None:
    with pytest.raises(AssertionError):
        ledger().repeated_append()
