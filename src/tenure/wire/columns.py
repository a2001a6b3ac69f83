"""The bytes of messages between clients and nodes of the store.

Clients and nodes come in at one door of a node, over connections of the same versions as all
others. A node is a client of other nodes, too: its messages go over the connection that it made,
and answers come over the connection that the other node made.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias, get_args

import msgspec

from tenure.errors import RemoteProtocolError, SchemaError
from tenure.protocol.replication.edits import Edit, check_size
from tenure.protocol.replication.limits import (
    MUTATION_BYTES,
    NAME_BYTES,
    PAGE_BYTES,
    PAGE_COLUMNS,
    VALUE_BYTES,
)
from tenure.protocol.replication.messages import (
    AdoptRow,
    ApplyRow,
    AskParts,
    ClientAnswer,
    ClientRequest,
    NodeMessage,
    ReadColumn,
    ReadPage,
    ReadRow,
    ReadRows,
    ReadSupers,
    WriteRow,
)
from tenure.protocol.replication.openings import OpenStore, StoreOpened, TableMissing
from tenure.protocol.replication.pages import Slice
from tenure.wire.frame import MessageWriter, Reader
from tenure.wire.limits import MIB

FIRST_VERSION: Final = 2
"""The version that brought the store on several nodes."""
STORE_BYTES: Final = 64 * MIB
"""The most bytes of one message: a mutation, a page that ends with its largest value, or what a
replica has of a row. Larger ones go from node to node in parts: see `message_parts`.
"""
WHOLE_BYTES: Final = 1024 * MIB
"""The most bytes of a message in parts, and of everything that a node puts together at one time.
Both ends have the message in memory, so a row that is larger cannot be replicated.
"""
assert MUTATION_BYTES < STORE_BYTES > PAGE_BYTES + VALUE_BYTES

ToStore: TypeAlias = OpenStore | ClientRequest | NodeMessage
ToStoreClient: TypeAlias = StoreOpened | TableMissing | ClientAnswer

_TYPES: Final = (*get_args(ToStore), *get_args(ToStoreClient))
_SINCE: Final[Mapping[type[Any], int]] = dict.fromkeys(_TYPES, FIRST_VERSION)
_LIMITS: Final[Mapping[type[Any], int]] = dict.fromkeys(_TYPES, STORE_BYTES)

encode_store: MessageWriter[ToStore | ToStoreClient] = MessageWriter(_SINCE, _LIMITS)
"""Encodes a message for a connection of a version."""


def _check_version(version: int) -> None:
    if version < FIRST_VERSION:
        raise RemoteProtocolError(
            f"stores are of protocol version {FIRST_VERSION}, and version {version} is spoken: "
            "upgrade tenure on the older side"
        )


def _check_names(names: Iterable[bytes | None]) -> None:
    for name in names:
        if name is not None and len(name) > NAME_BYTES:
            raise ValueError(f"a name of {len(name)} bytes; at most {NAME_BYTES} are allowed")


def _check_slice(part: Slice | None, within: int = 1) -> None:
    if part is not None:
        _check_names((part.start, part.end))
        if not 1 <= part.first <= PAGE_COLUMNS:
            raise ValueError(f"a page of {part.first} columns; 1 to {PAGE_COLUMNS} are allowed")
    if not 1 <= within <= PAGE_COLUMNS:
        raise ValueError(f"{within} columns of each; 1 to {PAGE_COLUMNS} are allowed")


def _check_mutation(key: bytes, edits: tuple[Edit, ...]) -> None:
    _check_names((key,))
    try:
        check_size(list(edits))
    except SchemaError as error:
        raise ValueError(str(error)) from error
    for edit in edits:
        _check_names((edit.super, edit.name))
        if edit.value is not None and len(edit.value) > VALUE_BYTES:
            raise ValueError(
                f"a value of {len(edit.value)} bytes; at most {VALUE_BYTES} are allowed"
            )


def _check_to_store(message: ToStore, version: int) -> None:
    _check_version(version)
    match message:
        case NodeMessage(body=ApplyRow(key=key, edits=edits)) | WriteRow(key=key, edits=edits):
            _check_mutation(key, edits)
        case NodeMessage(body=AskParts(key=key, questions=questions)):
            _check_names((key,))
            for question in questions:
                _check_names((question.super, *question.names))
                _check_slice(question.part)
        case ReadColumn():
            _check_names((message.key, message.super, message.name))
        case ReadPage():
            _check_names((message.key, message.super))
            _check_slice(message.part)
        case ReadSupers():
            _check_names((message.key,))
            _check_slice(message.part, message.within)
        case ReadRows():
            _check_slice(message.part, message.within)
            _check_names((message.part.after,))
        case ReadRow():
            _check_names((message.key,))
            _check_slice(None, message.within)
        case AdoptRow():
            _check_names((message.key,))


def _check_to_client(message: ToStoreClient, version: int) -> None:
    del message  # it comes from one of the user's own nodes
    _check_version(version)


_for_store: msgspec.msgpack.Decoder[ToStore] = msgspec.msgpack.Decoder(ToStore)
_for_client: msgspec.msgpack.Decoder[ToStoreClient] = msgspec.msgpack.Decoder(ToStoreClient)

decode_to_store = Reader(_for_store, STORE_BYTES, _check_to_store)
"""Decodes what a node received, from a client or from another node."""
decode_whole = Reader(_for_store, WHOLE_BYTES, _check_to_store)
"""Decodes what was put together from parts."""
decode_to_store_client = Reader(_for_client, STORE_BYTES, _check_to_client)
"""Decodes what a client received from a node."""
