"""Likeness: once all is healed, all replicas of a row show the same of it (D7)."""

from collections.abc import Iterable, Mapping

from tenure.columns.node_replica import NodeReplica
from tenure.protocol.replication.operations import ReadState
from tenure.protocol.replication.row.cells import is_live
from tenure.protocol.replication.row.layout import CELL, MARKER, FamilyShape, parted, shapes_of
from tenure.protocol.replication.row.records import NOTHING
from tenure.protocol.replication.row.states import RowState, StateEntry
from tenure.protocol.replication.row.versions import version_of
from tenure.protocol.topology.records import NodeId, Topology
from tenure.protocol.topology.ring import position


def first_difference(
    topology: Topology,
    stores: Mapping[NodeId, NodeReplica],
    rows: Iterable[tuple[str, bytes]],
    before_us: int,
) -> str | None:
    """Find a row that replicas show differently, though nobody has written it since `before_us`."""
    for table, key in rows:
        record = topology.tables[table]
        shapes = shapes_of(record)
        replicas = topology.at(position(key, record.kind)).everyone
        shown: list[set[StateEntry]] = []
        for node in replicas:
            result, _ = stores[node].run(ReadState(table=table, key=key))
            shown.append(_shown(result.state, shapes))  # type: ignore[union-attr]
        odd = shown[0].union(*shown) - shown[0].intersection(*shown)
        old = sorted(entry for entry in odd if version_of(entry[2]).time < before_us)
        if old:
            family, place, entry = old[0]
            has = [node for node, each in zip(replicas, shown, strict=True) if old[0] in each]
            return f"D7: {table} {key!r} {family} {place!r} {entry!r} is at {has} of {replicas}"
    return None


def _shown(state: RowState, shapes: Mapping[str, FamilyShape]) -> set[StateEntry]:
    markers: dict[tuple[str, bytes], bytes] = {}
    for family, key, entry in state.entries:
        section, kind, _ = parted(shapes[family], b"", key)
        if kind == MARKER:
            markers[family, section] = entry
    found: set[StateEntry] = set()
    for family, key, entry in state.entries:
        section, kind, _ = parted(shapes[family], b"", key)
        above = (markers.get((family, each), NOTHING) for each in (section, b""))
        if kind == CELL and is_live(entry, max(state.marker, *above)):
            found.add((family, key, entry))
    return found
