"""The bytes of a manager's journal: the records of leases and clusters."""

from typing import Final

import msgspec

from tenure.protocol.lease.records import AnyRecord, Changed, Joined, Left, PoolCreated, State
from tenure.protocol.topology.history import ClusterDeleted, TopologySet
from tenure.wire.checks import check_each, check_in_order, check_keys, check_owner
from tenure.wire.journal_codec import JournalCodec
from tenure.wire.topology import check_topology


def _check_record(record: AnyRecord) -> None:
    match record:
        case Changed(entries=entries, steering=steering):
            check_each(entries)
            if steering is not None:
                check_keys(key for key, _ in steering.pins)
        case Left(entries=entries):
            check_each(entries)
        case PoolCreated(split_points=split_points):
            check_keys(split_points)
        case Joined(capacity=capacity, labels=labels):
            check_owner(capacity, labels)
        case TopologySet(topology=topology):
            check_topology(topology)


def _check_state(state: State) -> None:
    for pool in state.pools:
        check_keys(pool.split_points)
        check_in_order(pool.entries)
        check_in_order(pool.handed)
        check_keys(key for key, _ in pool.steering.pins)
        for member in pool.members:
            check_owner(member.capacity, member.labels)
    for cluster in state.clusters:
        check_topology(cluster.topology)


_records: msgspec.msgpack.Decoder[AnyRecord] = msgspec.msgpack.Decoder(AnyRecord)

WITH_CLUSTERS: Final = 2
"""The format that brought clusters. A journal without clusters has the first format, so that
managers of both releases can use it. An older manager refuses a journal with a cluster, because it
would forget the cluster.
"""


def _format_of(value: AnyRecord | State) -> int:
    match value:
        case TopologySet() | ClusterDeleted():
            return WITH_CLUSTERS
        case State(clusters=clusters, versions_passed=passed) if clusters or passed:
            return WITH_CLUSTERS
        case _:
            return 1


LEASE_RECORDS: Final = JournalCodec(
    format_of=_format_of,
    newest=WITH_CLUSTERS,
    records=_records,
    states=msgspec.msgpack.Decoder(State),
    empty=State(),
    check_record=_check_record,
    check_state=_check_state,
)
"""Encodes records of leases, and the state that they lead to, as a manager keeps them."""
