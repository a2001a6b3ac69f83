"""The entries of an answer or a push, as they lie after all of them are laid."""

from collections.abc import Iterable
from itertools import pairwise
from operator import attrgetter

from tenure.base.keys import Key
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import WHOLE, KeyRange
from tenure.protocol.lease.messages import Entry


def is_whole(entries: tuple[Entry, ...]) -> bool:
    """Whether the entries cover every key, each beginning where the last ends, as a whole table
    does.
    """
    position: Key | None = WHOLE.start
    for entry in entries:
        if entry.start != position:
            return False
        position = entry.end
    return position is None


def said_last(entries: tuple[Entry, ...], *, overlapping: bool) -> Iterable[tuple[KeyRange, Entry]]:
    """The entries that hold after all of `entries` were laid one over another.

    A change that one entry brought and another took back need not be told: the last `since` tells
    all that was lost. A push may also begin with changes that are known already. Taken one by one,
    these would put the past in the table's place, and the present would seem to be a loss.
    """
    if not overlapping or not _overlap(entries):
        return [(entry.range, entry) for entry in entries]
    laid: RangeMap[Entry | None] = RangeMap(None)
    for entry in entries:
        laid.assign(entry.range, entry)
    return [(piece, entry) for piece, entry in laid if entry is not None]


def _overlap(entries: tuple[Entry, ...]) -> bool:
    """Whether any two entries are about the same key."""
    in_order = sorted(entries, key=attrgetter("start"))
    return any(
        before.end is None or before.end > after.start for before, after in pairwise(in_order)
    )
