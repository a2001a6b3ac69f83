"""Comparing: two replicas of a range find what either of them lacks, and exchange it (R27).

First they compare a digest of all sums, and stop if it is the same. Otherwise they send the sums,
the inner sums of those that differ, the prints of their rows, and the rows that differ. These are
merged, and each replica takes what it lacks. Afterwards, each of the two durably has all that
either of them had at the beginning; new writes reach both in the usual way.

The amount sent grows with the difference (D7). A few parts go at once, and no faster than allowed,
because requests need the same disks.
"""

from functools import partial
from typing import TypeAlias

from tenure.base.ranges import KeyRange
from tenure.protocol.replication.conversation import Conversing, Interrupted
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.operations import (
    ListPlaces,
    MergeState,
    ReadState,
    ReadSums,
    RowsListed,
)
from tenure.protocol.replication.row.layout import row_key
from tenure.protocol.replication.row.states import lacks, merged
from tenure.protocol.replication.row.sums import (
    differing,
    digest_of_sums,
    inner_place,
    inner_places,
)
from tenure.protocol.replication.upkeep.errand import Errand, SendingRate
from tenure.protocol.topology.records import NodeId

PARTS_AT_ONCE = 8
PLACES_AT_ONCE = 8
"""The most places whose rows are listed together: some hundreds if a range has ten million rows."""


class Incomplete(Interrupted):
    """A replica has no sums yet, or a row was adopted meanwhile."""


Start: TypeAlias = tuple[int, bytes]
"""Behind which row a list begins: its inner sum, and its position."""


def unlike(mine: RowsListed, told: RowsListed, start: Start) -> tuple[list[bytes], Start | None]:
    """The rows that are not the same in both lists, as far as both go, and where the next lists
    begin; None after the last.
    """
    behind = [{(_start_at(at), found) for at, found in each.rows} for each in (mine, told)]
    here, there = ({row for row in each if row[0] > start} for each in behind)
    lists = (here, mine), (there, told)
    ends = [max(rows)[0] for rows, each in lists if rows and not each.is_all]
    end = min(ends, default=None)
    found = sorted({at for at, _ in here ^ there if end is None or at <= end})
    return [at for _, at in found], end


def _start_at(at: bytes) -> Start:
    return inner_place(at), at


class Comparing:
    def __init__(
        self, context: NodeContext, other: NodeId, table: str, key_range: KeyRange
    ) -> None:
        assert other != context.node, "a replica is compared with another one"
        self._context = context
        self._other = other
        self._table = table
        self._range = key_range
        self._rate = SendingRate(context.config.repair_bytes_a_second)
        self.differing = 0
        """Rows that were not the same."""
        self.bytes = 0
        """The approximate number of bytes that were sent, both ways, to find them."""

    def run(self, talk: Errand) -> Conversing[None]:
        """Compare everything. Raises what interrupts it: then some of it was exchanged."""
        places = yield from self._differing_sums(None, talk)
        parts = (partial(self._compare_place, place) for place in places)
        yield from talk.together(parts, at_once=PARTS_AT_ONCE)

    def _compare_place(self, place: int, talk: Errand) -> Conversing[None]:
        """Compare the rows of one sum, by those of its inner sums that differ."""
        inner = inner_places(place)
        try:
            found = [inner[each] for each in (yield from self._differing_sums(place, talk))]
        except Incomplete:  # it has too many rows for that
            found = [*inner]
        for first in range(0, len(found), PLACES_AT_ONCE):
            yield from self._compare_rows(tuple(found[first : first + PLACES_AT_ONCE]), talk)

    def _differing_sums(self, place: int | None, talk: Errand) -> Conversing[list[int]]:
        """The sums that are not the same here and there; of one place, its inner sums."""
        yield from talk.turn(self._rate)
        mine = yield from talk.run(ReadSums(table=self._table, range=self._range, place=place))
        if not mine.is_known:  # they are being built
            raise Incomplete
        # What is the same must stay so after a power failure: the range may be sealed for it (R23).
        yield from talk.durable()
        digest = digest_of_sums(mine.sums)
        question = ReadSums(table=self._table, range=self._range, place=place, digest=digest)
        told = yield from talk.ask_one(self._other, question)
        # Without its sums nothing is known to be the same, and nothing may be sealed (R23).
        if not told.is_known:
            raise Incomplete
        self.bytes += len(told.sums)
        self._rate.spend(self._context.now, len(told.sums))
        # If the digest is the same, the other sends no sums.
        return list(differing(mine.sums, told.sums))

    def _compare_rows(self, places: tuple[int, ...], talk: Errand) -> Conversing[None]:
        """Exchange each row whose print is not the same here and there. Some rows are listed at a
        time: a place may have any number, because whoever writes chooses the keys.
        """
        start: Start | None = (places[0], b"")
        while start is not None:
            yield from talk.turn(self._rate)
            left, after = tuple(each for each in places if each >= start[0]), start[1]
            question = ListPlaces(table=self._table, range=self._range, places=left, after=after)
            mine = yield from talk.run(question)
            yield from talk.durable()  # as above
            told = yield from talk.ask_one(self._other, question)
            size = sum(len(at) + len(found) for at, found in told.rows)
            self.bytes += size
            self._rate.spend(self._context.now, size)
            rows, start = unlike(mine, told, start)
            for at in rows:
                yield from self._exchange(at, talk)

    def _exchange(self, at: bytes, talk: Errand) -> Conversing[None]:
        """Merge what both have of a row, and give it to whoever lacks something."""
        yield from talk.turn(self._rate)
        self.differing += 1
        key, _ = row_key(at, self._context.topology.tables[self._table].kind)
        both = self._context.node, self._other
        told = yield from talk.ask_all(both, ReadState(table=self._table, key=key))
        whole = merged([each.state for each in told.values()])
        size = sum(len(place) + len(entry) for _, place, entry in whole.entries)
        self._rate.spend(self._context.now, 2 * size)
        needy = [node for node, each in told.items() if lacks(each.state, whole)]
        mend = MergeState(table=self._table, key=key, state=whole)
        taken = yield from talk.ask_all(needy, mend)
        if any(each.wants_whole for each in taken.values()):  # the row was adopted meanwhile (R21)
            raise Incomplete
