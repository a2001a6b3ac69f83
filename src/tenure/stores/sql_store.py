"""Entities in a database of SQL: each is one row, with its envelope as one value, and its items are
rows of their own, which the same transaction keeps.
"""

from collections.abc import Iterator
from itertools import chain

import msgspec

from tenure.client.lease import Lease
from tenure.errors import StoreFailed
from tenure.fencing.admission import Statement
from tenure.fencing.fenced_rows import FencedRows, Key
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
_encode = msgspec.msgpack.Encoder().encode
_envelope: msgspec.msgpack.Decoder[Envelope] = msgspec.msgpack.Decoder(Envelope)


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
