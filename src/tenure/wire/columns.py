"""The bytes of messages between clients and nodes of the store.

Clients and nodes come in at one door of a node, over connections of the same versions as all
others. A node is a client of other nodes, too: its messages go over the connection that it made,
and answers come over the connection that the other node made.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, get_args

import msgspec

from tenure.base.numbers import Number
from tenure.errors import RemoteProtocolError, SchemaError
from tenure.protocol.replication.levels import Level
from tenure.protocol.replication.messages import (
    ClientAnswer,
    ClientRequest,
    NodeMessage,
    ReadRows,
    WriteRow,
)
from tenure.protocol.replication.openings import OpenStore, StoreOpened, TableMissing
from tenure.protocol.replication.operations import ApplyRow
from tenure.protocol.replication.row.edits import check_size
from tenure.protocol.replication.row.limits import (
    MUTATION_BYTES,
    NAME_BYTES,
    PAGE_BYTES,
    VALUE_BYTES,
    WHOLE_BYTES,
)
from tenure.protocol.replication.row.message_limits import RowKey, TableName
from tenure.protocol.replication.row.pages import Slice
from tenure.protocol.topology.records import ClusterId, ClusterName, NodeId
from tenure.wire.frame import MessageWriter, Reader
from tenure.wire.limits import MIB

FIRST_VERSION: Final = 2
"""The version that brought the store on several nodes."""
STORE_BYTES: Final = 64 * MIB
"""The most bytes of one message: a mutation, a page that ends with its largest value, or what a
replica has of a row. Larger ones go from node to node in parts: see `message_parts`.
"""
assert MUTATION_BYTES < STORE_BYTES > PAGE_BYTES + VALUE_BYTES

FromStoreClient: TypeAlias = OpenStore | ClientRequest
ToStore: TypeAlias = FromStoreClient | NodeMessage
ToStoreClient: TypeAlias = StoreOpened | TableMissing | ClientAnswer

_TYPES: Final = (*get_args(ToStore), *get_args(ToStoreClient))
_SINCE: Final[Mapping[type[Any], int]] = dict.fromkeys(_TYPES, FIRST_VERSION)
_LIMITS: Final[Mapping[type[Any], int]] = dict.fromkeys(_TYPES, STORE_BYTES)

encode_store: MessageWriter[ToStore | ToStoreClient] = MessageWriter(_SINCE, _LIMITS)
"""Encodes a message for a connection of a version."""


class NodeHead(msgspec.Struct, frozen=True, array_like=True, tag="NodeMessage"):
    """The first fields of a `NodeMessage`."""

    cluster: ClusterName
    id: ClusterId
    sender: NodeId


_NODES_BEGIN: Final = b"\xabNodeMessage"
"""The tag of a message of a node, as msgspec writes it, behind the version and the array's length.
Only a node of ours is to be understood, so nothing else that msgpack could mean counts.
"""


def is_of_node(data: bytes) -> bool:
    """Whether the bytes are those of a message of a node, if they can be read at all."""
    return data[2 : 2 + len(_NODES_BEGIN)] == _NODES_BEGIN


class _Edits(msgspec.Struct, frozen=True, array_like=True, tag="WriteRow", kw_only=True):
    """The first fields of a `WriteRow`, with the edits as they came."""

    request: Number = 0
    table: TableName
    level: Level = "quorum"
    key: RowKey
    edits: msgspec.Raw


_edits: msgspec.msgpack.Decoder[_Edits] = msgspec.msgpack.Decoder(_Edits)
FREE_BYTES: Final = 16 << 10
"""What is shorter takes a few milliseconds at most, whatever it is."""
FREE_EDITS: Final = 1_024
"""A mutation with no more edits weighs nothing: it takes a replica ten milliseconds or so."""
EDIT_WEIGHT: Final = 512
"""As how many bytes one edit counts, however small it is: of larger mutations a token may write
8,000 edits a second at one node, and each of them is applied at every replica.
"""


def weight(data: bytes) -> int:
    """As how many bytes a client's message counts because of what it lists: its edits, or the
    tables that it declares. Large values are written quickly, and count for nothing.
    """
    if len(data) <= FREE_BYTES or is_of_node(data):
        return 0
    try:
        edits = memoryview(_edits.decode(memoryview(data)[1:]).edits)
    except msgspec.MsgspecError:  # it is another request, or cannot be read
        return len(data)
    wide = {0xDC: 2, 0xDD: 4}.get(edits[0], 0)
    count = int.from_bytes(edits[1 : 1 + wide])
    return EDIT_WEIGHT * count if count > FREE_EDITS else 0


def _check_version(version: int) -> None:
    if version < FIRST_VERSION:
        raise RemoteProtocolError(
            f"stores are of protocol version {FIRST_VERSION}, and version {version} is spoken: "
            "upgrade tenure on the older side"
        )


def _check_to_store(message: ToStore, version: int) -> None:
    _check_version(version)
    match message:
        case NodeMessage(body=ApplyRow(edits=edits)) | WriteRow(edits=edits):
            try:
                check_size(list(edits))
            except SchemaError as error:
                raise ValueError(str(error)) from error
        case ReadRows(part=Slice(after=bytes() as after)) if len(after) > NAME_BYTES:
            raise ValueError(f"a key of {len(after)} bytes; at most {NAME_BYTES} are allowed")


def _check_to_client(message: ToStoreClient, version: int) -> None:
    del message  # it comes from one of the user's own nodes
    _check_version(version)


_for_store: msgspec.msgpack.Decoder[ToStore] = msgspec.msgpack.Decoder(ToStore)
_from_client: msgspec.msgpack.Decoder[FromStoreClient] = msgspec.msgpack.Decoder(FromStoreClient)
_head: msgspec.msgpack.Decoder[NodeHead] = msgspec.msgpack.Decoder(NodeHead)
_for_client: msgspec.msgpack.Decoder[ToStoreClient] = msgspec.msgpack.Decoder(ToStoreClient)

decode_to_store = Reader(_for_store, STORE_BYTES, _check_to_store)
"""Decodes what a node received, from a client or from another node."""
decode_from_client = Reader(_from_client, STORE_BYTES, _check_to_store)
"""Decodes what a node received, from a client only: nothing that only nodes say is decoded."""
decode_head = Reader(_head, STORE_BYTES, lambda _, version: _check_version(version))
"""Decodes who sent a message of a node, and to whom: nothing else of it."""
decode_whole = Reader(_for_store, WHOLE_BYTES, _check_to_store)
"""Decodes what was put together from parts."""
decode_to_store_client = Reader(_for_client, STORE_BYTES, _check_to_client)
"""Decodes what a client received from a node."""
