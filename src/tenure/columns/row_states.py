"""The state that one replica of a cluster has of a row: the whole row, or parts of its sections."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

from tenure.base.keys import Key
from tenure.columns.spaces import space
from tenure.columns.tables import Table
from tenure.protocol.replication.layout import AFTER, TIME_BYTES, position
from tenure.protocol.replication.limits import PAGE_BYTES
from tenure.protocol.replication.merging import Found
from tenure.protocol.replication.operations import PartsRead, ReadParts
from tenure.protocol.replication.pages import Steps
from tenure.protocol.replication.parts import section_part, supers_with_columns
from tenure.protocol.replication.sections import SectionPart, digest_of
from tenure.protocol.replication.states import RowState
from tenure.protocol.topology.ring import position as on_ring

if TYPE_CHECKING:
    from tenure.columns.node_replica import NodeReplica

P = TypeVar("P")


def entries_of(replica: "NodeReplica", table: Table, at: bytes) -> Iterator[Found]:
    """The cells and markers of a row; places follow from them."""
    for family in table.families:
        walk = replica.engine.cursor(space(table.name, family)).walk(at, at + AFTER)
        for key, entry in walk:
            if len(entry) > TIME_BYTES:
                yield family, key, entry


def state_of(replica: "NodeReplica", table: Table, key: Key) -> RowState:
    """The state of a whole row."""
    at = position(key, table.kind)
    record = replica.record(table, at)
    found = entries_of(replica, table, at)
    return RowState(
        entries=tuple(sorted((family, whole[len(at) :], entry) for family, whole, entry in found)),
        marker=record.marker,
        newest=record.newest,
        fence=record.fence,
        journal=record.journal,
        adopted=record.adopted,
        attempt=record.attempt,
        sealed=replica.sealed[on_ring(key, table.kind)],
        is_whole=True,
    )


def parts_of(replica: "NodeReplica", asked: ReadParts) -> PartsRead:
    """The requested parts of a row."""
    table = replica.tables[asked.table]
    at = position(asked.key, table.kind)
    record = replica.record(table, at)
    sealed = replica.sealed[on_ring(asked.key, table.kind)]
    parts: list[SectionPart] = []
    for question in asked.questions:
        cursors = replica.cursors(table, question.family)
        shape = table.shapes[question.family]
        row = cursors, shape, at, record.marker, question
        left = PAGE_BYTES
        if question.within is not None:  # the families of a whole row share a page
            left -= sum(each.size for each in parts)
        if question.within is not None and question.lists_supers:
            parts += _at_once(supers_with_columns(*row, left, sealed))
            continue
        part = _at_once(section_part(*row, left))
        parts.append(part if question.lists_supers else part.without_known(sealed))
    return PartsRead(
        digest=digest_of(parts),
        parts=() if asked.digest_only else tuple(parts),
        sealed=sealed,
        adopted=record.adopted,
        attempt=record.attempt,
        newest=record.newest,
        promised=replica.horizon_of(table, asked.key),
    )


def _at_once(steps: Steps[P]) -> P:
    """Run a reading to its end without a pause."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            page: P = end.value
            return page
