"""A copy of a journal in etcd begins a new history.

Its snapshot is written ahead, like every snapshot. Then one transaction changes identity, seat and
head, and sweeps the old records away, if the seat and the log's end are as they were read.
"""

from tenure.journals.etcd.store import EtcdStore
from tenure.journals.etcd.values import FORMAT, Head, JournalIdentity, sealed, to_json
from tenure.journals.etcd.wire import put, value_is
from tenure.journals.etcd.writes import sweep
from tenure.protocol.log.journal import Seat


async def restore(
    store: EtcdStore, seen: Seat, lsn: int, journal: int, seat: Seat, state: bytes
) -> bool:
    """See `Restorable.restore`. Each transaction compares the identity too, as all of the store."""
    keys = store.keys
    guard = [value_is(key, value) for key, value in keys.seat_values(seen).items()]
    guard.append(value_is(keys.end, to_json(lsn)))
    pieces = await store.write_pieces(guard, keys.snapshots, lsn, state)
    if pieces is None:
        return False
    puts = {
        keys.identity: to_json(JournalIdentity(FORMAT, journal)),
        keys.head: sealed(Head(lsn, pieces)),
        **keys.seat_values(seat),
    }
    refused = await store.write(
        [*guard, store.still_there(pieces)],
        [*(put(key, value) for key, value in puts.items()), *sweep(store, lsn, pieces)],
        repeatable=False,  # a second one would find another journal, and take it for damage
    )
    if refused is not None:
        return False
    store.forget_identity()
    return True
