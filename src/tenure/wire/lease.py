"""The bytes of messages between owners, lookups and managers.

Messages have the version of their connection (see `versions`). Complete lists of ranges (`held`,
`copies`, a snapshot) are sorted and do not overlap; changes may, since each is laid over the ones
before.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

import msgspec
from msgspec.structs import replace

from tenure.protocol.entity.inspection import SeenEntity
from tenure.protocol.lease.inspecting import Inspect, Inspected
from tenure.protocol.lease.messages import (
    AnyMessage,
    Attest,
    Attested,
    Changes,
    FromLookup,
    FromOwner,
    Hello,
    Introduction,
    Join,
    LeaseRequest,
    LeaseResponse,
    Poke,
    Refusal,
    ShortRequest,
    ShortResponse,
    Standby,
    Sync,
    SyncRefusal,
    SyncResponse,
    ToLookup,
    ToManager,
    ToOwner,
)
from tenure.protocol.lease.table_columns import TableColumns
from tenure.wire.checks import (
    check_each,
    check_in_order,
    check_load,
    check_owner,
    check_report,
    check_seen,
)
from tenure.wire.frame import MessageWriter, Reader
from tenure.wire.limits import INSPECTION_BYTES, LOOKUP_BYTES, MESSAGE_BYTES, REQUEST_BYTES
from tenure.wire.versions import NEWEST

Written: TypeAlias = AnyMessage | Inspect | Inspected
HeardByOwner: TypeAlias = ToOwner | Inspect
SaidByOwner: TypeAlias = FromOwner | Inspected
HeardByManager: TypeAlias = ToManager | Inspected

SINCE: Final[Mapping[type[Written], int]] = {
    Hello: 1,
    Join: 1,
    LeaseRequest: 1,
    Sync: 1,
    Introduction: 1,
    LeaseResponse: 1,
    Refusal: 1,
    Poke: 1,
    Standby: 1,
    SyncResponse: 1,
    SyncRefusal: 1,
    Changes: 1,
    Attest: 2,
    Attested: 2,
    ShortRequest: 3,
    ShortResponse: 3,
    Inspect: 3,  # which only an owner gets that has said that it knows it
    Inspected: 3,
}
"""The version of the protocol that introduced each message type."""


_LIMITS: Final[Mapping[type[Written], int]] = {
    **dict.fromkeys(SINCE, MESSAGE_BYTES),
    **dict.fromkeys((Hello, Join, LeaseRequest, ShortRequest, Attested), REQUEST_BYTES),
    **dict.fromkeys((Inspect, Inspected), INSPECTION_BYTES),
    Sync: LOOKUP_BYTES,
}


def _for_older(message: Written, version: int) -> Written:
    """Remove the fingerprint for a peer that cannot send short requests, since it asks for them."""
    if version < SINCE[ShortRequest] and isinstance(message, LeaseResponse):
        return replace(message, fingerprint=b"")
    return message


encode = MessageWriter(SINCE, _LIMITS, _for_older)
"""Encodes a message for a connection of a version."""


class WholeTables:
    """Encodes large tables once for all lookups that ask for them.

    A table is recognised by being the very same object, which the leader keeps while nothing
    changes.
    """

    KEPT = 4
    """The tables that are kept: there are few pools, and lookups ask only for each pool's present
    table.
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[SyncResponse, SyncResponse]] = {}

    def prepared(self, message: SyncResponse) -> SyncResponse:
        """The message, with its table and owners replaced by their bytes."""
        key = id(message.columns or message.entries)
        known, packed = self._kept.pop(key, (message, None))
        if packed is None or known.owners is not message.owners:
            known, packed = message, _packed(message)
        self._kept[key] = known, packed
        if len(self._kept) > self.KEPT:
            del self._kept[next(iter(self._kept))]
        return replace(
            message, entries=packed.entries, owners=packed.owners, columns=packed.columns
        )


def _packed(message: SyncResponse) -> SyncResponse:
    entries, owners, columns = (
        cast("Any", msgspec.Raw(msgspec.msgpack.encode(each)))
        for each in (message.entries, message.owners, message.columns)
    )
    return replace(message, entries=entries, owners=owners, columns=columns)


def _check_known(message: Written, version: int) -> None:
    since = SINCE[type(message)]
    if since > version:
        name = type(message).__name__
        raise ValueError(f"{name} is of protocol version {since}, and not of {version}")


def _check_to_manager(message: HeardByManager, version: int) -> None:
    if version < NEWEST:
        _check_known(message, version)
    match message:
        case LeaseRequest(held=held, copies=copies):
            check_in_order(held)
            check_in_order(copies)
            check_in_order(message.letting_go)
            _check_told(message)
        case ShortRequest():
            _check_told(message)
        case Join(capacity=capacity, labels=labels):
            check_owner(capacity, labels)
        case Inspected(answer=SeenEntity() as seen):
            check_seen(seen)


def _check_told(message: LeaseRequest | ShortRequest) -> None:
    if message.load is not None:
        check_load(message.load)
    if message.report is not None:
        check_report(message.report)


def _check_to_owner(message: HeardByOwner, version: int) -> None:
    if version < NEWEST:
        _check_known(message, version)
    if isinstance(message, LeaseResponse):
        check_in_order(message.leases)
        check_in_order(message.copies)
        check_in_order(message.hand_offs)
        check_in_order(message.expected)


def _check_to_lookup(message: ToLookup, version: int) -> None:
    if version < NEWEST:
        _check_known(message, version)
    match message:
        case SyncResponse(columns=TableColumns() as columns):
            if message.entries or not message.snapshot:
                raise ValueError("a whole table as columns, and changes beside it")
            columns.check()
        case SyncResponse(snapshot=True, entries=entries):
            check_in_order(entries)
        case SyncResponse(entries=entries) | Changes(entries=entries):
            check_each(entries)


_for_manager: msgspec.msgpack.Decoder[ToManager] = msgspec.msgpack.Decoder(ToManager)
_from_owner: msgspec.msgpack.Decoder[SaidByOwner] = msgspec.msgpack.Decoder(SaidByOwner)
_from_lookup: msgspec.msgpack.Decoder[FromLookup] = msgspec.msgpack.Decoder(FromLookup)
_for_owner: msgspec.msgpack.Decoder[HeardByOwner] = msgspec.msgpack.Decoder(HeardByOwner)
_for_lookup: msgspec.msgpack.Decoder[ToLookup] = msgspec.msgpack.Decoder(ToLookup)

decode_to_manager = Reader(_for_manager, REQUEST_BYTES, _check_to_manager)
"""Decodes what a manager received on a connection of a version, whoever may say it."""
decode_from_owner = Reader(_from_owner, REQUEST_BYTES, _check_to_manager)
"""Decodes what a manager received from an owner."""
decode_from_lookup = Reader(_from_lookup, LOOKUP_BYTES, _check_to_manager)
"""Decodes what a manager received from a lookup, and nothing that only an owner says."""
decode_to_owner = Reader(_for_owner, MESSAGE_BYTES, _check_to_owner)
"""Decodes what an owner received."""
decode_to_lookup = Reader(_for_lookup, MESSAGE_BYTES, _check_to_lookup)
"""Decodes what a lookup received."""
