"""Scanning rows at a level: first their positions, then each row.

Replicas list the positions of the rows that they have in a piece of the ring, and the lists of as
many replicas as the level needs are combined: a row that was written at such a level is in one of
the lists. Lists are cut, so the result is certain up to where the first of them ends (R8). Then
each row is read as any other, and those without columns are left out. So a scan shows each row as
of some instant, not all of them as of one.
"""

from collections.abc import Callable, Mapping

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.protocol.replication.layout import FamilyShape, bound, position, row_key
from tenure.protocol.replication.levels import Need, are_met, fewest
from tenure.protocol.replication.limits import PAGE_BYTES
from tenure.protocol.replication.messages import FailedWhy, ReadRows, RowsFound, WholeRow
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.operations import KeysListed, ListKeys
from tenure.protocol.replication.request import ClientRequestUnderWay
from tenure.protocol.replication.whole_reading import WholeReading
from tenure.protocol.topology.records import NodeId, Replicas
from tenure.protocol.topology.tables import RowKind

ROWS_AT_ONCE = 16
"""The most rows that are read side by side."""


class Scanning(ClientRequestUnderWay):
    """One page of rows."""

    def __init__(
        self,
        context: NodeContext,
        now: Instant,
        client: int,
        asked: ReadRows,
        table: tuple[RowKind, Mapping[str, FamilyShape]],
    ) -> None:
        super().__init__(context, now, asked.level, client, asked.request)
        self._asked = asked
        self._kind, self._shapes = table
        part = asked.part
        self._lower = b"" if part.start is None else position(part.start, self._kind)
        self._upper = None if part.end is None else position(part.end, self._kind)
        if part.after is not None and part.reverse:
            self._upper = position(part.after, self._kind)
        elif part.after is not None:
            self._lower = position(part.after, self._kind) + b"\0"
        self._piece: Replicas | None = None
        self._needs: list[Need] = []
        self._told: dict[NodeId, KeysListed] = {}
        self._asked_nodes: list[NodeId] = []
        self._keys: list[Key] = []
        """Listed, and not read yet."""
        self._reading: dict[Key, WholeRow | None] = {}
        """Side by side, in order; None: not read yet."""
        self._rows: list[WholeRow] = []
        self._size = 0
        self._is_last = False
        """Whether there is nothing behind what is listed."""

    # --- listing ---

    def begin(self, now: Instant) -> None:
        """List a piece: where the page begins, or where the last piece ended."""
        context = self.context
        self.forget()
        self._told.clear()
        self._asked_nodes.clear()
        self._piece = piece = self._next_piece()
        needs = None if piece is None else self.needs(piece)
        if piece is None or needs is None:
            self.fail("too few replicas")
            return
        self._needs = needs
        for node in fewest(needs, context.in_order(piece.everyone)):
            self._ask(node)
        self.wake_at = min(Instant(now + context.config.spare_ns), self.deadline)

    def _next_piece(self) -> Replicas | None:
        """The piece of the ring in which the next row is looked for."""
        pieces = list(self.context.topology.each())
        if self._asked.part.reverse:
            upper = self._upper
            below = (
                each
                for each in pieces
                if upper is None or bound(each.range.start, self._kind) < upper
            )
            return max(below, key=lambda each: each.range.start, default=None)
        return next((each for each in pieces if not self._ends_before(each, self._lower)), None)

    def _ends_before(self, piece: Replicas, at: bytes) -> bool:
        end = piece.range.end
        return end is not None and bound(end, self._kind) <= at

    def _bounds(self, piece: Replicas) -> tuple[bytes, bytes | None]:
        lower, end = bound(piece.range.start, self._kind), piece.range.end
        uppers = [self._upper, None if end is None else bound(end, self._kind)]
        return max(lower, self._lower), min(filter(None, uppers), default=None)

    def _ask(self, node: NodeId) -> None:
        assert self._piece is not None
        lower, upper = self._bounds(self._piece)
        self._asked_nodes.append(node)
        body = ListKeys(
            ticket=self.context.draw_ticket(),
            table=self._asked.table,
            lower=lower,
            upper=upper,
            reverse=self._asked.part.reverse,
        )
        self.ask(node, body)

    def on_time(self, now: Instant) -> None:
        """A replica is silent: ask the others, too."""
        del now
        self.wake_at = self.deadline
        if self._piece is not None and not self._reading:
            for node in self.context.in_order(self._piece.everyone):
                if node not in self._asked_nodes:
                    self._ask(node)

    def on_told(self, now: Instant, node: NodeId, body: KeysListed) -> None:
        """A replica has listed what it has."""
        if self._piece is None:
            return
        self._told[node] = body
        if are_met(self._needs, self._told):
            self.forget()
            self.wake_at = self.deadline
            self._take(self._piece)
            self._piece = None
            self._read(now)

    def _take(self, piece: Replicas) -> None:
        """Take the rows that are certain by all lists, and find where to go on."""
        is_reverse = self._asked.part.reverse
        lower, upper = self._bounds(piece)
        listed = sorted({at for told in self._told.values() for at in told.positions})
        ends = [told.positions[-1] for told in self._told.values() if not told.is_all]
        if not ends:
            self._is_last = upper == self._upper if not is_reverse else lower == self._lower
            self._is_last |= (piece.range.start == b"") if is_reverse else piece.range.end is None
        if is_reverse:
            self._upper = max(ends) if ends else lower
            listed = [at for at in reversed(listed) if at >= self._upper]
        else:
            certain = min(ends) if ends else None
            listed = [at for at in listed if certain is None or at <= certain]
            assert certain is not None or upper is not None or self._is_last
            self._lower = certain + b"\0" if certain is not None else (upper or self._lower)
        self._keys = [row_key(at, self._kind)[0] for at in listed]

    # --- reading ---

    def _read(self, now: Instant) -> None:
        if not self._keys:
            if self._is_last:
                self._end_with(None)
            else:
                self.begin(now)
            return
        missing = max(1, min(ROWS_AT_ONCE, self._asked.part.first - len(self._rows)))
        batch, self._keys = self._keys[:missing], self._keys[missing:]
        self._reading = dict.fromkeys(batch)
        for key in batch:
            row = self._asked.table, key
            page = self._shapes, self._asked.within
            WholeReading(self.context, now, self.level, row, page, self._on_read(key)).begin(now)

    def _on_read(self, key: Key) -> Callable[[Instant, WholeRow | None, FailedWhy | None], None]:
        def on_read(now: Instant, row: WholeRow | None, why: FailedWhy | None) -> None:
            if self.is_over:
                return
            if why is not None:
                self.fail(why)
                return
            self._reading[key] = row
            if all(each is not None for each in self._reading.values()):
                self._on_batch(now, [each for each in self._reading.values() if each is not None])

        return on_read

    def _on_batch(self, now: Instant, rows: list[WholeRow]) -> None:
        self._reading = {}
        for row in rows:
            if row.simple or row.supers:
                self._rows.append(row)
                self._size += row.size
                if len(self._rows) == self._asked.part.first or self._size >= PAGE_BYTES:
                    self._end_with(row.key)
                    return
        self._read(now)

    def _end_with(self, after: Key | None) -> None:
        self.answer(RowsFound(request=self.request, rows=tuple(self._rows), next=after))
        self.end()

    def on_deadline(self, now: Instant) -> None:
        """Fail, because not all replicas answered in time."""
        del now
        self.fail("unavailable")

    def on_topology(self, now: Instant) -> None:
        """Take a new topology: a piece that is being listed is listed anew. The reading of a row
        takes the topology itself.
        """
        if self._piece is not None:
            super().on_topology(now)
