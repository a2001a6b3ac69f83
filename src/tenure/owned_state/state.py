"""`OwnedState`: values by key, each changed by one operation at a time, by its owner alone.

carts: OwnedState[list[str]] = OwnedState(value_type=list[str], ttl=3600, limit=100_000)

async with Owner(..., hand_off=carts):
async with carts.at("ann") as cart:
cart.value = [*(cart.value or []), "tea"]
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from tenure.base.keys import PoolKind, UserKey
from tenure.base.ranges import KeyRange
from tenure.client.arguments import checked_count, checked_seconds
from tenure.client.forks import watch_forks
from tenure.client.guard import Guards
from tenure.client.hand_off.handler import Exported, Mark, OwnersState
from tenure.client.hand_off.likeness import ValueCodec
from tenure.client.turns import Turns
from tenure.errors import UsageError
from tenure.owned_state.ended_values import EndedValues
from tenure.owned_state.entries import MARK, StoredEntries
from tenure.owned_state.kept_values import KeptValues
from tenure.owned_state.stored_turn import StoredTurn
from tenure.owned_state.turn import Turn

V = TypeVar("V")

WAIT_SECONDS = 10.0
"""How long to wait for a turn by default: longer than operations take, and short for a client that
waits for an answer.
"""
IN_A_STORE = MARK + b"store"
"""The chunk that is handed over where a store has the values. An owner without that store must not
believe that it has received all there was.
"""
MOST_WAITING = 1000
"""How many may wait for one key. The next would wait for a thousand operations."""


class OwnedState(OwnersState, Generic[V]):
    """Values by key, to be given to one `Owner` as `hand_off`; they move with their ranges.

    Values are of the kinds that a KeyedState takes, and `value_type` is their type. `ttl` is how
    many seconds a value is kept after it was stored. `limit` is the highest number of entries, and
    `limit_bytes` the most bytes that keys and values may take; storing more raises Full. State that
    is handed over is always accepted, within the limits or not.

    With `store`, the URL of a store as `Entities` takes it, every value is kept there before its
    turn is over, under the number of the lease, and survives any crash. Then `limit` and
    `limit_bytes` bound only what is in memory (by default 100,000 values and 256 MiB), and the rest
    is read again when it is asked for.

    At most `most_waiting` callers wait for their turn with one key, each for at most `wait`
    seconds. Raises ConfigurationError if an argument cannot be used.
    """

    @overload
    def __init__(
        self,
        *,
        value_type: type[V],
        store: str | None = ...,
        ttl: float | None = ...,
        limit: int | None = ...,
        limit_bytes: int | None = ...,
        wait: float = ...,
        most_waiting: int = ...,
    ) -> None: ...
    @overload
    def __init__(
        self,
        *,
        value_type: Any = ...,  # noqa: ANN401  # such as a union
        store: str | None = ...,
        ttl: float | None = ...,
        limit: int | None = ...,
        limit_bytes: int | None = ...,
        wait: float = ...,
        most_waiting: int = ...,
    ) -> None: ...

    def __init__(
        self,
        *,
        value_type: Any = Any,
        store: str | None = None,
        ttl: float | None = None,
        limit: int | None = None,
        limit_bytes: int | None = None,
        wait: float = WAIT_SECONDS,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self.codec: ValueCodec[V] = ValueCodec(value_type, "an OwnedState")
        limit = None if limit is None else checked_count("limit", limit)
        if limit_bytes is not None:
            limit_bytes = checked_count("limit_bytes", limit_bytes)
        self.values = None if store is None else KeptValues(store, limit, limit_bytes)
        """The values in the store, if there is one."""
        self.ttl = None if ttl is None else checked_seconds("ttl", ttl)
        """How many seconds a value is kept after it was stored; None for ever."""
        self._wait = checked_wait(wait)
        self._most_waiting = checked_count("most_waiting", most_waiting)
        self.entries = StoredEntries(limit, limit_bytes)
        self.turns = Turns(self._most_waiting)
        self._guards: Guards | None = None
        self._kind: PoolKind = "hashed"

    # --- for the application ---

    def at(self, key: UserKey, *, wait: float | None = None) -> Turn[V]:
        """A turn with `key`: `async with state.at(key) as it:`, or `with` in threads.

        Entering waits for earlier turns with the key, for `wait` seconds at most (0 does not wait);
        then it raises Busy. It raises NotOwner if this process does not hold the key. In both cases
        nothing was done. It raises UsageError for a wait that would never end, because the waiting
        body has the turn itself.

        Leaving stores the value; or raises LeaseLost, if the lease was not held the whole time:
        then nobody knows whether the change was kept. If the body raises, nothing is stored.

        With a store, entering may also raise StoreAway, with nothing begun; and leaving
        StoreFailed, if nobody knows whether the store has kept the change.
        """
        wait = self._wait if wait is None else checked_wait(wait)
        if self.values is not None:
            return StoredTurn(self, self.values, key, wait)
        return Turn(self, key, wait)

    def __len__(self) -> int:
        if self.values is not None:
            return len(self.values)
        self.entries.drop_ended()
        return len(self.entries)

    @property
    def size_bytes(self) -> int:
        """How many bytes all keys and values take, without Python's objects around them; with a
        store, the values in memory.
        """
        if self.values is not None:
            return self.values.size_bytes
        return self.entries.size()

    def __repr__(self) -> str:
        where = "" if self.values is None else " in memory"
        return f"<OwnedState: {len(self)} entries{where}>"

    # --- for turns ---

    @property
    def guards(self) -> Guards:
        """The guards of its owner."""
        if self._guards is None:
            raise UsageError(
                "this OwnedState is not in use by an owner: pass it to Owner as hand_off, and use "
                "it inside `async with Owner(...)` or `with Owner(...)`"
            )
        return self._guards

    def on_fork(self) -> None:
        """In a forked child, wait for no lock of the parent, and let every turn raise."""
        self.turns = Turns(self._most_waiting)
        self.entries.on_fork()
        if self.values is not None:
            self.values.on_fork()

    # --- for the owner ---

    def belong_to(self, owner: str, kind: PoolKind, has_ended: Callable[[], bool]) -> None:
        """See `OwnersState`. What an earlier owner has left behind is dropped."""
        self.entries.belong_to(owner, kind, has_ended)
        self._guards, self._kind = None, kind

    def guard_with(self, guards: Guards) -> None:
        watch_forks(self)
        self.entries.guard_with(guards)
        self._guards = guards

    async def open_store(self, pool: str, name: str = "") -> None:
        values = self.values
        if values is None:
            return

        async def sweep() -> None:
            def turn(key: UserKey) -> StoredTurn[V]:
                return StoredTurn(self, values, key, 0.0, sweeps=True)

            await EndedValues(values, self.guards, turn).run()

        await values.open(pool, name, self._kind)
        values.submit(sweep())

    async def close_store(self) -> None:
        if self.values is not None:
            await self.values.close()

    def export_range(self, key_range: KeyRange, since: Mark | None) -> Exported:
        if self.values is not None:  # the next owner finds everything in the store
            return True, (IN_A_STORE,)
        return self.entries.export_range(key_range, since)

    def import_chunk(self, key_range: KeyRange, chunk: bytes) -> None:
        if (self.values is not None) != (chunk == IN_A_STORE):
            has, other = ("has no", "has one") if self.values is None else ("has a", "has none")
            raise ValueError(
                f"this OwnedState {has} store=, and that of the other owner {other}: all owners of "
                "a pool keep it in the same store, or in none"
            )
        if self.values is not None:
            return
        self.entries.import_chunk(key_range, chunk)

    def discard_range(self, key_range: KeyRange) -> None:
        self.entries.discard_range(key_range)


def checked_wait(wait: object) -> float:
    """How long to wait for a turn."""
    return 0.0 if wait == 0 and not isinstance(wait, bool) else checked_seconds("wait", wait)
