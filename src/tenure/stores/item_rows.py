"""Rows of items in the store of rows and columns: one for each collection of an entity.

A commit is one mutation of the entity's own row, so new items are kept there first. But whoever
adopts that row gets it whole, so only the latest may stay. The others are copied to the rows here,
by place, and leave the entity's row with the commit that comes next.

These rows have no fence. What is copied was committed before, and is copied with the time of that
commit as its version: times of commits only rise, whoever makes them. So what a former owner copies
late is here already, or lies under something newer, or under what the entity's row still has.
"""

from collections.abc import Iterable

import msgspec

from tenure.columns.paths import DELETE
from tenure.columns.results import Page
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Table
from tenure.fencing.fenced_rows import Key
from tenure.protocol.entity.envelope import Envelope
from tenure.protocol.entity.items import GONE, FoundItems, ItemSpan

FAMILY = "items"
MOST_STAYING = 256
"""How many items an entity's row has before they are copied."""
STAYING_BYTES = 1 << 18
COPIED_AT_ONCE = 500
"""How many go in one mutation: nodes give small ones their turn at once."""
_encode = msgspec.msgpack.Encoder().encode


class ItemRows:
    """The rows of items of one pool."""

    store: ColumnStore

    def __init__(self, table: Table) -> None:
        self.table = table

    async def page(self, key: Key, name: str, span: ItemSpan, most: int) -> FoundItems:
        """The first items of a collection in a span."""
        at, after = _row(key, name), None
        while True:
            page: Page = await self.store.get(
                self.table,
                at,
                FAMILY,
                first=most,
                start=span.low or None,
                end=span.high,
                reverse=span.reverse,
                next=after,
            )
            after = page.next
            if page.columns or after is None:  # a page may be empty although more follows
                found = [(each.name, each.value) for each in page]
                return FoundItems(found, is_last=after is None)

    async def copy(self, key: Key, kept: Envelope) -> bool:
        """Copy the items of an entity's row, as they were kept at the time that is the envelope's
        step, if they are many. Returns whether they were.
        """
        count = sum(map(len, kept.items.values()))
        if count <= MOST_STAYING and kept.items_size <= STAYING_BYTES:
            return False
        for name, items in kept.items.items():
            every = [*items.items()]
            for i in range(0, len(every), COPIED_AT_ONCE):
                some = every[i : i + COPIED_AT_ONCE]
                columns = {place: DELETE if data == GONE else data for place, data in some}
                await self.store.insert(
                    self.table, _row(key, name), {FAMILY: columns}, timestamp=kept.step
                )
        return True

    async def clear(self, key: Key, names: Iterable[str], time: int) -> None:
        """Drop these collections as they were at that time."""
        for name in names:
            await self.store.delete(self.table, _row(key, name), timestamp=time)


def _row(key: Key, name: str) -> bytes:
    return _encode((key, name))
