"""How a client begins with a cluster: it names its tables, and is told which nodes exist."""

from typing import Annotated

import msgspec

from tenure.base.numbers import Number
from tenure.protocol.replication.messages import ToClient
from tenure.protocol.replication.row.message_limits import Detail, TableName
from tenure.protocol.topology.limits import NODES
from tenure.protocol.topology.records import Address, ClusterId, ClusterName, Topology
from tenure.protocol.topology.tables import TableRecord

DECLARED_TABLES = 1_000
"""The most tables in one message."""


class OpenStore(msgspec.Struct, frozen=True, array_like=True, tag=True, kw_only=True):
    """A client has these tables; make those that are missing."""

    request: Number
    tables: Annotated[dict[TableName, TableRecord], msgspec.Meta(max_length=DECLARED_TABLES)] = {}


class StoreOpened(ToClient, frozen=True, kw_only=True):
    """All tables exist, as they are now. A node also sends this unasked, with the request number 0:
    to a client that goes on with it, and to all clients when the topology is another.
    """

    cluster: ClusterName
    id: ClusterId
    addresses: Annotated[tuple[Address, ...], msgspec.Meta(max_length=NODES)]
    """The addresses of the nodes, this one included."""
    tables: Annotated[dict[TableName, TableRecord], msgspec.Meta(max_length=DECLARED_TABLES)]
    """All that there are."""
    topology: Topology | None = None
    """The topology by which the node acts; None from a release before clients were told."""


class TableMissing(ToClient, frozen=True, kw_only=True):
    """A table could not be made."""

    table: TableName
    detail: Detail


UNASKED = 0
"""The number of no request."""


def store_opened(request: int, topology: Topology) -> StoreOpened:
    """What a node that acts by this topology tells its clients."""
    return StoreOpened(
        request=request,
        cluster=topology.cluster,
        id=topology.id,
        addresses=tuple(node.address for node in topology.nodes),
        tables=topology.tables,
        topology=topology,
    )
