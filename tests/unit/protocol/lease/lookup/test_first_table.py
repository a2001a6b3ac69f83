"""A lookup's first table, which there is nothing to compare with."""

import pytest

from tenure.protocol.lease.messages import Entry
from tests.unit.protocol.lease.lookup.test_machine import T0, Driven, response


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_first_table_is_known_as_it_was_told_also_where_it_has_gaps(*, is_whole: bool) -> None:
    """A whole one is taken at once; one with a gap, which no honest manager sends, range by range:
    what it leaves out stays unknown.
    """
    entries = (
        Entry(start=b"", end=b"f", owner=1, number=3, since=1),
        Entry(start=b"f" if is_whole else b"k", end=b"m", owner=1, number=4, since=1),
        Entry(start=b"m", end=b"t", owner=0, number=7, since=7),
        Entry(start=b"t", end=None, owner=1, number=4, since=2),
    )
    driven = Driven()
    driven.hear(T0, response(driven, *entries))
    known = {key: driven.machine.table[key] for key in (b"a", b"g", b"l", b"n", b"z")}
    assert [each.number for each in known.values()] == [3, 4 if is_whole else 0, 4, 7, 4]
    assert [each.owner for each in known.values()] == [1, 1 if is_whole else 0, 1, 0, 1]
    assert [each.since for each in known.values()] == [1, 1 if is_whole else 0, 1, 7, 2]
    assert driven.lost() == []
