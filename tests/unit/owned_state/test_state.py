"""Owned state: what a body finds, what is stored when it is done, and what is refused."""

import asyncio
import threading
from contextlib import suppress
from dataclasses import dataclass

import pytest

from tenure import ConfigurationError, Full, LeaseLost, NotOwner, OwnedState
from tenure.base.keys import UserKey
from tenure.owned_state.entries import Stored
from tenure.testing.clock import TurnedClock, come_to_rest
from tests.unit.owned_state.stage import JOURNAL, TERM, WHOLE, Holder, copied, holder, put, stored


@dataclass
class Cart:
    articles: list[str]


# --- bodies ---------------------------------------------------------------------------------------


def test_what_a_body_leaves_is_what_the_next_one_finds() -> None:
    carts: OwnedState[list[str]] = holder(OwnedState(value_type=list[str])).state
    with carts.at("ann") as cart:
        assert cart.value is None
        cart.value = ["tea"]
    with carts.at("ann") as cart:
        assert cart.value == ["tea"]
        assert (cart.key, cart.lease.number) == ("ann", 1)
    assert len(carts) == 1


@pytest.mark.asyncio
async def test_tasks_do_the_same_and_may_wait_in_between() -> None:
    carts: OwnedState[list[str]] = holder(OwnedState(value_type=list[str])).state

    async def add(article: str) -> None:
        async with carts.at("ann") as cart:
            before = cart.value or []
            await asyncio.sleep(0)
            cart.value = [*before, article]

    await asyncio.gather(*(add(str(i)) for i in range(50)))
    async with carts.at("ann") as cart:
        assert cart.value == [str(i) for i in range(50)]


def test_threads_take_turns() -> None:
    counts: OwnedState[int] = holder(OwnedState(value_type=int)).state

    def count() -> None:
        for _ in range(200):
            with counts.at("a") as it:
                it.value = (it.value or 0) + 1

    threads = [threading.Thread(target=count) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert stored(counts, "a") == 1600


def test_a_value_that_is_changed_in_place_is_stored() -> None:
    carts = holder(OwnedState(value_type=Cart)).state
    put(carts, "ann", Cart(["tea"]))
    with carts.at("ann") as cart:
        assert cart.value
        cart.value.articles.append("cake")
    assert stored(carts, "ann") == Cart(["tea", "cake"])


def test_a_body_that_raises_stores_nothing_not_even_in_place() -> None:
    carts = holder(OwnedState(value_type=Cart)).state

    def spoil() -> None:
        with carts.at("ann") as cart:
            assert cart.value
            cart.value.articles.append("cake")
            raise ZeroDivisionError

    put(carts, "ann", Cart(["tea"]))
    with pytest.raises(ZeroDivisionError):
        spoil()
    for user in ("ann", "bob"):
        with pytest.raises(ZeroDivisionError):
            put(carts, user, Cart([]), lambda: 1 // 0)
    assert stored(carts, "ann") == Cart(["tea"])
    assert len(carts) == 1


def test_none_removes() -> None:
    carts = holder().state
    put(carts, "ann", 1)
    put(carts, "ann", None)
    assert stored(carts, "ann") is None
    assert (len(carts), carts.size_bytes) == (0, 0)
    put(carts, "ann", None)
    assert len(carts) == 0


def test_keys_are_told_apart_as_they_were_given() -> None:
    state = holder().state
    for key in ("a", b"a", 7):
        put(state, key, repr(key))
    assert [stored(state, key) for key in ("a", b"a", 7)] == ["'a'", "b'a'", "7"]


@pytest.mark.asyncio
async def test_who_is_cancelled_in_the_body_stores_nothing_and_ends_the_turn() -> None:
    state = holder().state

    async def serve() -> None:
        async with state.at("a") as it:
            it.value = 1
            await asyncio.Event().wait()

    serving = asyncio.create_task(serve())
    await come_to_rest()
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving
    async with state.at("a", wait=0) as it:
        assert it.value is None


# --- leases ---------------------------------------------------------------------------------------


def test_what_is_not_held_is_refused_before_anything_is_done() -> None:
    held = holder()
    held.lose(WHOLE)
    with pytest.raises(NotOwner) as refused, held.state.at("ann"):
        raise AssertionError("nothing is done")
    assert refused.value.address is None
    assert len(held.state.turns) == 0


def test_a_body_that_loses_its_lease_stores_nothing_and_is_told() -> None:
    held = holder()
    with pytest.raises(LeaseLost):
        put(held.state, "ann", ["tea"], lambda: held.lose(WHOLE))
    assert len(held.state) == 0
    assert len(held.state.turns) == 0


def test_so_it_is_when_the_term_runs_out() -> None:
    held = holder()
    with pytest.raises(LeaseLost):
        put(held.state, "ann", ["tea"], lambda: held.clock.jump(TERM))
    assert len(held.state) == 0


@pytest.mark.asyncio
async def test_a_task_that_loses_its_lease_is_cancelled() -> None:
    held, reached = holder(), list[str]()

    async def serve() -> None:
        async with held.state.at("ann") as cart:
            cart.value = ["tea"]
            reached.append("inside")
            await asyncio.Event().wait()

    serving = asyncio.create_task(serve())
    await come_to_rest()
    held.lose(WHOLE)
    with pytest.raises(LeaseLost):
        await serving
    assert reached == ["inside"]
    assert (len(held.state), len(held.state.turns)) == (0, 0)


def test_a_range_that_left_and_came_back_while_a_body_waits_keeps_its_newer_value() -> None:
    """The old body stores nothing over it, though the key is held again."""
    clock = TurnedClock()
    first, second = holder(clock=clock), Holder("another", clock, OwnedState())

    def there_and_back() -> None:
        move(first, second, number=2)
        put(second.state, "ann", "newer")
        move(second, first, number=3)

    put(first.state, "ann", "first")
    with pytest.raises(LeaseLost):
        put(first.state, "ann", "late", there_and_back)
    assert stored(first.state, "ann") == "newer"


def move(source: Holder, taker: Holder, number: int) -> None:
    """Hand everything over."""
    _, since = source.leases[WHOLE]
    taker.state.discard_range(WHOLE)
    mark, chunks = copied(source.state, WHOLE)
    source.lose(WHOLE)
    for each in [*chunks, *copied(source.state, WHOLE, mark)[1]]:
        taker.state.import_chunk(WHOLE, each)
    taker.hold(WHOLE, number, since)
    source.state.discard_range(WHOLE)


def test_what_is_handed_over_counts_and_what_was_lost_does_not() -> None:
    clock = TurnedClock()
    first, second = holder(clock=clock, number=5), Holder("another", clock, OwnedState())
    put(first.state, "ann", ["tea"])
    move(first, second, number=6)
    assert stored(second.state, "ann") == ["tea"]
    second.hold(WHOLE, 7)  # again, and nobody has dropped anything
    assert stored(second.state, "ann") is None
    assert len(second.state) == 0


def test_an_entry_of_another_history_reads_as_absent() -> None:
    held = holder(number=5)
    held.state.entries.put("ann", Stored(9, JOURNAL + 1, 0, b"\x01"), held.clock())
    assert stored(held.state, "ann") is None


def test_what_an_earlier_owner_has_left_behind_is_dropped() -> None:
    first = holder()
    put(first.state, "ann", 1)
    with pytest.raises(ConfigurationError, match="is the state of the owner 'an owner'"):
        Holder("another", first.clock, first.state)
    assert len(first.state) == 1
    first.has_ended = True
    second = Holder("another", first.clock, first.state)
    second.hold(WHOLE, 1)
    assert stored(first.state, "ann") is None
    assert first.state.size_bytes == 0


# --- time -----------------------------------------------------------------------------------------


def test_a_value_ends_after_its_time_to_live_from_when_it_was_stored_last() -> None:
    held = holder(OwnedState(ttl=60))
    with held.state.at("a") as it:
        it.value = 1
        assert it.ttl is None
    held.clock.jump(59)
    with held.state.at("a") as it:
        assert it.ttl == 1
        it.value = 2
    held.clock.jump(59)
    assert stored(held.state, "a") == 2
    held.clock.jump(1)
    assert len(held.state) == 0
    assert stored(held.state, "a") is None


def test_looking_at_a_value_does_not_keep_it_and_refreshing_does() -> None:
    held = holder(OwnedState(ttl=60))
    for key in ("looked at", "refreshed"):
        put(held.state, key, {"n": [1]})
    held.clock.jump(59)
    assert stored(held.state, "looked at") == {"n": [1]}
    with held.state.at("refreshed") as it:
        it.refresh()
    held.clock.jump(1)
    assert stored(held.state, "looked at") is None
    assert stored(held.state, "refreshed") == {"n": [1]}


def test_a_body_may_say_when_its_value_ends() -> None:
    held = holder(OwnedState(ttl=60))
    with held.state.at("short") as it:
        it.value, it.ttl = 1, 10
        assert it.ttl == 10
    with held.state.at("for ever") as it:
        it.value, it.ttl = 1, None
    held.clock.jump(5)
    with held.state.at("short") as it:
        it.value, it.ttl = 2, it.ttl
    held.clock.jump(5)
    assert stored(held.state, "short") is None
    held.clock.jump(500)
    assert stored(held.state, "for ever") == 1
    with held.state.at("a") as it, pytest.raises(ConfigurationError, match="ttl is a number"):
        it.ttl = -1


def test_the_time_to_live_goes_along_whatever_the_clocks_say() -> None:
    here, there = TurnedClock(), TurnedClock()
    there.jump(-900)
    first = holder(OwnedState(ttl=60), here)
    second = Holder("another", there, OwnedState(ttl=60))
    for key, ttl in (("a", 60), ("b", None)):
        with first.state.at(key) as it:
            it.value, it.ttl = 1, ttl
    here.jump(20)
    move(first, second, number=2)
    with second.state.at("a") as it:
        assert it.ttl == 40
    there.jump(39)
    assert stored(second.state, "a") == 1
    there.jump(1)
    assert stored(second.state, "a") is None
    assert stored(second.state, "b") == 1


def test_entries_that_are_stored_again_and_again_leave_no_heap_behind() -> None:
    held = holder(OwnedState(ttl=60))
    for i in range(5_000):
        put(held.state, "a", i)
    assert len(held.state.entries._ends) < 2_000
    held.clock.jump(60)
    assert len(held.state) == 0


# --- limits ---------------------------------------------------------------------------------------


def test_no_more_entries_than_the_limit() -> None:
    held = holder(OwnedState(limit=2, ttl=60))
    for key in ("a", "b"):
        put(held.state, key, 1)
    with pytest.raises(Full, match="there are 2 entries, as many as limit= allows: 'c' was not"):
        put(held.state, "c", 1)
    put(held.state, "a", 2)
    held.clock.jump(60)
    put(held.state, "c", 1)
    assert len(held.state) == 1


def test_no_more_bytes_than_the_limit() -> None:
    held = holder(OwnedState(limit_bytes=100))
    put(held.state, "a", b"x" * 80)
    before = held.state.size_bytes
    assert 80 < before < 90
    for key, value in (("b", b"x" * 20), ("a", b"x" * 120)):
        with pytest.raises(Full, match="where limit_bytes= allows 100"):
            put(held.state, key, value)
    assert held.state.size_bytes == before
    put(held.state, "a", b"")
    put(held.state, "b", b"x" * 80)


def test_what_is_handed_over_is_taken_beyond_the_limit_and_counted() -> None:
    clock = TurnedClock()
    first, second = holder(clock=clock), Holder("another", clock, OwnedState(limit=1))
    for i in range(200):
        put(first.state, f"key-{i}", i)
    size = first.state.size_bytes
    move(first, second, number=2)
    assert (len(second.state), second.state.size_bytes) == (200, size)
    assert (len(first.state), first.state.size_bytes) == (0, 0)
    with pytest.raises(Full):
        put(second.state, "new", 1)
    with second.state.at("key-1") as it:
        it.value = None
    assert len(second.state) == 199


# --- storing, and hand-offs beside it -------------------------------------------------------------


class NoLock:
    """Locks nothing."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def beside_a_hand_off(*, is_locked: bool) -> str:
    """Return what is stored in the end if a range leaves and comes back, with a newer value, while
    a body of its former owner stands between asking for the lease and storing.
    """
    clock = TurnedClock()
    first, second = holder(clock=clock), Holder("another", clock, OwnedState())
    if not is_locked:
        first.state.entries._lock = NoLock()  # type: ignore[assignment]
    put(first.state, "ann", "first")

    def there_and_back() -> None:
        move(first, second, number=2)
        put(second.state, "ann", "newer")
        move(second, first, number=3)

    moving = threading.Thread(target=there_and_back)
    store = first.state.entries.put

    def store_slowly(key: UserKey, entry: Stored, now: int) -> None:
        moving.start()
        moving.join(0.2)
        store(key, entry, now)

    first.state.entries.put = store_slowly  # type: ignore[method-assign, assignment]
    with suppress(LeaseLost):
        put(first.state, "ann", "late")
    moving.join()
    return str(stored(first.state, "ann"))


def test_a_hand_off_waits_for_what_is_being_stored() -> None:
    assert beside_a_hand_off(is_locked=True) == "newer"


def test_without_the_lock_an_old_value_is_put_over_a_newer_one() -> None:
    assert beside_a_hand_off(is_locked=False) == "late"
