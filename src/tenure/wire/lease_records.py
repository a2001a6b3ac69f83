"""The bytes of what the journal of leases holds."""

from typing import Final

import msgspec

from tenure.protocol.lease.records import (
    AnyRecord,
    Changed,
    Joined,
    Left,
    PoolCreated,
    State,
)
from tenure.wire.checks import check_each, check_in_order, check_keys, check_owner
from tenure.wire.journal_codec import JournalCodec


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


def _check_state(state: State) -> None:
    for pool in state.pools:
        check_keys(pool.split_points)
        check_in_order(pool.entries)
        check_in_order(pool.handed)
        check_keys(key for key, _ in pool.steering.pins)
        for member in pool.members:
            check_owner(member.capacity, member.labels)


_records: msgspec.msgpack.Decoder[AnyRecord] = msgspec.msgpack.Decoder(AnyRecord)

LEASE_RECORDS: Final = JournalCodec(
    format_version=1,
    records=_records,
    states=msgspec.msgpack.Decoder(State),
    empty=State(),
    check_record=_check_record,
    check_state=_check_state,
)
"""Records of leases and their sum, as a manager keeps them."""
