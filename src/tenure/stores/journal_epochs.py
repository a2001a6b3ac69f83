"""The order of the journals whose leases a store has seen, for a store that one process has alone.

Lease numbers of two journals cannot be compared, and those of a new journal may begin at 1 again:
`tenure run` begins one each time. A manager that begins a new journal waits until nobody can hold a
lease of the one before. So the first lease of a new journal ends those of the earlier ones for
good, and each journal gets numbers above all earlier ones.

Nodes do without this: several processes would have to agree on the order, and a process that stood
still could put an old order over a newer one. Their numbers go on above those of a lost journal.
"""

import asyncio

from tenure.client.lease import Lease
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Table
from tenure.errors import Fenced

ROW, FAMILY = b"journals", "due"
NUMBER_BITS = 48
JOURNAL_BYTES, EPOCH_BYTES = 8, 4
AT_ONCE = 1000


class JournalEpochs:
    """The journals of one pool, the oldest first."""

    def __init__(self, store: ColumnStore, table: Table) -> None:
        self._store = store
        self._table = table
        self._epochs: dict[int, int] = {}
        self._turn = asyncio.Lock()

    async def read(self) -> None:
        """Read what the store has."""
        after: bytes | None = None
        while True:
            page = await self._store.get(self._table, ROW, FAMILY, first=AT_ONCE, next=after)
            for each in page:
                self._epochs[int.from_bytes(each.name)] = int.from_bytes(each.value)
            after = page.next
            if after is None:
                return

    async def number_of(self, lease: Lease) -> int:
        """The number to show the store: above those of all earlier journals. Raises Fenced if the
        store has seen a later journal, and errors of the store.
        """
        async with self._turn:
            epoch = self._epochs.get(lease.journal)
            if epoch is None:
                epoch = len(self._epochs)
                name, value = lease.journal.to_bytes(JOURNAL_BYTES), epoch.to_bytes(EPOCH_BYTES)
                # It is durable before a row is adopted under it.
                await self._store.insert(self._table, ROW, {FAMILY: {name: value}})
                self._epochs[lease.journal] = epoch
        if epoch < len(self._epochs) - 1:
            raise Fenced(
                f"the store has seen a lease of a later journal, so the lease with number "
                f"{lease.number} may no longer write: another owner has begun in the meantime"
            )
        return (epoch << NUMBER_BITS) + lease.number
