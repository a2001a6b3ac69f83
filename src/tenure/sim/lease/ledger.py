"""Acknowledged records, kept by the simplest means: for S4, which trusts no other count.

The system keeps tables of ranges; this ledger keeps some keys, one by one, and the last record of
each. The two share only the records.
"""

from collections.abc import Sequence

from tenure.base.keys import Key
from tenure.protocol.lease.messages import Entry
from tenure.protocol.lease.records import AnyRecord, Changed, Joined, Left, PoolCreated, PoolState

Said = tuple[int, int, int]
"""The facts about a key: its owner's incarnation, its lease number, and since when it
is unbroken.
"""


class PlainPool:
    """One pool, as its records describe it."""

    def __init__(
        self, keys: Sequence[Key], state: PoolState | None = None, highest: int = 0
    ) -> None:
        self.keys: dict[Key, Said | None] = dict.fromkeys(keys)
        """The last facts about each key. None if no record has named the key yet."""
        self.highest = state.next_number - 1 if state else highest
        self.members: dict[int, tuple[str, int]] = {}
        """Name and nonce, by incarnation."""
        for member in state.members if state else ():
            self.members[member.incarnation] = (member.name, member.nonce)
        self._lay(state.entries if state else ())

    def apply(self, record: Changed | Joined | Left) -> None:
        """Apply the next record."""
        match record:
            case Joined():
                self.members[record.incarnation] = (record.name, record.nonce)
                return
            case Left():
                self.members.pop(record.incarnation, None)
        self._lay(record.entries)

    def _lay(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self.highest = max(self.highest, entry.number)
            for key in self.keys:
                if entry.start <= key and (entry.end is None or key < entry.end):
                    self.keys[key] = (entry.owner, entry.number, entry.since)

    def differs(self, known: PoolState) -> str | None:
        """A difference between the ledger of the pool and a leader that has read the
        whole journal.
        """
        if known.next_number <= self.highest:
            return f"number {self.highest} was given out, and {known.next_number} would be next"
        members = {each.incarnation: (each.name, each.nonce) for each in known.members}
        if members != self.members:
            return f"the members are {self.members}, and it knows {members}"
        for key, said in self.keys.items():
            found = next(
                (each.owner, each.number, each.since)
                for each in known.entries
                if each.start <= key and (each.end is None or key < each.end)
            )
            if said is not None and found != said:
                return f"of {key.hex()} the last record said {said}, and it knows {found}"
        return None


class PlainLedger:
    """All pools of one journal."""

    def __init__(self, keys: Sequence[Key], restored: Sequence[PoolState] = ()) -> None:
        self.keys = keys
        self.pools = {each.pool: PlainPool(keys, each) for each in restored}

    def apply(self, record: AnyRecord) -> None:
        """Apply the next record."""
        match record:
            case PoolCreated(pool=pool):
                deleted = self.pools.get(pool)  # deleted before: its numbers go on
                self.pools[pool] = PlainPool(self.keys, highest=deleted.highest if deleted else 0)
            case Changed(pool=pool) | Joined(pool=pool) | Left(pool=pool):
                self.pools[pool].apply(record)
            case _:
                pass

    def differs(self, known: Sequence[PoolState]) -> str | None:
        """A difference between the ledger and a leader, if there is one."""
        there = {each.pool: each for each in known}
        for pool, plain in self.pools.items():
            if pool not in there:
                return f"there is a pool {pool}"
            difference = plain.differs(there[pool])
            if difference is not None:
                return difference
        return None
