"""What a lookup knows of each range, to be compared with what it is told later (P16, P22)."""

from collections.abc import Iterator
from typing import NamedTuple

from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.protocol.lease.messages import Entry
from tenure.protocol.lease.table import NOBODY

UNKNOWN = 0
"""Below every number and every `since`."""


class Known(NamedTuple):
    """The lookup's knowledge of a range."""

    owner: int
    number: int
    """State under a higher number is another. UNKNOWN where it is in doubt what there is."""
    since: int = UNKNOWN

    @property
    def is_in_doubt(self) -> bool:
        """Whether an owner may still hold it in the journal before."""
        return self != NEVER_KNOWN and self.number == UNKNOWN

    def is_lost_by(self, entry: Entry) -> bool:
        """Whether it was known under a number below `since`: its state is gone (P16)."""
        return self != NEVER_KNOWN and self.number < entry.since


NEVER_KNOWN = Known(NOBODY, UNKNOWN)
"""It never counts as lost."""


def doubted(table: RangeMap[Known]) -> RangeMap[Known]:
    """The first table of another journal, as it is compared with what follows (P22).

    An owner that has not heard of this journal goes on until its term is over, and may answer for
    what is nobody's here. What it did then is lost, too. The first grant of such a range tells so:
    nothing is granted here before all terms of the journal before are over.
    """
    return RangeMap.of(
        (
            (key_range, known._replace(number=UNKNOWN) if known.owner == NOBODY else known)
            for key_range, known in table
        ),
        NEVER_KNOWN,
    )


def told_by(
    key_range: KeyRange, entry: Entry, table: RangeMap[Known]
) -> Iterator[tuple[KeyRange, Known]]:
    """What the entry tells of its range. Only a grant ends a doubt."""
    known = Known(entry.owner, entry.number, entry.since)
    before = [*table.within(key_range)] if entry.owner == NOBODY else []
    if not any(was.is_in_doubt for _, was in before):
        yield key_range, known
        return
    for piece, was in before:
        yield piece, known._replace(number=UNKNOWN) if was.is_in_doubt else known
