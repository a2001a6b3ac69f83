"""The keys of a state by their place in the key space, in leaves of some thousand keys.

Without an index, handing over a hundredth of a million keys would look at all of them. Only new and
removed keys change the index. State is handed over leaf by leaf, so the taker puts whole leaves in
place without sorting them.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import TypeAlias

from tenure.base.keys import Key, UserKey
from tenure.base.ranges import LOWEST, KeyRange

ToKey: TypeAlias = Callable[[UserKey], Key]
_first = itemgetter(0)

LEAF_KEYS = 4096
"""The most keys of a leaf. Sorting that many to split a leaf, or hashing them at the end of a
range, takes a few milliseconds; a million keys are some hundred leaves.
"""


class KeyIndex:
    """The user's keys by their place: `leaves[i]` has the keys from `starts[i]` on."""

    def __init__(self) -> None:
        self.starts: list[Key] = [LOWEST]
        self.leaves: list[set[UserKey]] = [set()]

    def add(self, key: Key, user_key: UserKey, to_key: ToKey) -> None:
        i = bisect_right(self.starts, key) - 1
        leaf = self.leaves[i]
        leaf.add(user_key)
        if len(leaf) > LEAF_KEYS:
            self._split(i, to_key)

    def add_all(self, new: list[tuple[Key, UserKey]], to_key: ToKey) -> None:
        """Add keys. Pass neighbours together, so that the index searches a leaf once for many
        keys.
        """
        new.sort(key=_first)
        done = 0
        while done < len(new):
            i = bisect_right(self.starts, new[done][0]) - 1
            until = len(new)
            if i + 1 < len(self.starts):
                until = bisect_left(new, self.starts[i + 1], done, key=_first)
            self.leaves[i].update([user_key for _, user_key in new[done:until]])
            done = until
            if len(self.leaves[i]) > LEAF_KEYS:
                self._split(i, to_key)

    def take_leaf(self, leaf: KeyRange, user_keys: Sequence[UserKey]) -> bool:
        """Take the keys of a leaf of another index as one leaf; False if its place is taken."""
        i = bisect_right(self.starts, leaf.start) - 1
        around, there = self._range(i), self.leaves[i]
        if around == leaf:
            there.update(user_keys)
            return True
        if there or not around.covers(leaf):
            return False
        starts = [self.starts[i]] if self.starts[i] < leaf.start else []
        starts.append(leaf.start)
        if leaf.end is not None and leaf.end != around.end:
            starts.append(leaf.end)
        self.starts[i : i + 1] = starts
        self.leaves[i : i + 1] = [
            set(user_keys) if start == leaf.start else set() for start in starts
        ]
        return True

    def remove(self, key: Key, user_key: UserKey) -> None:
        self.leaves[bisect_right(self.starts, key) - 1].discard(user_key)

    def at(self, key: Key) -> tuple[KeyRange, list[UserKey]]:
        """Return the leaf around `key`: its range, and its keys."""
        i = bisect_right(self.starts, key) - 1
        return self._range(i), list(self.leaves[i])

    def _range(self, i: int) -> KeyRange:
        end = self.starts[i + 1] if i + 1 < len(self.starts) else None
        return KeyRange(self.starts[i], end)

    def drop(
        self, start: Key, key_range: KeyRange, to_key: ToKey
    ) -> tuple[Key | None, set[UserKey]]:
        """Drop the keys of the range from the leaf around `start`; return where the leaf ends, and
        the keys.
        """
        i = bisect_right(self.starts, start) - 1
        leaf, there = self._range(i), self.leaves[i]
        dropped = there
        if not key_range.covers(leaf):
            dropped = {each for each in there if to_key(each) in key_range}
        self.leaves[i] = there - dropped
        return leaf.end, dropped

    def empty(self, key_range: KeyRange, to_key: ToKey) -> set[UserKey]:
        """Drop everything in the range, and return it. The range is then one empty leaf, so leaves
        that arrive there can be taken whole. The range of a single key does not become a leaf,
        because no leaf arrives for it: otherwise a state whose keys leave one by one would break
        into tiny leaves.
        """
        if key_range.end == key_range.start + b"\0":
            return self.drop(key_range.start, key_range, to_key)[1]
        first = self._cut(key_range.start, to_key)
        end = len(self.starts) if key_range.end is None else self._cut(key_range.end, to_key)
        if first > 0 and not self.leaves[first - 1]:
            first -= 1
        if end < len(self.starts) and not self.leaves[end]:
            end += 1
        dropped = set().union(*self.leaves[first:end])
        self.starts[first:end] = [self.starts[first]]
        self.leaves[first:end] = [set()]
        return dropped

    def _cut(self, key: Key, to_key: ToKey) -> int:
        """Return which leaf begins at `key`; if no leaf does, cut the one around it there."""
        i = bisect_left(self.starts, key)
        if i == len(self.starts) or self.starts[i] != key:
            around = self.leaves[i - 1]
            later = {each for each in around if to_key(each) >= key}
            self.starts.insert(i, key)
            self.leaves[i - 1 : i] = [around - later, later]
        return i

    def _split(self, i: int, to_key: ToKey) -> None:
        """Split a leaf into as many as are then half full."""
        keyed = sorted(((to_key(each), each) for each in self.leaves[i]), key=_first)
        parts: list[tuple[Key, set[UserKey]]] = [(self.starts[i], set())]
        last: Key = self.starts[i]
        for key, user_key in keyed:
            part = parts[-1][1]
            if len(part) >= LEAF_KEYS // 2 and key != last:
                part = set()
                parts.append((key, part))
            part.add(user_key)
            last = key
        self.starts[i : i + 1] = [start for start, _ in parts]
        self.leaves[i : i + 1] = [part for _, part in parts]
