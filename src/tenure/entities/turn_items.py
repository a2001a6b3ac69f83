"""What one turn does with the items of collections: its own changes lie over what is kept, so it
sees them before anybody else does.

What the turn has changed is noted twice: in the changes that the next commit keeps, and here until
the turn ends. A page that is read while a commit is under way sees what is in neither yet.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol

from tenure.errors import UsageError, ValueTypeError
from tenure.protocol.entity.envelope import Envelope, TurnChanges
from tenure.protocol.entity.items import NO_MORE, FoundItems, Item, ItemSpan, merged
from tenure.protocol.entity.key_line import EntityCall
from tenure.stores.opening import EntityStore

MOST_CHANGES = 1000
"""The most changes of items between two commits."""
CHANGES_BYTES = 1 << 20
"""The most bytes of them."""
PAGE_ITEMS = 1000
"""The most items of a page."""
PAGE_BYTES = 1 << 20
"""A page ends with the item that brings it to this size."""
STEP_ITEMS = 100
"""How many items a store is asked for at a time: items are of any size, and memory is bounded."""


class WithItems(Protocol):
    """A turn that has items: an `EntityTurn`."""

    call: EntityCall

    @property
    def seen(self) -> Envelope: ...

    @property
    def changes(self) -> TurnChanges: ...

    def check(self) -> None:
        """Raise UsageError if the turn is over."""
        ...


class TurnItems:
    """The items of an entity's collections as a turn sees them."""

    __slots__ = ("_bytes", "_changed", "_count", "_numbers", "_store", "_turn")

    def __init__(self, turn: WithItems, store: EntityStore | None) -> None:
        self._turn = turn
        self._store = store
        self._changed: dict[str, dict[bytes, bytes]] = {}
        """Everything that the turn has changed, committed or not."""
        self._numbers: dict[str, int] = {}
        self._count = self._bytes = 0
        """How much of it waits for a commit."""

    # --- changes ---

    def number(self, name: str) -> int:
        """The last number that the collection has given."""
        kept = self._turn.seen.collections.get(name, 0)
        return max(self._numbers.get(name, 0), kept)

    def change(self, name: str, place: bytes, data: bytes, number: int = 0) -> None:
        """Have this at a place of the collection, or GONE; `number` is the last that it has given.
        Raises UsageError where one commit would have too much to keep.
        """
        changes = self._turn.changes
        if not changes.items:
            self._count = self._bytes = 0
        count, size = self._count + 1, self._bytes + len(place) + len(data)
        if count > MOST_CHANGES or size > CHANGES_BYTES:
            raise UsageError(
                f"{self._turn.call.method} changes {count} items of {size} bytes in one commit; at "
                f"most {MOST_CHANGES} of {CHANGES_BYTES} are allowed: `await self.commit()` in "
                "between, or make several calls"
            )
        self._count, self._bytes = count, size
        self._numbers[name] = changes.numbers[name] = number
        for noted in (changes.items, self._changed):
            noted.setdefault(name, {})[place] = data

    # --- pages ---

    async def get(self, name: str, place: bytes) -> bytes | None:
        """What is at a place of the collection."""
        found, _ = await self.page(name, ItemSpan(place, place + b"\0"), 1)
        return found[0][1] if found else None

    async def page(
        self, name: str, span: ItemSpan, most: int
    ) -> tuple[list[Item], ItemSpan | None]:
        """The first items of the collection in a span, and the rest of the span, if it has more."""
        found: list[Item] = []
        size, rest = 0, span
        while not rest.is_empty:
            below = await self._below(name, rest, most + 1 - len(found))
            part = rest if below.is_last else rest.up_to(below.items[-1][0])
            for item in self._over(name, part, below):
                if len(found) == most or size >= PAGE_BYTES:
                    return found, span.after(found[-1][0])
                found.append(item)
                size += len(item[1])
            if below.is_last:
                break
            rest = rest.after(below.items[-1][0])
        return found, None

    def _over(self, name: str, part: ItemSpan, below: FoundItems) -> Iterator[Item]:
        kept: Mapping[bytes, bytes] = self._turn.seen.items.get(name, {})
        changed = self._changed.get(name, {})
        return merged([part.of(changed), part.of(kept), below.items], reverse=part.reverse)

    async def _below(self, name: str, span: ItemSpan, most: int) -> FoundItems:
        """What the store has, if there is one."""
        turn, store = self._turn, self._store
        if store is None or name not in turn.seen.collections:
            return NO_MORE
        found = await store.page(turn.call.key, name, span, min(most, STEP_ITEMS))
        turn.check()
        return found


class KeptItems:
    """What is kept of one entity, as `TurnItems` reads the items of a turn."""

    def __init__(self, key: str | int, seen: Envelope) -> None:
        self.call = EntityCall(key, b"", "", b"")
        self.seen = seen
        self.changes = TurnChanges()

    def check(self) -> None:
        """Check nothing: it is no turn that ends."""


def check_room(name: str, key: str | int, envelope: Envelope, most: int) -> None:
    """Raise ValueTypeError if the entity is too large to be in memory, and move as a whole."""
    items = envelope.items_size
    if items and items + len(envelope.state) > most:
        raise ValueTypeError(
            f"{name} {key!r:.100} has a state of {len(envelope.state)} bytes, and collections of "
            f"{items}; without a store at most {most} are allowed together. Nothing since the last "
            "commit was kept: give Entities a store=, or remove old items, as with Series(most=)"
        )
