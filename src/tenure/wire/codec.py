"""Messages as bytes: one byte of protocol version, then msgpack.

The version is that of the connection (see `versions`), and stands before everything else, so that
whoever speaks another one can be told so and not "malformed".

Whatever the bytes, decoding returns a message or raises RemoteProtocolError, and the peer that sent
them is the only one to suffer. What a receiver does not take (an owner's request sent to a lookup)
is malformed for it. Ranges that are listed as a whole (`held`, `copies`, a snapshot) are sorted and
do not overlap; changes are laid one over another, and may.
"""

from collections.abc import Callable
from typing import Final, NoReturn, TypeAlias, TypeVar

import msgspec

from tenure.errors import LocalProtocolError, RemoteProtocolError
from tenure.protocol.lease.messages import (
    AnyMessage,
    Attested,
    Changes,
    Hello,
    Join,
    LeaseRequest,
    LeaseResponse,
    Sync,
    SyncResponse,
    ToLookup,
    ToManager,
    ToOwner,
)
from tenure.wire.checks import (
    check_each,
    check_in_order,
    check_load,
    check_owner,
    check_owners,
)
from tenure.wire.limits import MESSAGE_BYTES, REQUEST_BYTES
from tenure.wire.versions import NEWEST, OLDEST, SINCE

Bytes: TypeAlias = bytes | bytearray | memoryview
M = TypeVar("M")

_PREFIXES: Final = {version: bytes([version]) for version in range(OLDEST, NEWEST + 1)}
_SHOWN_CHARACTERS = 200  # of what the decoder says, which may repeat what the peer sent

_encoder = msgspec.msgpack.Encoder()
_for_manager: msgspec.msgpack.Decoder[ToManager] = msgspec.msgpack.Decoder(ToManager)
_for_owner: msgspec.msgpack.Decoder[ToOwner] = msgspec.msgpack.Decoder(ToOwner)
_for_lookup: msgspec.msgpack.Decoder[ToLookup] = msgspec.msgpack.Decoder(ToLookup)


def encode(message: AnyMessage, version: int) -> bytes:
    """The bytes of a message, for a connection of `version`.

    Raises LocalProtocolError where that version does not know such messages, and if the bytes are
    more than a peer would take.
    """
    since = SINCE[type(message)]
    if since > version:
        raise LocalProtocolError(
            f"{type(message).__name__} is of protocol version {since}, and the peer speaks "
            f"version {version}: upgrade tenure there"
        )
    data = _PREFIXES[version] + _encoder.encode(message)
    if len(data) > REQUEST_BYTES:
        _check_size_to_send(message, data)
    return data


def decode_to_manager(data: Bytes, version: int) -> ToManager:
    """What a manager received on a connection of `version`.

    Raises RemoteProtocolError, whatever is wrong with it.
    """
    return _decode(data, version, REQUEST_BYTES, _for_manager, _check_to_manager)


def decode_to_owner(data: Bytes, version: int) -> ToOwner:
    """What an owner received on a connection of `version`.

    Raises RemoteProtocolError, whatever is wrong with it.
    """
    return _decode(data, version, MESSAGE_BYTES, _for_owner, _check_to_owner)


def decode_to_lookup(data: Bytes, version: int) -> ToLookup:
    """What a lookup received on a connection of `version`.

    Raises RemoteProtocolError, whatever is wrong with it.
    """
    return _decode(data, version, MESSAGE_BYTES, _for_lookup, _check_to_lookup)


def _decode(
    data: Bytes,
    version: int,
    limit: int,
    decoder: msgspec.msgpack.Decoder[M],
    check: Callable[[M], None],
) -> M:
    if len(data) > limit:
        raise RemoteProtocolError(f"a message of {len(data)} bytes, where {limit} are the most")
    if not data or data[0] != version:
        _refuse_version(data, version)
    try:
        message = decoder.decode(memoryview(data)[1:])
        if version < NEWEST:
            _check_known(message, version)
        check(message)
    except (ValueError, RecursionError) as error:  # msgspec's own errors are ValueErrors
        said = str(error)[:_SHOWN_CHARACTERS]
        raise RemoteProtocolError(f"a malformed message of {len(data)} bytes: {said}") from error
    return message


def _refuse_version(data: Bytes, version: int) -> NoReturn:
    """In words that are true on both sides: they go into the reason with which it is closed."""
    if not data:
        raise RemoteProtocolError("an empty message: not even a protocol version")
    raise RemoteProtocolError(
        f"a message of protocol version {data[0]}, where version {version} is spoken; upgrade the "
        "older side, if both are tenure"
    )


def _check_known(message: object, version: int) -> None:
    since = SINCE[type(message)]  # type: ignore[index]  # the decoders make messages only
    if since > version:
        name = type(message).__name__
        raise ValueError(f"{name} is of protocol version {since}, and not of {version}")


def _check_to_manager(message: ToManager) -> None:
    match message:
        case LeaseRequest(held=held, copies=copies, load=load):
            check_in_order(held)
            check_in_order(copies)
            check_in_order(message.letting_go)
            if load is not None:
                check_load(load)
        case Join(capacity=capacity, labels=labels):
            check_owner(capacity, labels)


def _check_to_owner(message: ToOwner) -> None:
    if isinstance(message, LeaseResponse):
        check_in_order(message.leases)
        check_in_order(message.copies)
        check_in_order(message.hand_offs)
        check_in_order(message.expected)


def _check_to_lookup(message: ToLookup) -> None:
    match message:
        case SyncResponse(snapshot=True, entries=entries, owners=owners):
            check_in_order(entries)
            check_owners(owners)
        case SyncResponse(entries=entries, owners=owners) | Changes(entries=entries, owners=owners):
            check_each(entries)
            check_owners(owners)


def _check_size_to_send(message: AnyMessage, data: bytes) -> None:
    is_request = isinstance(message, Hello | Join | LeaseRequest | Attested | Sync)
    limit = REQUEST_BYTES if is_request else MESSAGE_BYTES
    if len(data) > limit:
        raise LocalProtocolError(
            f"a {type(message).__name__} of {len(data)} bytes, where {limit} are the most: "
            "use shorter keys as range bounds, or more and smaller pools"
        )
