"""Comparing: two replicas of a range find what either of them lacks, and exchange it (R27).

First they compare a digest of all sums, and stop if it is the same. Otherwise they send the sums,
the inner sums of those that differ, the prints of their rows, and the rows that differ. These are
merged, and each replica takes what it lacks. Afterwards, each of the two durably has all that
either of them had at the beginning; new writes reach both in the usual way.

The amount sent grows with the difference (D7). A few parts go at once, and no faster than allowed,
because requests need the same disks.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias

from tenure.base.instants import FAR_FUTURE, SECOND_NS, Instant
from tenure.base.keys import Key
from tenure.base.ranges import KeyRange
from tenure.protocol.replication.layout import row_key
from tenure.protocol.replication.messages import NodeBody
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.operations import (
    BetweenNodes,
    ListPlaces,
    MergeState,
    ReadState,
    ReadSums,
    RowsListed,
    StateMerged,
    StateRead,
    SumsRead,
)
from tenure.protocol.replication.states import RowState, lacks, merged
from tenure.protocol.replication.sums import differing, digest_of_sums, inner_places
from tenure.protocol.topology.records import NodeId

PARTS_AT_ONCE = 8
PLACES_AT_ONCE = 8
"""The most places whose rows are listed in one message: some hundreds if a range has ten million
rows.
"""
Part: TypeAlias = Callable[[Instant], None]
Heard: TypeAlias = Callable[[Instant, NodeId, Any], None]


class Comparing:
    """See above: one range of one table, with one other replica. `then` is called once, and is told
    whether the comparison was completed.
    """

    def __init__(
        self,
        context: NodeContext,
        other: NodeId,
        table: str,
        key_range: KeyRange,
        then: Callable[[Instant, bool], None],
    ) -> None:
        self._context = context
        self._other = other
        self._table = table
        self._range = key_range
        self._then = then
        self._asked: dict[int, Heard] = {}
        self._parts: deque[Part] = deque()
        self._under_way = 0
        self._free_at = Instant(0)
        """When the next part may begin."""
        self._deadline = FAR_FUTURE
        self._is_over = False
        self.wake_at = FAR_FUTURE
        self.differing = 0
        """Rows that were not the same."""
        self.bytes = 0
        """The approximate number of bytes that were sent, both ways, to find them."""

    # --- running ---

    def begin(self, now: Instant) -> None:
        """Compare all sums."""
        self._deadline = Instant(now + self._context.config.patience_ns)
        self._add(self._compare_all)
        self._go_on(now)

    def _add(self, part: Part) -> None:
        self._parts.append(part)

    def _go_on(self, now: Instant) -> None:
        while self._parts and self._under_way < PARTS_AT_ONCE and self._free_at <= now:
            self._under_way += 1
            self._parts.popleft()(now)
        if not self._parts and not self._under_way:
            self.end(now, is_whole=True)
        else:
            at = min(self._deadline, self._free_at) if self._free_at > now else self._deadline
            if at != self.wake_at:
                self.wake_at = at
                self._context.wake(self, at)

    def _part_done(self, now: Instant) -> None:
        self._under_way -= 1
        if not self._is_over:
            self._go_on(now)

    def _ask(self, now: Instant, node: NodeId, body: NodeBody, heard: Heard) -> None:
        self._asked[body.ticket] = heard
        self._deadline = Instant(now + self._context.config.patience_ns)
        self._context.ask(self, node, body)

    def on_told(self, now: Instant, node: NodeId, body: BetweenNodes) -> None:
        """A replica has answered."""
        self._context.forget(body.ticket)
        heard = self._asked.pop(body.ticket, None)
        if heard is not None and not self._is_over:
            self._deadline = Instant(now + self._context.config.patience_ns)
            heard(now, node, body)

    def on_outdated(self, now: Instant) -> None:
        """The ring has changed."""
        self.end(now, is_whole=False)

    def advance(self, now: Instant) -> None:
        """Go on, or give up."""
        if self._is_over:
            return
        is_late = now >= self._deadline
        if is_late and self._under_way:  # a replica is silent, or the disk here
            self.end(now, is_whole=False)
            return
        if is_late:  # the parts have waited for their turn
            self._deadline = Instant(now + self._context.config.patience_ns)
        self._go_on(now)

    def end(self, now: Instant, *, is_whole: bool) -> None:
        """End the comparison."""
        if self._is_over:
            return
        self._is_over = True
        self.wake_at = FAR_FUTURE
        for ticket in self._asked:
            self._context.forget(ticket)
        self._then(now, is_whole)

    def _spend(self, now: Instant, size: int) -> None:
        cost_ns = size * SECOND_NS // self._context.config.repair_bytes_a_second
        self._free_at = Instant(max(self._free_at, now) + cost_ns)

    # --- sums ---

    def _compare_all(self, now: Instant) -> None:
        del now
        self._with_own(None, self._on_sums)

    def _compare_one(self, place: int) -> None:
        def compare(theirs: bytes, mine: bytes) -> None:
            inner = inner_places(place)
            found = [inner[each] for each in differing(mine, theirs)]
            for first in range(0, len(found), PLACES_AT_ONCE):
                places = tuple(found[first : first + PLACES_AT_ONCE])
                self._add(lambda _, places=places: self._compare_rows(places))  # type: ignore[misc]

        self._with_own(place, compare)

    def _on_sums(self, theirs: bytes, mine: bytes) -> None:
        for place in differing(mine, theirs):
            self._add(lambda _, place=place: self._compare_one(place))  # type: ignore[misc]

    def _with_own(self, place: int | None, compare: Callable[[bytes, bytes], None]) -> None:
        """Have sums of both, the others' first."""
        context = self._context

        def heard(mine: bytes, now: Instant, told: SumsRead) -> None:
            self.bytes += len(told.sums)
            if not told.is_known:
                self.end(now, is_whole=False)
                return
            self._spend(now, len(told.sums))
            compare(told.sums, mine)
            self._part_done(now)

        def ask(mine: bytes) -> None:
            body = ReadSums(
                ticket=context.draw_ticket(),
                table=self._table,
                range=self._range,
                place=place,
                digest=digest_of_sums(mine),
            )
            self._ask(context.now, self._other, body, lambda at, _, told: heard(mine, at, told))

        def read(mine: SumsRead) -> None:
            if not mine.is_known:
                self.end(context.now, is_whole=False)
            else:
                self._when_durable(lambda: ask(mine.sums))

        context.run(ReadSums(table=self._table, range=self._range, place=place), read)

    def _when_durable(self, then: Callable[[], None]) -> None:
        """Call `then` when all is durable: what is the same must stay so after a power failure."""

        def durable() -> None:
            if not self._is_over:
                then()

        self._context.when_durable(durable)

    # --- rows ---

    def _compare_rows(self, places: tuple[int, ...]) -> None:
        context = self._context

        def listed(result: RowsListed) -> None:
            self._when_durable(lambda: ask(set(result.rows)))

        def ask(mine: set[tuple[bytes, bytes]]) -> None:
            body = ListPlaces(
                ticket=context.draw_ticket(), table=self._table, range=self._range, places=places
            )

            def heard(now: Instant, node: NodeId, told: RowsListed) -> None:
                del node
                self.bytes += sum(len(at) + len(found) for at, found in told.rows)
                for at in sorted({at for at, _ in mine ^ set(told.rows)}):
                    self._add(lambda now, at=at: self._exchange(now, at))  # type: ignore[misc]
                self._part_done(now)

            self._ask(context.now, self._other, body, heard)

        context.run(ListPlaces(table=self._table, range=self._range, places=places), listed)

    def _exchange(self, now: Instant, at: bytes) -> None:
        """Merge what both have of a row, and give it to whoever lacks something."""
        context = self._context
        key, _ = row_key(at, context.topology.tables[self._table].kind)
        states: dict[NodeId, RowState] = {}

        def heard(at: Instant, node: NodeId, told: StateRead) -> None:
            states[node] = told.state
            if len(states) == 2:  # noqa: PLR2004 - of both
                self._merge(at, key, states)

        self.differing += 1
        for node in (context.node, self._other):
            body = ReadState(ticket=context.draw_ticket(), table=self._table, key=key)
            self._ask(now, node, body, heard)

    def _merge(self, now: Instant, key: Key, states: dict[NodeId, RowState]) -> None:
        whole = merged(list(states.values()))
        self._spend(now, 2 * sum(len(place) + len(entry) for _, place, entry in whole.entries))
        needy = [node for node, state in states.items() if lacks(state, whole)]

        def heard(at: Instant, node: NodeId, told: StateMerged) -> None:
            needy.remove(node)
            if told.wants_whole:
                self.end(at, is_whole=False)  # the row was adopted meanwhile
            elif not needy:
                self._part_done(at)

        for node in list(needy):
            body = MergeState(
                ticket=self._context.draw_ticket(), table=self._table, key=key, state=whole
            )
            self._ask(now, node, body, heard)
        if not needy:
            self._part_done(now)
