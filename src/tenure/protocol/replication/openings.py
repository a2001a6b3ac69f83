"""How a client begins with a cluster: it names its tables, and is told which nodes exist."""

from typing import Annotated

import msgspec

from tenure.base.numbers import Number
from tenure.protocol.replication.message_limits import Detail, TableName
from tenure.protocol.replication.messages import ToClient
from tenure.protocol.topology.limits import NODES
from tenure.protocol.topology.records import Address, ClusterId, ClusterName
from tenure.protocol.topology.tables import TableRecord

DECLARED_TABLES = 1_000
"""The most tables in one message."""


class OpenStore(msgspec.Struct, frozen=True, array_like=True, tag=True, kw_only=True):
    """A client has these tables; make those that are missing."""

    request: Number
    tables: Annotated[dict[TableName, TableRecord], msgspec.Meta(max_length=DECLARED_TABLES)] = {}


class StoreOpened(ToClient, frozen=True, kw_only=True):
    """All tables exist, as they are now."""

    cluster: ClusterName
    id: ClusterId
    addresses: Annotated[tuple[Address, ...], msgspec.Meta(max_length=NODES)]
    """The addresses of the nodes, this one included."""
    tables: Annotated[dict[TableName, TableRecord], msgspec.Meta(max_length=DECLARED_TABLES)]
    """All that there are."""


class TableMissing(ToClient, frozen=True, kw_only=True):
    """A table could not be made."""

    table: TableName
    detail: Detail
