"""The mapping whose state moves: it is a dict, and what is exported is what is imported."""

import gc
from collections.abc import Iterable
from itertools import pairwise
from random import Random
from typing import Any

import msgspec
import pytest

from tenure import ConfigurationError, KeyedState, KeyRange
from tenure.base.keys import Key, UserKey, hashed_key, ordered_key
from tenure.client.hand_off.handler import Mark
from tenure.client.hand_off.keyed_state import AIM_BYTES, LEAF_KEYS
from tenure.protocol.balance.policy import only

WHOLE = KeyRange(b"", None)
HALF = KeyRange(b"\x80", None)


def exported(
    state: KeyedState[Any], key_range: KeyRange, since: Mark | None = None
) -> tuple[Any, Any]:
    mark, chunks = state.export_range(key_range, since)
    assert not hasattr(chunks, "__aiter__")
    return mark, list(chunks)


def imported(chunks: list[bytes], into: KeyedState[Any] | None = None) -> KeyedState[Any]:
    state = KeyedState[Any]() if into is None else into
    for chunk in chunks:
        state.import_chunk(WHOLE, chunk)
    return state


def test_it_is_a_dict_by_key() -> None:
    state = KeyedState[int]()
    state["a"], state[b"b"], state[3] = 1, 2, 3
    state.update({"a": 4, "c": 5})
    del state[3]
    assert dict(state) == {"a": 4, b"b": 2, "c": 5}
    assert state.pop("c") == 5
    assert "c" not in state
    assert len(state) == 2
    with pytest.raises(KeyError):
        state["c"]
    with pytest.raises(KeyError):
        del state["c"]


def test_what_is_exported_of_a_range_is_what_is_in_it() -> None:
    random = Random(1)
    state = KeyedState[int]()
    for i in range(3 * LEAF_KEYS):
        state[f"user-{i}"] = i
    for _ in range(20):
        start, end = sorted(random.randbytes(2) for _ in range(2))
        key_range = KeyRange(start, end if end > start else None)
        _, chunks = exported(state, key_range)
        expected = {key: value for key, value in state.items() if hashed_key(key) in key_range}
        assert dict(imported(chunks)) == expected
        assert sorted(map(str, state.within(key_range))) == sorted(map(str, expected))


def test_what_is_discarded_is_gone_and_the_rest_is_found() -> None:
    random = Random(2)
    state, twin = KeyedState[int](), dict[str, int]()
    for round_ in range(30):
        for _ in range(1_000):
            key = f"user-{random.randrange(20_000)}"
            state[key] = twin[key] = round_
        start, end = sorted(random.randbytes(2) for _ in range(2))
        key_range = KeyRange(start, end if end > start else None)
        state.discard_range(key_range)
        twin = {key: value for key, value in twin.items() if hashed_key(key) not in key_range}
        assert dict(state) == twin
        assert sorted(map(str, state.within(WHOLE))) == sorted(twin)


def test_what_arrives_beside_other_keys_is_taken_by_leaves_and_not_key_by_key() -> None:
    source, keys = KeyedState[int](), 20 * LEAF_KEYS
    source.update({f"user-{i}": i for i in range(keys)})
    bounds = [b"", b"\x30", b"\x31", b"\xc0", None]
    ranges = [KeyRange(start or b"", end) for start, end in pairwise(bounds)]
    taker, hashed = KeyedState[int](), 0

    def counted(user_key: UserKey) -> Key:
        nonlocal hashed
        hashed += 1
        return hashed_key(user_key)

    taker._key = counted
    for key_range in [ranges[1], ranges[3], ranges[0], ranges[2]]:
        taker.discard_range(key_range)  # as before every import
        for chunk in exported(source, key_range)[1]:
            taker.import_chunk(key_range, chunk)
    assert dict(taker) == dict(source)
    assert hashed < keys / 10
    for key_range in ranges:
        assert set(taker.within(key_range)) == set(source.within(key_range))


def test_ranges_that_come_and_go_leave_no_empty_leaves_behind() -> None:
    random = Random(3)
    state = KeyedState[int]()
    for _ in range(500):
        start, end = sorted(random.randbytes(2) for _ in range(2))
        state.discard_range(KeyRange(start, end if end > start else None))
    assert len(state._index.leaves) == 1


def test_keys_that_go_one_by_one_do_not_cut_the_state_to_pieces() -> None:
    state = KeyedState[int]()
    state.update({f"user-{i}": i for i in range(10_000)})
    leaves = len(state._index.leaves)
    for i in range(0, 10_000, 5):
        state.discard_range(only(hashed_key(f"user-{i}")))
    assert len(state._index.leaves) == leaves
    assert sorted(state.values()) == [i for i in range(10_000) if i % 5]


class Meddling(KeyedState[int]):
    """Another thread sets a key between two leaves of a discard."""

    late = ""

    def _pop(self, user_keys: Iterable[Any]) -> None:
        super()._pop(user_keys)
        if self.late:
            late, self.late = self.late, ""
            self[late] = 7


def test_what_is_set_while_its_range_is_discarded_is_gone_or_can_be_handed_over() -> None:
    state = Meddling()
    state.update({f"user-{i}": i for i in range(10_000)})
    state.late = "late"
    state.discard_range(WHOLE)
    assert dict(state) == {} == dict(imported(exported(state, WHOLE)[1]))
    state["late"] = 8
    assert dict(imported(exported(state, WHOLE)[1])) == {"late": 8}


def test_a_difference_has_what_was_set_removed_and_touched_since_its_mark() -> None:
    state = KeyedState[Any]()
    state.update({"kept": 0, "changed": 0, "removed": 0, "grown": []})
    mark, chunks = exported(state, WHOLE)
    copy = imported(chunks)
    state["changed"], state["new"] = 1, 1
    del state["removed"]
    state["grown"].append(1)
    state.touch("grown")
    mark, chunks = exported(state, WHOLE, mark)
    assert dict(imported(chunks, copy)) == dict(state)
    (chunk,) = chunks
    ((_, _, keys, _, removed),) = msgspec.msgpack.decode(chunk)[0]
    assert (sorted(keys), removed) == (["changed", "grown", "new"], ["removed"])
    _, chunks = exported(state, WHOLE, mark)
    assert chunks == []


def test_what_changes_while_it_is_exported_is_in_the_next_difference() -> None:
    state = KeyedState[int]()
    for i in range(2 * LEAF_KEYS):
        state[f"user-{i}"] = i
    mark, chunks = state.export_range(WHOLE, None)
    first = next(iter(chunks))  # type: ignore[arg-type]
    for i in range(0, 4 * LEAF_KEYS, 3):
        state[f"user-{i}"] = -i
    del state["user-1"]
    copy = imported([first, *chunks])  # type: ignore[misc]
    _, difference = exported(state, WHOLE, mark)
    assert dict(imported(difference, copy)) == dict(state)


def test_only_the_marks_range_is_noted_and_nothing_without_a_mark() -> None:
    state = KeyedState[int]()
    mark, _ = exported(state, HALF)
    for i in range(100):
        state[f"user-{i}"] = i
    assert set(mark.changed) == {key for key in state if hashed_key(key) in HALF}
    del mark
    gc.collect()
    assert state._marks == ()  # what nobody has costs nothing


def test_chunks_are_neither_large_nor_many() -> None:
    state = KeyedState[bytes]()
    for i in range(2_000):
        state[f"user-{i}"] = bytes(1_000)
    state["large"] = bytes(AIM_BYTES * 3)
    _, chunks = exported(state, WHOLE)
    sizes = sorted(map(len, chunks))
    assert sizes[-2] <= 2 * AIM_BYTES
    assert len(chunks) < 30
    assert dict(imported(chunks)) == dict(state)


class Room(msgspec.Struct):
    name: str


def test_values_may_be_of_a_type_and_pools_ordered() -> None:
    state = KeyedState[Room](kind="ordered", value_type=Room)
    state.update({"ann": Room("a"), "bob": Room("b")})
    _, chunks = exported(state, KeyRange(ordered_key("b"), None))
    copy = KeyedState[Room](kind="ordered", value_type=Room)
    assert dict(imported(chunks, copy)) == {"bob": Room("b")}


def test_what_cannot_be_a_type_is_said() -> None:
    with pytest.raises(ConfigurationError, match="value_type cannot be"):
        KeyedState(value_type=str | bytes)
    with pytest.raises(ConfigurationError, match='kind is "hashed" or "ordered"'):
        KeyedState(kind="sorted")  # type: ignore[arg-type]
