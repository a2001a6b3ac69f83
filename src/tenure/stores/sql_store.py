"""Entities in a database of SQL: each is one row, with its envelope as one value, and its items are
rows of their own, which the same transaction keeps.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import msgspec

from tenure.client.lease import Lease
from tenure.errors import StoreFailed
from tenure.fencing.admission import Statement
from tenure.fencing.commit_groups import Program
from tenure.fencing.fenced_rows import FencedRows, Key, StoredKeys
from tenure.protocol.entity.envelope import Envelope
from tenure.protocol.entity.items import GONE

ITEMS_AT_ONCE = 100
"""How many one statement has: each costs a question to the database."""
PUT_ITEMS = (
    "INSERT INTO tenure_entity_item VALUES {} "
    "ON CONFLICT (key, name, place) DO UPDATE SET data = excluded.data"
)
REMOVE_ITEMS = "DELETE FROM tenure_entity_item WHERE key = ? AND name = ? AND place IN ({})"
REMOVE_ALL = "DELETE FROM tenure_entity_item WHERE key = ?"
SMALL_BYTES = 100
"""An envelope in which nothing is kept is smaller: only the small ones are looked into."""
KEYS = (
    "SELECT key, CASE WHEN length(data) < ? THEN data END FROM tenure_entity "
    "WHERE key > ? ORDER BY key LIMIT ?"
)
_encode = msgspec.msgpack.Encoder().encode
_envelope: msgspec.msgpack.Decoder[Envelope] = msgspec.msgpack.Decoder(Envelope)
_key: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder()


class SqlEntityStore(FencedRows):
    """The entities of one pool, as an `EntityStore`."""

    async def load(self, key: Key, lease: Lease) -> Envelope:
        """Load the row, and decode its value. Raises as `EntityStore.load` does."""
        step, data = await self.load_row(key, lease)
        try:
            found = _envelope.decode(data) if data else Envelope()
        except ValueError as error:
            raise StoreFailed(f"the stored state of {key!r:.100} cannot be read: {error}") from None
        return msgspec.structs.replace(found, step=step)

    async def save(self, key: Key, lease: Lease, stored: Envelope, new: Envelope) -> Envelope:
        """Save the row, if it still has the step of `stored`. Raises as `EntityStore.save` does."""
        items = [*_items(_encode(key), new)]
        if stored.collections and not new.collections:
            items = [(REMOVE_ALL, (_encode(key),))]
        kept = msgspec.structs.replace(new, step=stored.step + 1, items={})
        await self.save_row(key, lease, kept.step, _encode(kept.plain()), kept.next_alarm(), items)
        return kept

    async def keys(self, after: bytes, most: int, /) -> StoredKeys:
        """The keys in the order of their bytes. Raises StoreAway."""

        def find() -> Program[list[tuple[bytes, bytes | None]]]:
            return (yield KEYS, (SMALL_BYTES, after, most))

        found = await self._ask(find)
        kept = [_key.decode(bytes(key)) for key, small in found if _is_kept(small)]
        return StoredKeys(kept, bytes(found[-1][0]) if len(found) == most else None)


def _is_kept(small: bytes | None) -> bool:
    """Whether a row is of an entity, and not only there to refuse older leases."""
    if small is None:
        return True
    try:
        return bool(small) and not _envelope.decode(bytes(small)).is_empty
    except ValueError:  # whoever looks at this entity is told what is wrong with it
        return True


def _items(key: bytes, new: Envelope) -> Iterator[Statement]:
    """What is to be done with items: an envelope has those that changed since the last save."""
    for name, items in new.items.items():
        every = [*items.items()]
        for i in range(0, len(every), ITEMS_AT_ONCE):
            some = every[i : i + ITEMS_AT_ONCE]
            if put := [(key, name, *each) for each in some if each[1] != GONE]:
                rows = ", ".join(["(?, ?, ?, ?)"] * len(put))
                yield PUT_ITEMS.format(rows), tuple(chain.from_iterable(put))
            if gone := [place for place, data in some if data == GONE]:
                places = ", ".join("?" * len(gone))
                yield REMOVE_ITEMS.format(places), (key, name, *gone)
