"""Catching up: the second step of a change, in which a node gets what it missed (R15).

While the node was filled, requests went by the old lists without it. Now it takes part, and gets
new writes as all others do. A majority of the old list has every write that was acknowledged
before; so the node compares itself with a majority of each old list, row by row, and takes the rows
that differ. Each replica answers in the version of this step or a later one: its answer has
everything that it acknowledged under an earlier version, and no more can follow (R16).
"""

from collections.abc import Callable, Sequence
from typing import Any

from tenure.base.instants import FAR_FUTURE, SECOND_NS, Instant
from tenure.base.keys import Key
from tenure.base.ranges import KeyRange
from tenure.protocol.replication.levels import majority
from tenure.protocol.replication.messages import NodeBody
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.operations import (
    ListRows,
    MergeState,
    PromiseHorizon,
    ReadState,
    RowsListed,
    SealHorizon,
    StateMerged,
    StateRead,
)
from tenure.protocol.replication.tasks import CompareRows, RowsCompared
from tenure.protocol.topology.records import NodeId

COMPARISONS_AT_ONCE = 8
STATES_AT_ONCE = 16
"""Rows that one comparison asks for at once."""
AGAIN_NS = SECOND_NS


class CatchingUp:
    """See above."""

    def __init__(
        self,
        context: NodeContext,
        version: int,
        gained: Sequence[KeyRange],
        on_through: Callable[[], None],
    ) -> None:
        self.version = version
        self.wake_at = FAR_FUTURE
        self.context = context
        self._on_through = on_through
        """The function to call when catching up is over, and durable."""
        self._done: dict[KeyRange, set[NodeId]] = {each: set() for each in gained}
        """The replicas with which each range has been compared."""
        self._running: list[Comparison] = []
        self._silent: set[NodeId] = set()
        """The replicas that did not answer last: others are asked first."""
        self._is_over = False

    def begin(self, now: Instant) -> None:
        """Begin as many comparisons as there may be at once."""
        for key_range, done in self._done.items():
            old = self.context.topology.at(key_range.start).old
            running = {each.source for each in self._running if each.range == key_range}
            missing = majority(old) - len(done) - len(running)
            sources = self.context.in_order(old)
            for source in sorted(sources, key=lambda each: each in self._silent):
                if missing <= 0 or len(self._running) >= COMPARISONS_AT_ONCE:
                    break
                if source not in done and source not in running:
                    missing -= 1
                    comparison = Comparison(self, key_range, source)
                    self._running.append(comparison)
                    comparison.ask(now)
        if self._is_complete():
            self._is_over = True
            self.context.when_durable(self._on_through)
        else:
            self.wake_at = Instant(now + AGAIN_NS)
            self.context.wake(self, self.wake_at)

    def _is_complete(self) -> bool:
        at = self.context.topology.at
        return all(len(done) >= majority(at(each.start).old) for each, done in self._done.items())

    def compared(self, now: Instant, comparison: "Comparison") -> None:
        """All that one replica has of one range is here."""
        self._running.remove(comparison)
        self._done[comparison.range].add(comparison.source)
        self._silent.discard(comparison.source)
        self.begin(now)

    def on_topology(self, now: Instant) -> None:
        """Take a new topology in which this step goes on: questions without an answer are asked in
        it.
        """
        for comparison in self._running:
            comparison.ask(now)

    def advance(self, now: Instant) -> None:
        """Give up who does not answer; another one may."""
        if self._is_over:
            return
        for comparison in [each for each in self._running if each.deadline <= now]:
            comparison.forget()
            self._running.remove(comparison)
            self._silent.add(comparison.source)
        self.begin(now)

    def end(self) -> None:
        """The step is over, or was taken back."""
        self._is_over = True
        self.wake_at = FAR_FUTURE
        for comparison in self._running:
            comparison.forget()
        self._running.clear()


class Comparison:
    """The comparison of one range with one replica."""

    def __init__(self, catching_up: CatchingUp, key_range: KeyRange, source: NodeId) -> None:
        self.range = key_range
        self.source = source
        self.deadline = FAR_FUTURE
        self._catching_up = catching_up
        self._context = catching_up.context
        self._tables = sorted(self._context.topology.tables)
        """The first is compared now."""
        self._after = b""
        """The position behind which it goes on."""
        self._next: bytes | None = None
        """Behind which it goes on when these rows are here; None where the table ends."""
        self._waiting: list[Key] = []
        """Rows that are not the same, and were not asked for."""
        self._asked: dict[int, Key | None] = {}
        """The key that each ticket asked for; None for a list of rows."""

    def ask(self, now: Instant) -> None:
        """Ask for the next rows, or anew for those that have not come."""
        self.forget()
        self._waiting.clear()
        if self._tables:
            body = ListRows(
                ticket=self._context.draw_ticket(),
                table=self._tables[0],
                range=self.range,
                after=self._after,
            )
            self._send(now, body, None)
        else:
            self._catching_up.compared(now, self)

    def _send(self, now: Instant, body: NodeBody, key: Key | None) -> None:
        self._asked[body.ticket] = key
        self.deadline = Instant(now + self._context.config.patience_ns)
        self._context.ask(self, self.source, body)

    def on_told(self, now: Instant, node: NodeId, body: Any) -> None:  # noqa: ANN401 - what it asked
        """Rows and their digests, or all of one."""
        del now, node
        context, table = self._context, self._tables[0]
        context.forget(body.ticket)
        if body.ticket not in self._asked:
            return
        if isinstance(body, RowsListed):
            for each in body.horizons:
                for step in (
                    PromiseHorizon(range=each.range, time=each.promised),
                    SealHorizon(range=each.range, time=each.sealed),
                ):
                    context.run(step, _nothing, self.forget)  # its deadline comes then
            self._next = None if body.is_all else body.rows[-1][0]
            context.run(CompareRows(table, body.rows), lambda found: self._on_compared(body, found))
        elif isinstance(body, StateRead):
            key = self._asked[body.ticket]
            assert key is not None

            def taken(_: StateMerged) -> None:
                context.row_changed(table, key)
                self._on_taken(body.ticket)

            context.run(MergeState(table=table, key=key, state=body.state), taken)

    def _on_compared(self, told: RowsListed, found: RowsCompared) -> None:
        if told.ticket in self._asked:
            self._waiting = list(found.keys)
            self._on_taken(told.ticket)

    def _on_taken(self, ticket: int) -> None:
        if self._asked.pop(ticket, self) is self:
            return
        now = self._context.now
        while self._waiting and len(self._asked) < STATES_AT_ONCE:
            key = self._waiting.pop()
            ticket = self._context.draw_ticket()
            self._send(now, ReadState(ticket=ticket, table=self._tables[0], key=key), key)
        if not self._asked:
            if self._next is None:
                del self._tables[0]
            self._after = self._next or b""
            self.ask(now)

    def on_outdated(self, now: Instant) -> None:
        """The replica acts by a later topology, which is on its way."""
        del now

    def forget(self) -> None:
        """Answers no longer count."""
        for ticket in self._asked:
            self._context.forget(ticket)
        self._asked.clear()


def _nothing(_: object) -> None:
    """Do nothing: what was raised is durable when the step is."""
