"""A mapping whose state moves with its ranges: what most services keep, ready made.

    rooms: KeyedState[Room] = KeyedState(value_type=Room)
    async with Owner(..., hand_off=rooms) as owner:
        rooms["room-42"] = Room(...)

Values are in one dict, so that reading costs what a dict costs. Beside it is an index of the keys
by their place in the key space, in leaves of some thousand: without it, handing over a hundredth
of a million keys would look at all of them. Only keys that are new or removed touch the index. What
is handed over comes by leaves, so that the taker has them too without hashing a key.

What changes is noted only while a range is exported, by the marks that are out: a mark is a set of
what has changed since it was made, and gone when nobody has it any more.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from operator import itemgetter
from threading import RLock
from typing import Any, Generic, TypeAlias, TypeVar
from weakref import ref

import msgspec

from tenure.base.keys import Key, PoolKind, UserKey, key_function
from tenure.base.ranges import LOWEST, KeyRange
from tenure.client.arguments import checked_kind
from tenure.client.hand_off.handler import Exported
from tenure.errors import ConfigurationError

V = TypeVar("V")
ToKey: TypeAlias = Callable[[UserKey], Key]
_Leaf: TypeAlias = tuple[KeyRange | None, list[UserKey]]
_first = itemgetter(0)

LEAF_KEYS = 4096
"""Of the index. Sorting so many to split a leaf, or hashing them at the end of a range, takes a few
milliseconds; a million keys are some hundred leaves."""
AIM_BYTES = 1536 * 1024
"""Of a chunk. Some milliseconds to encode, or to decode and insert: what the application's event
loop is kept for at a time. Each chunk goes from thread to thread several times, and may wait for
the interpreter's lock each time, so that smaller ones take longer together."""
FIRST_ENTRIES = 64
"""In the first chunk of an export, before it is known how large entries are."""
MOST_ENTRIES = 8 * LEAF_KEYS


class KeyedState(MutableMapping[UserKey, V], Generic[V]):
    """A dict by key, to be given to `Owner` as `hand_off`.

    `kind` is that of the pool. Values are what msgspec encodes as msgpack; where they are more than
    dicts, lists, texts and numbers, `value_type` says what they are. A value that is changed in
    place must be assigned again, or `touch`ed, or the change is not handed over. Any thread may
    read and write.
    """

    def __init__(
        self,
        *,
        kind: PoolKind = "hashed",
        value_type: Any = Any,  # noqa: ANN401  # whatever msgspec takes for a type
    ) -> None:
        self._key = key_function(checked_kind(kind))
        self._values: dict[UserKey, V] = {}
        self._index = _Index()
        self._lock = RLock()  # letting go of a mark may happen anywhere, also inside of it
        self._marks: tuple[ref[_Mark], ...] = ()
        self._encode = msgspec.msgpack.Encoder().encode
        try:
            self._decoder = msgspec.msgpack.Decoder(_Chunk[value_type])
        except TypeError as error:
            raise ConfigurationError(f"value_type cannot be {value_type!r}: {error}") from error

    # --- the mapping ---

    def __getitem__(self, user_key: UserKey) -> V:
        return self._values[user_key]

    def __setitem__(self, user_key: UserKey, value: V) -> None:
        with self._lock:  # what is in the state is in the index, whatever a discard does meanwhile
            if user_key not in self._values:
                self._index.add(self._key(user_key), user_key, self._key)
            self._values[user_key] = value
        if self._marks:  # after the change: who looks at a mark in between finds it the next time
            self._note(user_key)

    def __delitem__(self, user_key: UserKey) -> None:
        with self._lock:
            del self._values[user_key]
            self._index.remove(self._key(user_key), user_key)
        if self._marks:
            self._note(user_key)

    def __contains__(self, user_key: object) -> bool:
        return user_key in self._values

    def __iter__(self) -> Iterator[UserKey]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def touch(self, user_key: UserKey) -> None:
        """The value was changed in place."""
        if self._marks:
            self._note(user_key)

    def within(self, key_range: KeyRange) -> list[UserKey]:
        """The keys in the range, in no order."""
        return [key for _, keys in self._leaves(key_range) for key in keys]

    def _note(self, user_key: UserKey) -> None:
        key = self._key(user_key)
        for each in self._marks:
            mark = each()
            if mark is not None and key in mark.key_range:
                mark.changed[user_key] = None

    def _leaves(self, key_range: KeyRange) -> "Iterator[_Leaf]":
        """The keys in the range, a leaf at a time; what is new meanwhile may be among them."""
        start: Key | None = key_range.start
        while start is not None and (key_range.end is None or start < key_range.end):
            with self._lock:
                leaf, keys = self._index.at(start)
                part = key_range.intersection(leaf)
                if part is not None and part != leaf:
                    keys = [each for each in keys if self._key(each) in part]
            yield part, keys
            start = leaf.end

    # --- the handler ---

    def export_range(self, key_range: KeyRange, since: "_Mark | None") -> Exported:
        """See `HandOffHandler`."""
        mark = _Mark(key_range)
        with self._lock:
            self._marks = (*self._marks, ref(mark, self._forget))
        if since is None:
            return mark, self._encoded(self._leaves(key_range))
        return mark, self._encoded(iter([(None, list(since.changed))]))

    def _forget(self, gone: "ref[_Mark]") -> None:
        with self._lock:
            self._marks = tuple(each for each in self._marks if each is not gone)

    def _encoded(self, leaves: "Iterator[_Leaf]") -> Iterator[bytes]:
        """In chunks of about AIM_BYTES, whatever the values: as many as the last ones suggest."""
        count = FIRST_ENTRIES
        batch: list[_Leaf] = []
        waiting = 0
        for leaf, keys in leaves:
            done = 0
            while done < len(keys):
                some = keys[done : done + count - waiting]
                batch.append((leaf, some))
                done += len(some)
                waiting += len(some)
                if waiting == count:
                    size = 0
                    for chunk in self._chunks(batch):
                        size += len(chunk)
                        yield chunk
                    count = max(1, min(waiting * AIM_BYTES // size, 4 * count, MOST_ENTRIES))
                    batch, waiting = [], 0
        if batch:
            yield from self._chunks(batch)

    def _chunks(self, batch: "list[_Leaf]") -> Iterator[bytes]:
        """One; or several, where the values are larger than was thought."""
        chunk = self._encode(_Chunk([self._part(*each) for each in batch]))
        if len(chunk) <= 2 * AIM_BYTES or (len(batch) == 1 and len(batch[0][1]) == 1):
            yield chunk
            return
        del chunk
        if len(batch) > 1:
            half = len(batch) // 2
            yield from self._chunks(batch[:half])
            yield from self._chunks(batch[half:])
        else:
            ((leaf, keys),) = batch
            half = len(keys) // 2
            yield from self._chunks([(leaf, keys[:half])])
            yield from self._chunks([(leaf, keys[half:])])

    def _part(self, leaf: KeyRange | None, keys: list[UserKey]) -> "_Part[V]":
        values = self._values
        start, end = (leaf.start, leaf.end) if leaf else (None, None)
        try:
            return _Part(start, end, keys, [values[key] for key in keys])
        except KeyError:  # some were removed
            entries = [(key, values[key]) for key in keys if key in values]
            there, found = [key for key, _ in entries], [value for _, value in entries]
            removed = [key for key in keys if key not in values]
            return _Part(start, end, there, found, removed)

    def import_chunk(self, key_range: KeyRange, chunk: bytes) -> None:
        """See `HandOffHandler`."""
        for part in self._decoder.decode(chunk).parts:
            if len(part.keys) != len(part.values):
                raise ValueError(f"{len(part.keys)} keys and {len(part.values)} values in a chunk")
            with self._lock:
                self._import(key_range, part)

    def _import(self, key_range: KeyRange, part: "_Part[V]") -> None:
        values, to_key = self._values, self._key
        leaf = part.leaf_in(key_range, to_key)
        if leaf is None or not self._index.take_leaf(leaf, part.keys):
            new = [(to_key(key), key) for key in part.keys if key not in values]
            self._index.add_all(new, to_key)
        values.update(zip(part.keys, part.values, strict=True))
        for key in part.removed:
            if values.pop(key, self) is not self:
                self._index.remove(to_key(key), key)

    def discard_range(self, key_range: KeyRange) -> None:
        """See `HandOffHandler`."""
        start: Key | None = key_range.start
        while start is not None and (key_range.end is None or start < key_range.end):
            with self._lock:  # for one leaf at a time: other threads go on in between
                start, dropped = self._index.drop(start, key_range, self._key)
                self._pop(dropped)
        with self._lock:
            self._pop(self._index.empty(key_range, self._key))

    def _pop(self, user_keys: Iterable[UserKey]) -> None:
        for each in user_keys:
            self._values.pop(each, None)


class _Part(msgspec.Struct, Generic[V], array_like=True, gc=False):
    """Some keys with their values, all of one leaf where that is said; and keys without any."""

    start: Key | None
    end: Key | None
    keys: list[Any]
    values: list[V]
    removed: list[Any] = []

    def leaf_in(self, key_range: KeyRange, to_key: ToKey) -> KeyRange | None:
        """The leaf that they are all of, if it lies in the range; as the first and last show."""
        if self.start is None or not self.keys:
            return None
        leaf = KeyRange(self.start, self.end)
        is_so = all(to_key(key) in leaf for key in (self.keys[0], self.keys[-1]))
        return leaf if is_so and key_range.covers(leaf) else None


class _Chunk(msgspec.Struct, Generic[V], array_like=True, gc=False):
    """As much as is handed over at a time."""

    parts: list[_Part[V]]


class _Mark:
    """What has changed in a range since it was made."""

    __slots__ = ("__weakref__", "changed", "key_range")

    def __init__(self, key_range: KeyRange) -> None:
        self.key_range = key_range
        self.changed: dict[UserKey, None] = {}


class _Index:
    """The user's keys by their place: `leaves[i]` has those from `starts[i]` on."""

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
        """Neighbours come together, so that a leaf is found once for many."""
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
        """Take keys that all lie in the leaf of another index; False where its place is taken."""
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
        """The leaf around `key`: its range, and its keys."""
        i = bisect_right(self.starts, key) - 1
        return self._range(i), list(self.leaves[i])

    def _range(self, i: int) -> KeyRange:
        end = self.starts[i + 1] if i + 1 < len(self.starts) else None
        return KeyRange(self.starts[i], end)

    def drop(
        self, start: Key, key_range: KeyRange, to_key: ToKey
    ) -> tuple[Key | None, set[UserKey]]:
        """Drop what the leaf around `start` has of the range; where it ends, and what that was."""
        i = bisect_right(self.starts, start) - 1
        leaf, there = self._range(i), self.leaves[i]
        dropped = there
        if not key_range.covers(leaf):
            dropped = {each for each in there if to_key(each) in key_range}
        self.leaves[i] = there - dropped
        return leaf.end, dropped

    def empty(self, key_range: KeyRange, to_key: ToKey) -> set[UserKey]:
        """Drop all that is in the range, and return it. The range is in one leaf then, in which
        there is nothing, so that leaves that come there are taken as they are. Not so a key alone,
        of which no leaf comes: else a state of which keys go one by one would fall to pieces.
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
        """Which leaf begins at `key`; that around it is cut there where none does."""
        i = bisect_left(self.starts, key)
        if i == len(self.starts) or self.starts[i] != key:
            around = self.leaves[i - 1]
            later = {each for each in around if to_key(each) >= key}
            self.starts.insert(i, key)
            self.leaves[i - 1 : i] = [around - later, later]
        return i

    def _split(self, i: int, to_key: ToKey) -> None:
        """In so many that each is half full."""
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
