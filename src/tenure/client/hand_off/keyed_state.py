"""A mapping whose state moves with its ranges: what most services keep, ready made.

    rooms = KeyedState(value_type=Room)
    async with Owner(..., hand_off=rooms) as owner:
        rooms["room-42"] = Room(...)

Values are in one dict, so that reading costs what a dict costs. Beside it is an index of the keys,
made for the kind of pool that the state's owner is in. A value that could not be handed over is
refused when it is assigned, where the application's mistake is, and not when a range moves at
night.

Changes are noted only while a range is exported, in the marks that are in use: a mark is the set of
keys that have changed since it was made, and it vanishes when nobody refers to it any longer.
"""

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from threading import RLock
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar, overload
from weakref import ref

import msgspec

from tenure.base.keys import Key, PoolKind, UserKey, hashed_key, key_function
from tenure.base.ranges import KeyRange
from tenure.client.guard import Guards
from tenure.client.hand_off.fair_time import FairTime
from tenure.client.hand_off.handler import Exported, OwnersState
from tenure.client.hand_off.key_index import LEAF_KEYS, KeyIndex, ToKey
from tenure.client.hand_off.likeness import ValueCodec
from tenure.errors import ConfigurationError, UsageError

V = TypeVar("V")
_Keys: TypeAlias = tuple[KeyRange | None, list[UserKey]]

AIM_BYTES = 1536 * 1024
"""The intended size of a chunk. Encoding it, or decoding and inserting it, takes some milliseconds,
for which it occupies the application's event loop. Each chunk goes from thread to thread several
times, and may wait for the interpreter's lock each time, so smaller chunks take longer in total.
"""
FIRST_ENTRIES = 64
"""Entries in the first chunk of an export, before the size of entries is known."""
MOST_ENTRIES = 8 * LEAF_KEYS


class Home(NamedTuple):
    """The owner that a state belongs to, and where each key lies in its pool."""

    owner: str
    has_ended: Callable[[], bool]
    key: ToKey
    keys: KeyIndex


class KeyedState(MutableMapping[UserKey, V], OwnersState, Generic[V]):
    """A dict by key, to be given to one `Owner` as `hand_off`.

    Values are anything that msgspec encodes as msgpack; if they are more than dicts, lists, strings
    and numbers, give their type as `value_type`. Assigning raises ValueTypeError for a value that
    would not arrive unchanged, or that is too large to be handed over. After changing a value in
    place, assign it again or `touch` it; otherwise the change is not handed over. Any thread may
    read and write.
    """

    @overload
    def __init__(self, *, value_type: type[V]) -> None: ...
    @overload
    def __init__(self, *, value_type: Any = ...) -> None: ...  # noqa: ANN401  # such as a union

    def __init__(self, *, value_type: Any = Any) -> None:
        self._values: dict[UserKey, V] = {}
        self._place: Home | None = None
        self._fair = FairTime()
        self._lock = RLock()  # a mark may vanish at any instruction, even while this lock is held
        self._marks: tuple[ref[_Mark], ...] = ()
        self._codec: ValueCodec[V] = ValueCodec(value_type, "a KeyedState")
        self._encode = msgspec.msgpack.Encoder().encode
        self._decoder = msgspec.msgpack.Decoder(_Batch[value_type])

    def belong_to(self, owner: str, kind: PoolKind, has_ended: Callable[[], bool]) -> None:
        with self._lock:
            place = self._place
            if place is not None and not place.has_ended():
                raise ConfigurationError(
                    f"this KeyedState is the state of the owner {place.owner!r}, and cannot be "
                    f"that of {owner!r} too: give each owner a KeyedState of its own"
                )
            key, index = key_function(kind), KeyIndex()
            index.add_all([(key(each), each) for each in self._values], key)
            self._place = Home(owner, has_ended, key, index)

    def guard_with(self, guards: Guards) -> None:
        """See `OwnersState`. This state needs no guards: its callers have theirs."""

    def _placed(self) -> Home:
        if self._place is None:
            raise UsageError(
                "this KeyedState does not belong to an owner yet, so it has no ranges: pass it to "
                "Owner as hand_off first"
            )
        return self._place

    # --- the mapping ---

    def __getitem__(self, user_key: UserKey) -> V:
        return self._values[user_key]

    def __setitem__(self, user_key: UserKey, value: V) -> None:
        self._check(user_key, value)
        with self._lock:  # the index has every key of the state, in spite of discards
            if user_key not in self._values:
                place = self._place
                if place is not None:
                    place.keys.add(place.key(user_key), user_key, place.key)
            self._values[user_key] = value
        if self._marks:  # after the change, so that an export cannot miss it
            self._note(user_key)

    def __delitem__(self, user_key: UserKey) -> None:
        with self._lock:
            del self._values[user_key]
            if self._place is not None:
                self._place.keys.remove(self._place.key(user_key), user_key)
        if self._marks:
            self._note(user_key)

    def __contains__(self, user_key: object) -> bool:
        return user_key in self._values

    def __iter__(self) -> Iterator[UserKey]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def touch(self, user_key: UserKey) -> None:
        """The value was changed in place. Raises as assigning it would."""
        if user_key in self._values:
            self._check(user_key, self._values[user_key])
        if self._marks:
            self._note(user_key)

    def within(self, key_range: KeyRange) -> list[UserKey]:
        """The keys in the range, in no order."""
        if not isinstance(key_range, KeyRange):
            raise UsageError(
                f"within takes a KeyRange, such as one of Owner.ranges, not {key_range!r:.100}"
            )
        return [key for _, keys in self._leaves(key_range) for key in keys]

    def fair_now(self, wall: float) -> float:
        """The time to use for values that expire: at most `wall`, the wall-clock time in seconds.
        Even if somebody sets a clock, or a value moves, it never runs ahead of the time that has
        really passed since an earlier call; it may lag behind.
        """
        return self._fair.now(wall)

    def _check(self, user_key: UserKey, value: V) -> None:
        """Raise unless the key can be a key, and the value stays the same when it is sent and
        received.
        """
        place = self._place
        (hashed_key if place is None else place.key)(user_key)  # raises if it cannot be a key
        self._codec.encode(user_key, value)

    def _note(self, user_key: UserKey) -> None:
        key = self._placed().key(user_key)
        for each in self._marks:
            mark = each()
            if mark is not None and key in mark.key_range:
                mark.changed[user_key] = None

    def _leaves(self, key_range: KeyRange) -> "Iterator[_Keys]":
        """Yield the keys in the range, a leaf at a time; keys that are added meanwhile may be among
        them.
        """
        place = self._placed()
        start: Key | None = key_range.start
        while start is not None and (key_range.end is None or start < key_range.end):
            with self._lock:
                leaf, keys = place.keys.at(start)
                part = key_range.intersection(leaf)
                if part is not None and part != leaf:
                    keys = [each for each in keys if place.key(each) in part]
            yield part, keys
            start = leaf.end

    # --- the handler ---

    def export_range(self, key_range: KeyRange, since: "_Mark | None") -> Exported:
        self._placed()
        mark = _Mark(key_range)
        with self._lock:
            self._marks = (*self._marks, ref(mark, self._forget))
        if since is None:
            return mark, self._encoded(self._leaves(key_range))
        return mark, self._encoded(iter([(None, list(since.changed))]))

    def _forget(self, gone: "ref[_Mark]") -> None:
        with self._lock:
            self._marks = tuple(each for each in self._marks if each is not gone)

    def _encoded(self, leaves: "Iterator[_Keys]") -> Iterator[bytes]:
        """Yield chunks of about AIM_BYTES for any size of value: the last chunks suggest how many
        entries fit.
        """
        count = FIRST_ENTRIES
        batch: list[_Keys] = []
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
        if at := self._fair.known():
            yield self._encode(_Batch([], at))  # at the end: later than any kept

    def _chunks(self, batch: "list[_Keys]") -> Iterator[bytes]:
        """Yield one chunk, or several if the values are larger than expected."""
        chunk = self._encode(_Batch([self._part(*each) for each in batch]))
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

    def _part(self, leaf: KeyRange | None, keys: list[UserKey]) -> "Leaf[V]":
        values = self._values
        start, end = (leaf.start, leaf.end) if leaf else (None, None)
        try:
            return Leaf(start, end, keys, [values[key] for key in keys])
        except KeyError:  # some were removed
            entries = [(key, values[key]) for key in keys if key in values]
            there, found = [key for key, _ in entries], [value for _, value in entries]
            removed = [key for key in keys if key not in values]
            return Leaf(start, end, there, found, removed)

    def import_chunk(self, key_range: KeyRange, chunk: bytes) -> None:
        """See `HandOffHandler`. Raises ValueError for a key outside the range, and then imports
        nothing, because keys of other ranges are being served.
        """
        place = self._placed()
        parts = [(part, part.checked(key_range, place.key)) for part in self._decoded(chunk)]
        for part, keys in parts:
            with self._lock:
                self._import(place, part, keys)

    def _decoded(self, chunk: bytes) -> "list[Leaf[V]]":
        batch: _Batch[V] = self._decoder.decode(chunk)
        if batch.fair_time:
            self._fair.told(batch.fair_time)
        return batch.parts

    def _import(self, place: Home, part: "Leaf[V]", keys: list[Key]) -> None:
        values, to_key = self._values, place.key
        leaf = part.leaf_of(keys)
        if leaf is None or not place.keys.take_leaf(leaf, part.keys):
            pairs = zip(keys, part.keys, strict=True)
            place.keys.add_all([pair for pair in pairs if pair[1] not in values], to_key)
        values.update(zip(part.keys, part.values, strict=True))
        for user_key in part.removed:
            if values.pop(user_key, self) is not self:
                place.keys.remove(to_key(user_key), user_key)

    def discard_range(self, key_range: KeyRange) -> None:
        place = self._placed()
        start: Key | None = key_range.start
        while start is not None and (key_range.end is None or start < key_range.end):
            with self._lock:  # for one leaf at a time, so that other threads can run in between
                start, dropped = place.keys.drop(start, key_range, place.key)
                self._pop(dropped)
        with self._lock:
            self._pop(place.keys.empty(key_range, place.key))

    def _pop(self, user_keys: Iterable[UserKey]) -> None:
        for each in user_keys:
            self._values.pop(each, None)


class Leaf(msgspec.Struct, Generic[V], array_like=True, gc=False):
    """Some keys with their values, all of one leaf if it says so; and keys that were removed."""

    start: Key | None
    end: Key | None
    keys: list[Any]
    values: list[V]
    removed: list[Any] = []

    def checked(self, key_range: KeyRange, to_key: ToKey) -> list[Key]:
        """Return where the keys are. Raises ValueError if one of them, or of the removed keys, is
        not in the range.
        """
        if len(self.keys) != len(self.values):
            raise ValueError(f"{len(self.keys)} keys and {len(self.values)} values in a chunk")
        keys = [to_key(each) for each in self.keys]
        for user_keys, places in (self.keys, keys), (self.removed, [*map(to_key, self.removed)]):
            if not _lie_in(key_range, places):
                pairs = zip(user_keys, places, strict=True)
                outside = next(each for each, place in pairs if place not in key_range)
                raise ValueError(f"the key {outside!r:.100}, which is not in {key_range}")
        return keys

    def leaf_of(self, keys: list[Key]) -> KeyRange | None:
        """Return the leaf that all of the keys are of, if there is one."""
        if self.start is None or not keys or (self.end is not None and self.end <= self.start):
            return None
        leaf = KeyRange(self.start, self.end)
        return leaf if _lie_in(leaf, keys) else None


def _lie_in(key_range: KeyRange, keys: list[Key]) -> bool:
    """Return whether all of the keys lie in the range; made for very many keys."""
    return not keys or (
        key_range.start <= min(keys) and (key_range.end is None or max(keys) < key_range.end)
    )


class _Batch(msgspec.Struct, Generic[V], array_like=True, gc=False):
    """The values that are handed over at a time."""

    parts: list[Leaf[V]]
    fair_time: float = 0.0
    """The giver's time, if it told one; see `FairTime`."""


class _Mark:
    """The changes in a range since the mark was made."""

    __slots__ = ("__weakref__", "changed", "key_range")

    def __init__(self, key_range: KeyRange) -> None:
        self.key_range = key_range
        self.changed: dict[UserKey, None] = {}
