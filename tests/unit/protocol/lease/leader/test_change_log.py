"""The change log: what lookups need to follow a table (Centrifuge 2.2.1)."""

import pytest

from tenure.base.instants import Instant
from tenure.protocol.lease.leader.change_log import ChangeLog, said_last_of_each
from tenure.protocol.lease.messages import Entry

ONE, TWO, THREE = (Entry(start=bytes([i]), end=None, owner=i, number=i, since=i) for i in (1, 2, 3))


def log() -> ChangeLog:
    """Records 12, 13 and 20 of the journal changed the table, at 12, 13 and 20."""
    log = ChangeLog(begins_after=10)
    log.add(12, Instant(12), (ONE, TWO))
    log.add(13, Instant(13), (TWO,))
    log.add(20, Instant(20), (THREE,))
    return log


@pytest.mark.parametrize(
    ("lsn", "told"),
    [
        (10, (ONE, TWO, TWO, THREE)),
        (11, (ONE, TWO, TWO, THREE)),
        (12, (TWO, THREE)),
        (13, (THREE,)),
        (19, (THREE,)),
        (20, ()),
        (99, ()),
    ],
)
def test_the_changes_after_an_lsn_are_told_in_order(lsn: int, told: tuple[Entry, ...]) -> None:
    assert log().since(lsn, at_most=100) == told


def test_what_is_forgotten_is_not_told_in_part() -> None:
    """As in figure 4: after the truncation, a lookup at an older LSN gets the whole table."""
    changes = log()
    assert changes.since(9, at_most=100) is None
    changes.forget_before(Instant(13))
    assert (changes.begins_after, changes.since(11, at_most=100)) == (12, None)
    assert changes.since(12, at_most=100) == (TWO, THREE)
    changes.forget_before(Instant(100))
    assert (changes.since(19, at_most=100), changes.since(20, at_most=100)) == (None, ())


def test_what_is_longer_than_the_table_is_not_told() -> None:
    """The whole table is shorter."""
    assert log().since(10, at_most=3) is None
    assert log().since(10, at_most=4) is not None
    assert log().since(12, at_most=2) is not None


def test_the_last_lsn_is_remembered_when_all_is_forgotten() -> None:
    changes = log()
    changes.forget_before(Instant(100))
    assert changes.last == 20
    assert ChangeLog(begins_after=10).last == 10


def test_lsns_only_rise() -> None:
    with pytest.raises(AssertionError):
        log().add(20, Instant(21), (ONE,))


def test_of_the_same_keys_only_the_last_change_is_pushed_in_its_own_place() -> None:
    """A range that moves is nobody's in between. What was laid over a part of it before it was laid
    again must come before it, as in the journal.
    """

    def laid(start: bytes, end: bytes, owner: int) -> Entry:
        return Entry(start=start, end=end, owner=owner, number=owner, since=owner)

    first, part, last = laid(b"a", b"d", 1), laid(b"b", b"c", 2), laid(b"a", b"d", 3)
    assert said_last_of_each((first, part, last)) == (part, last)
    assert said_last_of_each((first, last, part)) == (last, part)


def test_what_is_more_than_the_table_is_forgotten() -> None:
    """Nobody could be told it: the whole table is shorter."""
    changes = log()
    changes.forget_beyond(4)
    assert (changes.begins_after, changes.since(10, at_most=4)) == (10, (ONE, TWO, TWO, THREE))
    changes.forget_beyond(3)
    assert (changes.begins_after, changes.since(11, at_most=3)) == (12, None)
    assert changes.since(12, at_most=3) == (TWO, THREE)
    changes.forget_beyond(0)
    assert (changes.last, changes.since(19, at_most=3), changes.since(20, at_most=3)) == (
        *(20, None),
        (),
    )
