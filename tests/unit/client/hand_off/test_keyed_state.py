"""The mapping whose state moves: it is a dict, and what is exported is what is imported."""

import gc
from collections.abc import Iterable
from itertools import pairwise
from random import Random
from typing import Any

import msgspec
import pytest

from tenure import ConfigurationError, KeyedState, KeyRange, Owner
from tenure.base.keys import Key, PoolKind, UserKey, hashed_key, ordered_key
from tenure.client.hand_off.handler import Mark
from tenure.client.hand_off.key_index import LEAF_KEYS
from tenure.client.hand_off.keyed_state import AIM_BYTES
from tenure.client.hand_off.likeness import ENTRY_BYTES
from tenure.errors import KeyTypeError, UsageError, ValueTypeError
from tenure.protocol.balance.policy import only
from tenure.protocol.lease.limits import CHUNK_BYTES

WHOLE = KeyRange(b"", None)
HALF = KeyRange(b"\x80", None)


def state_of(kind: PoolKind = "hashed", value_type: object = Any) -> KeyedState[Any]:
    """The state of an owner in a pool of that kind."""
    state: KeyedState[Any] = KeyedState(value_type=value_type)
    state.belong_to("an owner", kind, lambda: False)
    return state


def exported(
    state: KeyedState[Any], key_range: KeyRange, since: Mark | None = None
) -> tuple[Any, Any]:
    mark, chunks = state.export_range(key_range, since)
    assert not hasattr(chunks, "__aiter__")
    return mark, list(chunks)


def leaves_of(state: KeyedState[Any]) -> list[Any]:
    return state._placed().keys.leaves


def imported(chunks: list[bytes], into: KeyedState[Any] | None = None) -> KeyedState[Any]:
    state = state_of() if into is None else into
    for chunk in chunks:
        state.import_chunk(WHOLE, chunk)
    return state


def test_it_is_a_dict_by_key() -> None:
    state = state_of()
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
    state = state_of()
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
    state, twin = state_of(), dict[str, int]()
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
    source, keys = state_of(), 20 * LEAF_KEYS
    source.update({f"user-{i}": i for i in range(keys)})
    bounds = [b"", b"\x30", b"\x31", b"\xc0", None]
    ranges = [KeyRange(start or b"", end) for start, end in pairwise(bounds)]
    taker, hashed = state_of(), 0

    def counted(user_key: UserKey) -> Key:
        nonlocal hashed
        hashed += 1
        return hashed_key(user_key)

    assert taker._place
    taker._place = taker._place._replace(key=counted)
    for key_range in [ranges[1], ranges[3], ranges[0], ranges[2]]:
        taker.discard_range(key_range)  # as before every import
        for chunk in exported(source, key_range)[1]:
            taker.import_chunk(key_range, chunk)
    assert dict(taker) == dict(source)
    assert keys <= hashed < keys * 1.1, "each key is looked at once: whether it is in the range"
    for key_range in ranges:
        assert set(taker.within(key_range)) == set(source.within(key_range))


def test_ranges_that_come_and_go_leave_no_empty_leaves_behind() -> None:
    random = Random(3)
    state = state_of()
    for _ in range(500):
        start, end = sorted(random.randbytes(2) for _ in range(2))
        state.discard_range(KeyRange(start, end if end > start else None))
    assert len(leaves_of(state)) == 1


def test_keys_that_go_one_by_one_do_not_cut_the_state_to_pieces() -> None:
    state = state_of()
    state.update({f"user-{i}": i for i in range(10_000)})
    leaves = len(leaves_of(state))
    for i in range(0, 10_000, 5):
        state.discard_range(only(hashed_key(f"user-{i}")))
    assert len(leaves_of(state)) == leaves
    assert sorted(state.values()) == [i for i in range(10_000) if i % 5]


class Meddling(KeyedState[int]):
    """Lets another thread set a key between two leaves of a discard."""

    late = ""

    def _pop(self, user_keys: Iterable[Any]) -> None:
        super()._pop(user_keys)
        if self.late:
            late, self.late = self.late, ""
            self[late] = 7


def test_what_is_set_while_its_range_is_discarded_is_gone_or_can_be_handed_over() -> None:
    state = Meddling()
    state.belong_to("an owner", "hashed", lambda: False)
    state.update({f"user-{i}": i for i in range(10_000)})
    state.late = "late"
    state.discard_range(WHOLE)
    assert dict(state) == {} == dict(imported(exported(state, WHOLE)[1]))
    state["late"] = 8
    assert dict(imported(exported(state, WHOLE)[1])) == {"late": 8}


def test_a_difference_has_what_was_set_removed_and_touched_since_its_mark() -> None:
    state = state_of()
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
    state = state_of()
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
    state = state_of()
    mark, _ = exported(state, HALF)
    for i in range(100):
        state[f"user-{i}"] = i
    assert set(mark.changed) == {key for key in state if hashed_key(key) in HALF}
    del mark
    gc.collect()
    assert state._marks == ()  # ranges that nobody has cost nothing


def test_chunks_are_neither_large_nor_many() -> None:
    state = state_of()
    for i in range(2_000):
        state[f"user-{i}"] = bytes(1_000)
    state["large"] = bytes(AIM_BYTES * 5 // 2)
    _, chunks = exported(state, WHOLE)
    sizes = sorted(map(len, chunks))
    assert sizes[-2] <= 2 * AIM_BYTES
    assert len(chunks) < 30
    assert dict(imported(chunks)) == dict(state)


class Room(msgspec.Struct):
    name: str


def test_values_may_be_of_a_type_and_pools_ordered() -> None:
    state = state_of("ordered", Room)
    state.update({"ann": Room("a"), "bob": Room("b")})
    _, chunks = exported(state, KeyRange(ordered_key("b"), None))
    assert dict(imported(chunks, state_of("ordered", Room))) == {"bob": Room("b")}


def test_what_cannot_be_a_type_is_said() -> None:
    with pytest.raises(ConfigurationError, match="value_type cannot be"):
        KeyedState(value_type=str | bytes)


# --- whose it is ----------------------------------------------------------------------------------


def test_what_was_put_there_before_it_had_an_owner_is_handed_over() -> None:
    state: KeyedState[int] = KeyedState(value_type=int)
    state.update({"ann": 1, "bob": 2, "carl": 3})
    del state["ann"]
    state.belong_to("an owner", "ordered", lambda: False)
    assert state.within(KeyRange(b"c", None)) == ["carl"]
    _, chunks = exported(state, WHOLE)
    assert dict(imported(chunks, state_of("ordered"))) == {"bob": 2, "carl": 3}


def test_a_state_without_an_owner_has_no_ranges() -> None:
    state: KeyedState[int] = KeyedState(value_type=int)
    for use in (state.within, state.discard_range, lambda it: state.export_range(it, None)):
        with pytest.raises(UsageError, match="does not belong to an owner yet"):
            use(WHOLE)
    with pytest.raises(KeyTypeError):
        state[1.5] = 1  # type: ignore[index]


@pytest.mark.parametrize("key", [None, 1.5, [], {}, object(), "\ud800", 1 << 64])
def test_what_cannot_be_a_key_is_refused_as_a_key(key: Any) -> None:  # noqa: ANN401  # wrong
    for state in KeyedState[int](), state_of():
        with pytest.raises(KeyTypeError):
            state[key] = 1
        assert not state


@pytest.mark.parametrize("wrong", [None, "room-42", b"", (b"", None)])
def test_within_takes_a_range(wrong: Any) -> None:  # noqa: ANN401  # wrong on purpose
    with pytest.raises(UsageError, match="within takes a KeyRange, such as one of"):
        state_of().within(wrong)


def test_the_keys_of_a_pool_are_those_of_its_kind() -> None:
    state = state_of("ordered")
    with pytest.raises(KeyTypeError, match="ordered pool"):
        state[7] = 1
    other: KeyedState[int] = KeyedState(value_type=int)
    other[7] = 1
    with pytest.raises(KeyTypeError, match="ordered pool"):
        other.belong_to("an owner", "ordered", lambda: False)


def test_a_second_owner_is_refused_by_name_until_the_first_has_left() -> None:
    state: KeyedState[int] = KeyedState(value_type=int)
    has_left = False
    state.belong_to("ann", "hashed", lambda: has_left)
    with pytest.raises(ConfigurationError, match="owner 'ann', and cannot be that of 'bob' too"):
        state.belong_to("bob", "hashed", lambda: False)
    state["kept"] = 1
    has_left = True
    state.belong_to("bob", "ordered", lambda: False)
    assert state.within(KeyRange(b"kept", b"kepu")) == ["kept"]


def test_two_owners_of_one_state_are_refused_when_the_second_is_made() -> None:
    state: KeyedState[int] = KeyedState(value_type=int)
    where = "http://127.0.0.1:1"
    first = Owner(where, pool="p", address=where, name="ann", hand_off=state)
    with pytest.raises(ConfigurationError, match="'ann'"):
        Owner(where, pool="p", address=where, name="bob", hand_off=state)
    del first
    gc.collect()
    Owner(where, pool="p", address=where, name="bob", kind="ordered", hand_off=state)
    with pytest.raises(KeyTypeError, match="ordered pool"):
        state[7] = 1


# --- what is not in the range ---------------------------------------------------------------------


@pytest.mark.parametrize("is_removed", [True, False])
@pytest.mark.parametrize("has_leaf", [True, False])
def test_a_key_outside_the_range_is_refused_and_nothing_is_imported(
    *, is_removed: bool, has_leaf: bool
) -> None:
    """The existing values are being served: nobody ordered that they be changed."""
    state = state_of("ordered")
    state["served"] = 1
    leaf = (b"a", None) if has_leaf else (None, None)
    good = (*leaf, ["ann"], [2], [])
    bad = (*leaf, ["bob"], [2], ["served"]) if is_removed else (*leaf, ["bob", "served"], [2, 2])
    chunk = msgspec.msgpack.encode(([good, bad],))
    with pytest.raises(ValueError, match="the key 'served', which is not in"):
        state.import_chunk(KeyRange(b"a", b"m"), chunk)
    assert dict(state) == {"served": 1}
    assert state.within(WHOLE) == ["served"]


def test_what_says_that_it_is_a_leaf_and_is_not_is_put_where_it_belongs() -> None:
    state = state_of("ordered")
    state.import_chunk(
        KeyRange(b"a", b"z"), msgspec.msgpack.encode(([(b"c", b"d", ["ann", "bob"], [1, 2])],))
    )
    assert state.within(KeyRange(b"a", b"b")) == ["ann"]
    assert state.within(KeyRange(b"c", b"d")) == []
    state.import_chunk(
        KeyRange(b"a", b"z"), msgspec.msgpack.encode(([(b"d", b"c", ["eve"], [1])],))
    )
    assert state.within(KeyRange(b"e", b"f")) == ["eve"]


def test_the_largest_value_that_may_be_assigned_fits_into_a_chunk() -> None:
    state = state_of()
    state["k"] = bytes(ENTRY_BYTES - 10)
    (chunk,) = exported(state, WHOLE)[1]
    assert len(chunk) <= CHUNK_BYTES
    with pytest.raises(ValueTypeError, match="bytes with its key; at most 4190208 are allowed"):
        state["a longer key"] = bytes(ENTRY_BYTES - 10)


def test_what_was_changed_in_place_is_looked_at_when_it_is_touched() -> None:
    state = state_of()
    value: list[object] = [1]
    state["k"] = value
    value.append((2, 3))
    with pytest.raises(ValueTypeError, match="would arrive as"):
        state.touch("k")


def typed() -> None:
    """Show what a type checker makes of it: mypy looks, nobody calls."""
    rooms = KeyedState(value_type=Room)
    rooms["a"] = Room("a")
    rooms["a"] = 7  # type: ignore[assignment]
    sets = KeyedState(value_type=set[str])
    sets["a"] = {"b"}
    sets["a"] = ["b"]  # type: ignore[assignment]
