"""What a lookup tells that follows another journal than before (P22)."""

import pytest

from tenure.base.keys import Key
from tenure.base.ranges import WHOLE, KeyRange
from tenure.protocol.lease.messages import Entry
from tests.unit.protocol.lease.lookup.test_machine import (
    HIGH,
    LOW,
    OWNERS,
    Driven,
    at,
    in_contact,
    pushed,
    response,
)


def entry(number: int, since: int, owner: int = 0, of: KeyRange = WHOLE) -> Entry:
    return Entry(start=of.start, end=of.end, owner=owner, number=number, since=since)


def at_another(*entries: Entry) -> Driven:
    """It has met journal 8, where nobody has anything yet, or as the entries say."""
    driven = in_contact()
    driven.advance(at(5))
    driven.hear(at(5), response(driven, *(entries or (entry(1, 1),)), journal=8, lsn=1))
    assert driven.lost() == [WHOLE]
    return driven


def granted(driven: Driven, of: KeyRange, after: int = 1) -> list[KeyRange]:
    """What is told as lost when owner 2 is granted this."""
    change = entry(after + 1, 1, owner=2, of=of)
    driven.hear(at(6), pushed(change, after=after, lsn=after + 1, journal=8))
    return driven.lost()


def test_the_first_grant_of_each_range_is_a_loss_once_more() -> None:
    """Until then an owner that did not know of the journal may have done operations."""
    driven = at_another()
    assert granted(driven, HIGH) == [HIGH]
    assert driven.machine.find(b"z") == OWNERS[1], "the new place is known when it is told"
    assert granted(driven, HIGH, after=2) == []
    assert granted(driven, LOW, after=3) == [LOW]


def test_what_has_an_owner_already_is_told_once() -> None:
    """Nothing is granted before the terms of before are over."""
    driven = at_another(entry(2, 1, owner=1, of=LOW), entry(1, 1, of=HIGH))
    assert granted(driven, WHOLE) == [HIGH]


def test_a_first_table_leaves_nothing_in_doubt() -> None:
    driven = Driven()
    driven.hear(at(0), response(driven, entry(1, 1), journal=8, lsn=1))
    assert granted(driven, WHOLE) == []


def test_a_table_without_a_grant_leaves_the_doubt() -> None:
    driven = at_another()
    driven.advance(at(10))
    driven.hear(at(10), response(driven, entry(1, 1), journal=8, lsn=1))
    assert driven.lost() == []
    driven.advance(at(15))
    driven.hear(at(15), response(driven, entry(1, 1, of=LOW), entry(3, 3, of=HIGH), journal=8))
    assert driven.lost() == [HIGH], "it was somebody's, and is free again"
    assert granted(driven, LOW, after=5) == [LOW]


def test_a_whole_table_after_the_grant_tells_it() -> None:
    driven = at_another()
    driven.advance(at(10))
    driven.hear(at(10), response(driven, entry(2, 1, owner=2), journal=8, lsn=2))
    assert driven.lost() == [WHOLE]


def test_the_doubt_outlasts_contact() -> None:
    driven = at_another()
    driven.advance(at(15))
    assert driven.lost() == [WHOLE]
    asked_at = driven.wake_at
    driven.advance(asked_at)
    driven.hear(asked_at, response(driven, entry(2, 1, owner=2), journal=8, lsn=2))
    assert driven.lost() == [WHOLE]


@pytest.mark.parametrize("key", [b"", b"z"])
def test_a_standing_in_doubt_is_lost_by_the_grant(key: Key) -> None:
    driven = at_another()
    before = driven.machine.standing(key)
    granted(driven, WHOLE)
    after = driven.machine.standing(key)
    assert before is not None
    assert after is not None
    assert after.has_lost(before)
    assert not after.has_lost(after)
