"""Rows that outlive the process of their owner: bytes by key, of one pool in one database.

A row is kept under the lease number of its writer, and refuses writers with an older number:
loading raises the number, so an earlier owner that was stopped in the middle cannot write once the
next one has begun. Numbers of two journals cannot be compared. A manager that begins a new one
waits until nobody can hold a lease of the one before, so the first lease of a new journal ends the
old one for good.

Loading a key of which nothing is kept makes a row, which refuses older leases. The row goes when
nobody uses the key any longer, so that a store does not grow by keys that were only asked for.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

import msgspec

from tenure.base.keys import PoolKind, UserKey, key_function
from tenure.base.ranges import KeyRange
from tenure.client.lease import Lease
from tenure.errors import ConfigurationError, Fenced, StoreFailed
from tenure.fencing.admission import Statement
from tenure.fencing.commit_groups import CommitGroups, DatabaseHung, Program
from tenure.fencing.store_health import StoreHealth
from tenure.protocol.entity.items import FoundItems, Item, ItemSpan

if TYPE_CHECKING:
    from tenure.fencing.databases import Database

T = TypeVar("T")
Key: TypeAlias = UserKey
HISTORY = "SELECT journal, past FROM tenure_entity_pool"
BEGIN_HISTORY = (
    "UPDATE tenure_entity_pool SET journal = ?, past = ? WHERE journal = ? RETURNING journal"
)
LOAD = (
    "UPDATE tenure_entity SET number = ?, step = step + 1 "
    "WHERE key = ? AND number <= ? RETURNING step, data"
)
SAVE = (
    "UPDATE tenure_entity SET number = ?, step = ?, data = ?, alarm = ? "
    "WHERE key = ? AND number <= ? AND step = ? RETURNING step"
)
FORGET = "DELETE FROM tenure_entity WHERE key = ? AND number = ? AND step = ?"
ITEMS = "SELECT place, data FROM tenure_entity_item WHERE key = ? AND name = ? AND place >= ?"
DUE = "SELECT key, alarm FROM tenure_entity WHERE alarm IS NOT NULL AND place >= ?"
_encode = msgspec.msgpack.Encoder().encode


class KeptOf(NamedTuple):
    """Whose rows a store has."""

    pool: str
    state: str | None = None
    """The name of an OwnedState, which may be empty; None for entities."""

    @property
    def name(self) -> str:
        """A name that nothing else has: no pool has a tab in its name."""
        return self.pool if self.state is None else f"{self.pool}\t{self.state}"

    @classmethod
    def named(cls, name: str) -> "KeptOf":
        """What has this name."""
        pool, tab, state = name.partition("\t")
        return cls(pool, state if tab else None)

    def __str__(self) -> str:
        if self.state is None:
            return f"the entities of the pool {self.pool!r}"
        of = f"the pool {self.pool!r}"
        return f"the OwnedState {self.state!r} of {of}" if self.state else f"the OwnedState of {of}"


class EmptyRow(NamedTuple):
    """A row that a store has because a key was loaded, or forgotten."""

    key: Key
    number: int
    """The number of the lease under which it was last loaded or saved."""
    step: int


class StoredKeys(NamedTuple):
    """Some keys of which a store keeps something, in the order of the store."""

    keys: list[Key]
    next: bytes | None
    """Where the list goes on; None after the last. A part of a list may be empty."""


class FencedRows:
    """The rows of one pool. What keys ask for at the same time is one transaction."""

    def __init__(
        self, database: "Database", pool: str, kind: PoolKind, state: str | None = None
    ) -> None:
        # The thread of a store that was closed a moment ago may not have dropped its connection.
        self._database = database.afresh()
        self._of = KeptOf(pool, state)
        self._kind = kind
        self._place = key_function(kind)
        self._groups = CommitGroups(self._database)
        self._health = StoreHealth(pool, database.name)

    @property
    def is_away(self) -> bool:
        """Whether the store failed the last time."""
        return self._health.is_away

    async def _do(self, begin: Callable[[], Program[T]]) -> T:
        """Run it, and commit. Raises StoreFailed if the database fails."""
        try:
            done = await self._groups.do(begin)
        except (self._database.errors, DatabaseHung) as error:
            raise self._health.failed(error) from error
        self._health.answered()
        return done

    async def _ask(self, begin: Callable[[], Program[T]]) -> T:
        """As `_do`, for what keeps no change. Raises StoreAway if the database fails."""
        try:
            return await self._do(begin)
        except StoreFailed as error:
            why = error.__cause__ or error
            raise self._health.away(why) from why

    async def look(self, _: Key, /) -> None:
        """Look whether the database answers, which has all keys or none. Raises StoreAway."""

        def look() -> Program[None]:
            yield HISTORY, ()

        await self._ask(look)

    async def open(self) -> None:
        """Create what is missing. Raises ConfigurationError if the store belongs to another
        pool.
        """

        def look() -> Program[tuple[str, str]]:
            for each in self._database.tables:
                yield each, ()
            yield (
                "INSERT INTO tenure_entity_pool VALUES (1, ?, ?, '', '') ON CONFLICT DO NOTHING",
                (self._of.name, self._kind),
            )
            [(name, kind)] = yield "SELECT pool, kind FROM tenure_entity_pool", ()
            return name, kind

        try:
            name, kind = await self._do(look)
        except StoreFailed as error:
            why = error.__cause__ or error
            raise self._health.not_opened(why) from why
        if (name, kind) != (self._of.name, self._kind):
            raise ConfigurationError(
                f"the store {self._database.name} has {KeptOf.named(name)}, which is {kind}, and "
                f"cannot keep {self._of}, which is {self._kind}: give each a file or a database of "
                "its own"
            )

    async def load_row(self, key: Key, lease: Lease) -> tuple[int, bytes]:
        """Return the step of the key's row, and what is kept there; from here on no older lease can
        change it. Raises Fenced if `lease` itself is older, and StoreAway.
        """
        name, place = _encode(key), self._place(key)

        def load() -> Program[tuple[int, bytes]]:
            yield from self._check_history(lease, may_begin=True)
            yield (
                "INSERT INTO tenure_entity VALUES (?, ?, 0, 0, ?, NULL) ON CONFLICT DO NOTHING",
                (name, place, b""),
            )
            rows = yield LOAD, (lease.number, name, lease.number)
            if not rows:
                raise _fenced(key, lease, "a newer lease")
            [(step, data)] = rows
            return step, bytes(data)

        return await self._ask(load)

    async def save_row(
        self,
        key: Key,
        lease: Lease,
        step: int,
        data: bytes,
        due: float | None,
        items: Sequence[Statement] = (),
    ) -> None:
        """Keep the row in place of the step before, and its items, durable when this returns; `due`
        is when to look at it again. Raises Fenced, and StoreFailed.
        """
        values = lease.number, step, data, due, _encode(key), lease.number, step - 1

        def save() -> Program[None]:
            yield from self._check_history(lease, may_begin=False)
            if not (yield SAVE, values):
                raise _fenced(key, lease, "a newer lease")
            for each in items:  # noqa: UP028  # a list cannot be sent rows
                yield each

        await self._do(save)

    async def page(self, key: Key, name: str, span: ItemSpan, most: int, /) -> FoundItems:
        """The first items of a row in a span. Raises StoreAway."""
        said, values = ITEMS, [_encode(key), name, span.low]
        if span.high is not None:
            said, values = f"{said} AND place < ?", [*values, span.high]
        said += " ORDER BY place DESC LIMIT ?" if span.reverse else " ORDER BY place LIMIT ?"

        def find() -> Program[list[Item]]:
            return (yield said, (*values, most + 1))

        found = [(bytes(place), bytes(data)) for place, data in await self._ask(find)]
        return FoundItems(found[:most], is_last=len(found) <= most)

    async def forget(self, rows: Iterable[EmptyRow]) -> None:
        """Drop the rows of these keys, of which nothing is kept, unless somebody has used them
        since. Without a row an older lease cannot write. Raises StoreFailed.
        """
        gone = [(_encode(each.key), each.number, each.step) for each in rows]

        def forget() -> Program[None]:
            for each in gone:
                yield FORGET, each

        await self._do(forget)

    def _check_history(self, lease: Lease, *, may_begin: bool) -> Program[None]:
        journal = f"{lease.journal:016x}"
        [(present, past)] = yield HISTORY + self._database.shared, ()
        if present == journal:
            return
        if not may_begin:
            raise _fenced(lease.key, lease, "a lease of a later journal")
        while present != journal:
            if journal in past.split():
                raise _fenced(lease.key, lease, "a lease of a later journal")
            now_past = f"{past} {present}".strip()
            if (yield BEGIN_HISTORY, (journal, now_past, present)):
                yield "UPDATE tenure_entity SET number = 0", ()
            # Another program of this group may have begun it, or a later one.
            [(present, past)] = yield HISTORY + self._database.alone, ()

    async def due_within(self, ranges: Iterable[KeyRange]) -> list[tuple[Key, float]]:
        """The keys with something due, and when. Raises StoreAway."""
        asked = list(ranges)

        def find() -> Program[list[tuple[bytes, float]]]:
            found: list[tuple[bytes, float]] = []
            for each in asked:
                if each.end is None:
                    found += yield DUE, (each.start,)
                else:
                    found += yield DUE + " AND place < ?", (each.start, each.end)
            return found

        return [(key_of(bytes(key)), at) for key, at in await self._ask(find)]

    async def close(self) -> None:
        await self._groups.close()


def key_of(name: bytes) -> Key:
    """The key that a row is called after."""
    key: Key = msgspec.msgpack.decode(name)  # msgspec has no type of texts and bytes
    assert isinstance(key, str | bytes | int), "rows are called after keys"
    return key


def _fenced(key: object, lease: Lease, by: str) -> Fenced:
    return Fenced(
        f"the store has seen {by} of {key!r:.100}, so the lease with number {lease.number} may no "
        "longer write: another owner has begun in the meantime"
    )
