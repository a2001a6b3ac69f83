"""Ends that never come, and waits for ever: whoever says so means it."""

import threading

import pytest

from tenure import OwnedState
from tests.unit.owned_state.stage import WHOLE, copied, holder, put, stored


@pytest.mark.parametrize("seconds", [1e11, 1e300])
def test_a_value_that_ends_when_nobody_lives_any_more_does_not_end(seconds: float) -> None:
    source, taker = OwnedState[str](ttl=seconds), OwnedState[str]()
    holder(source)
    holder(taker)
    put(source, "ann", "tea")
    with source.at("bob") as it:
        it.value, it.ttl = "milk", seconds
    _, chunks = copied(source, WHOLE)
    for each in chunks:
        taker.import_chunk(WHOLE, each)
    assert [stored(taker, key) for key in ("ann", "bob")] == ["tea", "milk"]


def test_a_thread_may_wait_for_longer_than_threads_can() -> None:
    state = OwnedState[int](wait=1e10)
    holder(state)
    inside, go_on = threading.Event(), threading.Event()
    waits: list[BaseException] = []

    def wait() -> None:
        try:
            put(state, "ann", 2)
        except BaseException as error:  # noqa: BLE001  # it is looked at below
            waits.append(error)

    def first() -> None:
        with state.at("ann") as it:
            inside.set()
            go_on.wait()
            it.value = 1

    threads = [threading.Thread(target=each) for each in (first, wait)]
    threads[0].start()
    inside.wait()
    threads[1].start()
    while not state.turns._waits and threads[1].is_alive():
        threads[1].join(0.01)
    go_on.set()
    for each in threads:
        each.join()
    assert waits == []
    assert stored(state, "ann") == 2
