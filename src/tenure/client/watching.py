"""Following single keys: their moves and losses, out of all that the table says.

The papers' lookups tell of ranges; who cares for a few keys would search each range for them. The
keys are kept in order, so that a change of a few ranges costs a bisection for each and not a look
at every watched key.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from threading import Lock

import msgspec

from tenure.base.keys import Key, UserKey
from tenure.base.ranges import KeyRange
from tenure.client.callbacks import Callback


class KeyChange(msgspec.Struct, frozen=True):
    """What happened to a watched key."""

    key: UserKey
    """As it was given to `watch`."""
    address: str | None
    """Where it is served now, as far as known."""
    lost: bool
    """Whether its state is gone. If not, it only moved."""


class Watch:
    """One key that is watched, until `cancel`."""

    def __init__(self, watches: "Watches", given: UserKey, key: Key, callback: Callback) -> None:
        self._watches = watches
        self.given = given
        self.key = key
        self.callback = callback
        self.address: str | None = None
        self.is_cancelled = False

    def cancel(self) -> None:
        """Watch no more: no call begins after this returns, except in other threads."""
        self.is_cancelled = True
        self._watches.remove(self)


class Watches:
    """All that is watched, by key."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._keys: list[Key] = []
        self._by_key: dict[Key, list[Watch]] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, watch: Watch) -> None:
        """Watch from now on."""
        with self._lock:
            if watch.key not in self._by_key:
                insort(self._keys, watch.key)
            self._by_key.setdefault(watch.key, []).append(watch)

    def remove(self, watch: Watch) -> None:
        """Watch no more; a second time does nothing."""
        with self._lock:
            watches = self._by_key.get(watch.key, [])
            if watch not in watches:
                return
            watches.remove(watch)
            if not watches:
                del self._by_key[watch.key]
                del self._keys[bisect_left(self._keys, watch.key)]

    def within(self, ranges: Iterable[KeyRange]) -> Iterator[Watch]:
        """Those whose keys lie in any of `ranges`, which may overlap: each once, in no order."""
        if not self._keys:
            return
        found: dict[Watch, None] = {}
        with self._lock:
            for each in ranges:
                first = bisect_left(self._keys, each.start)
                last = len(self._keys)
                if each.end is not None:
                    last = bisect_left(self._keys, each.end)
                for key in self._keys[first:last]:
                    found.update(dict.fromkeys(self._by_key[key]))
        yield from found
