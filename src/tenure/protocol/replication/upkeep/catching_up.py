"""Catching up: the second step of a change, in which a node gets what it missed (R15).

While the node was filled, requests went by the old lists without it. Now it takes part, and gets
new writes as all others do. A majority of the old list has every write that was acknowledged
before; so the node compares itself with a majority of each old list, row by row, and takes the rows
that differ. Each replica answers in the version of this step or a later one: its answer has
everything that it acknowledged under an earlier version, and no more can follow (R16).
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from tenure.base.instants import SECOND_NS
from tenure.base.keys import Key
from tenure.base.ranges import KeyRange
from tenure.protocol.replication.conversation import Conversing, Silent, TopologyReplaced
from tenure.protocol.replication.levels import majority
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.operations import (
    ListRows,
    MergeState,
    PromiseHorizon,
    ReadState,
    RowsListed,
    SealHorizon,
)
from tenure.protocol.replication.tasks import CompareRows
from tenure.protocol.replication.upkeep.errand import DiskRefused, Errand
from tenure.protocol.topology.records import NodeId

RANGES_AT_ONCE = 4
STATES_AT_ONCE = 16
"""Rows that one comparison asks for at once."""
AGAIN_NS = SECOND_NS


class CatchingUp:
    def __init__(self, context: NodeContext, gained: Sequence[KeyRange]) -> None:
        assert gained, "a node that gains nothing has nothing to catch up with"
        self._context = context
        self._gained = gained
        self._silent: set[NodeId] = set()
        """The replicas that did not answer last: others are asked first."""

    def run(self, talk: Errand) -> Conversing[None]:
        """Compare all ranges, until what came of it is durable."""
        ranges = (partial(self._catch_up, each) for each in self._gained)
        yield from talk.together(ranges, at_once=RANGES_AT_ONCE)
        # From the new lists alone nobody may read less than this node was given here (R15).
        yield from talk.durable()

    def _catch_up(self, key_range: KeyRange, talk: Errand) -> Conversing[None]:
        """Compare one range with a majority of its old list."""
        old = self._context.topology.at(key_range.start).old
        compared: set[NodeId] = set()
        # A majority has whatever one of another majority acknowledged before this step (R15).
        while (missing := majority(old) - len(compared)) > 0:
            up = [node for node in self._context.in_order(old) if node not in compared]
            chosen = sorted(up, key=lambda node: node in self._silent)[:missing]
            parts = [partial(self._compare, key_range, node, compared) for node in chosen]
            yield from talk.together(parts, at_once=missing)
            if len(compared) < majority(old):
                yield from talk.pause(AGAIN_NS)

    def _compare(
        self, key_range: KeyRange, source: NodeId, compared: set[NodeId], talk: Errand
    ) -> Conversing[None]:
        """Take all that one replica has of a range, unless it is silent or the disk here is full:
        then another one, or the same, is asked later.
        """
        try:
            for table in sorted(self._context.topology.tables):
                yield from self._take_table(table, key_range, source, talk)
        except Silent:
            self._silent.add(source)
        except DiskRefused:
            return
        else:
            self._silent.discard(source)
            compared.add(source)

    def _take_table(
        self, table: str, key_range: KeyRange, source: NodeId, talk: Errand
    ) -> Conversing[None]:
        """Take what differs in one table, page by page."""
        after: bytes | None = b""
        while after is not None:
            with suppress(TopologyReplaced):  # this page is asked for again under it (R16)
                question = ListRows(table=table, range=key_range, after=after)
                told: RowsListed = yield from talk.ask_one(source, question)
                yield from self._take_horizons(told, talk)
                found = yield from talk.run(CompareRows(table, told.rows))
                rows = (partial(self._take_row, table, key, source) for key in found)
                yield from talk.together(rows, at_once=STATES_AT_ONCE)
                assert told.is_all or told.rows, "a page that is not the last has rows"
                after = None if told.is_all else told.rows[-1][0]

    def _take_horizons(self, told: RowsListed, talk: Errand) -> Conversing[None]:
        """Take over what the replica has promised and sealed, before its rows: a write that it
        would refuse must not be taken here (R25).
        """
        for each in told.horizons:
            yield from talk.run(PromiseHorizon(range=each.range, time=each.promised))
            yield from talk.run(SealHorizon(range=each.range, time=each.sealed))

    def _take_row(self, table: str, key: Key, source: NodeId, talk: Errand) -> Conversing[None]:
        """Merge the whole row: its contents must be of one instant."""
        told = yield from talk.ask_one(source, ReadState(table=table, key=key))
        yield from talk.run(MergeState(table=table, key=key, state=told.state))
