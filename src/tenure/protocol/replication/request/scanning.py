"""Scanning rows at a level: first their positions, then each row.

Replicas list the positions of the rows that they have in a piece of the ring, and the lists of as
many replicas as the level needs are combined: a row that was written at such a level is in one of
the lists. Lists are cut, so the result is certain up to where the first of them ends (R8). Then
each row is read as any other, and those without columns are left out. So a scan shows each row as
of some instant, not all of them as of one.
"""

from contextlib import suppress
from functools import partial

from tenure.base.keys import Key
from tenure.protocol.replication.conversation import (
    Conversation,
    Conversing,
    TooFewReplicas,
    TooLarge,
    TopologyReplaced,
)
from tenure.protocol.replication.messages import ReadRows, RowsFound, WholeRow
from tenure.protocol.replication.operations import KeysListed, ListKeys
from tenure.protocol.replication.request.settling import RowAsked
from tenure.protocol.replication.request.whole_rows import Shapes, read_whole
from tenure.protocol.replication.request_room import ROWS_AT_ONCE
from tenure.protocol.replication.row.layout import bound, row_key, shapes_of
from tenure.protocol.replication.row.limits import PAGE_BYTES
from tenure.protocol.replication.row.pages import Slice, row_bounds
from tenure.protocol.topology.records import Replicas, Topology
from tenure.protocol.topology.tables import RowKind, TableRecord


class ScanPlace:
    """Where a scan is: the positions between which it goes on."""

    def __init__(self, part: Slice, kind: RowKind) -> None:
        self._kind: RowKind = kind
        self.reverse = part.reverse
        self.lower, self.upper = row_bounds(part, kind)
        self.is_last = False
        """Whether there is nothing behind what is listed."""

    def next_piece(self, topology: Topology) -> Replicas | None:
        """The piece of the ring in which the next row is looked for."""
        pieces = list(topology.each())
        if self.reverse:
            upper = self.upper
            below = (
                each
                for each in pieces
                if upper is None or bound(each.range.start, self._kind) < upper
            )
            return max(below, key=lambda each: each.range.start, default=None)
        return next((each for each in pieces if not self._is_behind(each)), None)

    def _is_behind(self, piece: Replicas) -> bool:
        end = piece.range.end
        return end is not None and bound(end, self._kind) <= self.lower

    def within(self, piece: Replicas) -> tuple[bytes, bytes | None]:
        """The positions of the piece that are to be listed."""
        lower, end = bound(piece.range.start, self._kind), piece.range.end
        uppers = [self.upper, None if end is None else bound(end, self._kind)]
        return max(lower, self.lower), min(filter(None, uppers), default=None)

    def take(self, piece: Replicas, lists: list[KeysListed]) -> list[Key]:
        """Take the rows that are certain by all lists, and find where to go on."""
        lower, upper = self.within(piece)
        listed = sorted({at for told in lists for at in told.positions})
        ends = [told.positions[-1] for told in lists if not told.is_all]
        if not ends:
            self.is_last = lower == self.lower if self.reverse else upper == self.upper
            self.is_last |= piece.range.start == b"" if self.reverse else piece.range.end is None
        if self.reverse:
            self.upper = max(ends) if ends else lower
            listed = [at for at in reversed(listed) if at >= self.upper]
        else:
            certain = min(ends) if ends else None
            listed = [at for at in listed if certain is None or at <= certain]
            assert certain is not None or upper is not None or self.is_last
            self.lower = certain + b"\0" if certain is not None else (upper or self.lower)
        return [row_key(at, self._kind)[0] for at in listed]


def read_rows(talk: Conversation, asked: ReadRows, table: TableRecord) -> Conversing[RowsFound]:
    place, shapes = ScanPlace(asked.part, table.kind), shapes_of(table)
    rows: list[WholeRow] = []
    size = 0
    while not place.is_last:
        keys = yield from _listed(talk, asked, place)
        while keys:
            count = max(1, min(ROWS_AT_ONCE, asked.part.first - len(rows)))
            batch = [RowAsked(asked.table, key, asked.level) for key in keys[:count]]
            keys = keys[count:]
            found = yield from talk.side_by_side(
                [partial(_read_little, row, shapes, asked.within) for row in batch]
            )
            yield from talk.keep(sum(row.size for row in found if row is not None))
            for which, side in zip(batch, found, strict=True):
                # One that is large is read alone: all of them at once would be too much to keep.
                row = side or (yield from read_whole(which, shapes, asked.within, talk))
                if not row.families:
                    continue
                rows.append(row)
                size += row.size
                if len(rows) == asked.part.first or size >= PAGE_BYTES:
                    return RowsFound(request=asked.request, rows=tuple(rows), next=row.key)
    return RowsFound(request=asked.request, rows=tuple(rows))


def _read_little(
    row: RowAsked, shapes: Shapes, within: int, talk: Conversation
) -> Conversing[WholeRow | None]:
    """The row, unless it is large."""
    try:
        return (yield from read_whole(row, shapes, within, talk))
    except TooLarge:
        return None


def _listed(talk: Conversation, asked: ReadRows, place: ScanPlace) -> Conversing[list[Key]]:
    """The rows of the next piece, as far as they are certain."""
    while True:
        piece = place.next_piece(talk.context.topology)
        if piece is None:
            raise TooFewReplicas
        with suppress(TopologyReplaced):
            needs = talk.needs(piece, asked.level)
            lower, upper = place.within(piece)
            question = ListKeys(table=asked.table, lower=lower, upper=upper, reverse=place.reverse)
            nearest = talk.context.in_order(piece.everyone)
            lists = yield from talk.ask_fewest(needs, nearest, question)
            return place.take(piece, [*lists.values()])
