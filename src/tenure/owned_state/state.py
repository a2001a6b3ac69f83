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
from tenure.owned_state.entries import StoredEntries
from tenure.owned_state.turn import Turn

V = TypeVar("V")

WAIT_SECONDS = 10.0
"""How long to wait for a turn by default: longer than operations take, and short for a client that
waits for an answer.
"""
MOST_WAITING = 1000
"""How many may wait for one key. The next would wait for a thousand operations."""


class OwnedState(OwnersState, Generic[V]):
    """Values by key, to be given to one `Owner` as `hand_off`; they move with their ranges.

    Values are of the kinds that a KeyedState takes, and `value_type` is their type. `ttl` is how
    many seconds a value is kept after it was stored. `limit` is the highest number of entries, and
    `limit_bytes` the most bytes that keys and values may take; storing more raises Full. State that
    is handed over is always accepted, within the limits or not.

    At most `most_waiting` callers wait for their turn with one key, each for at most `wait`
    seconds. Raises ConfigurationError if an argument cannot be used.
    """

    @overload
    def __init__(
        self,
        *,
        value_type: type[V],
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
        ttl: float | None = None,
        limit: int | None = None,
        limit_bytes: int | None = None,
        wait: float = WAIT_SECONDS,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self.codec: ValueCodec[V] = ValueCodec(value_type, "an OwnedState")
        self.ttl = None if ttl is None else checked_seconds("ttl", ttl)
        """How many seconds a value is kept after it was stored; None for ever."""
        self._wait = checked_wait(wait)
        self._most_waiting = checked_count("most_waiting", most_waiting)
        self.entries = StoredEntries(
            None if limit is None else checked_count("limit", limit),
            None if limit_bytes is None else checked_count("limit_bytes", limit_bytes),
        )
        self.turns = Turns(self._most_waiting)
        self._guards: Guards | None = None

    # --- for the application ---

    def at(self, key: UserKey, *, wait: float | None = None) -> Turn[V]:
        """A turn with `key`: `async with state.at(key) as it:`, or `with` in threads.

        Entering waits for earlier turns with the key, for `wait` seconds at most (0 does not wait);
        then it raises Busy. It raises NotOwner if this process does not hold the key. In both cases
        nothing was done. It raises UsageError for a wait that would never end, because the waiting
        body has the turn itself.

        Leaving stores the value; or raises LeaseLost, if the lease was not held the whole time:
        then nobody knows whether the change was kept. If the body raises, nothing is stored.
        """
        return Turn(self, key, self._wait if wait is None else checked_wait(wait))

    def __len__(self) -> int:
        self.entries.drop_ended()
        return len(self.entries)

    @property
    def size_bytes(self) -> int:
        """How many bytes all keys and values take, without Python's objects around them."""
        return self.entries.size()

    def __repr__(self) -> str:
        return f"<OwnedState: {len(self.entries)} entries>"

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

    # --- for the owner ---

    def belong_to(self, owner: str, kind: PoolKind, has_ended: Callable[[], bool]) -> None:
        """See `OwnersState`. What an earlier owner has left behind is dropped."""
        self.entries.belong_to(owner, kind, has_ended)
        self._guards = None

    def guard_with(self, guards: Guards) -> None:
        watch_forks(self)
        self.entries.guard_with(guards)
        self._guards = guards

    def export_range(self, key_range: KeyRange, since: Mark | None) -> Exported:
        return self.entries.export_range(key_range, since)

    def import_chunk(self, key_range: KeyRange, chunk: bytes) -> None:
        self.entries.import_chunk(key_range, chunk)

    def discard_range(self, key_range: KeyRange) -> None:
        self.entries.discard_range(key_range)


def checked_wait(wait: object) -> float:
    """How long to wait for a turn."""
    return 0.0 if wait == 0 and not isinstance(wait, bool) else checked_seconds("wait", wait)
