"""The search for an order of reads and writes, and its twin, which tries every order."""

from collections.abc import Iterator, Sequence
from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from lab.judges.operations import NEVER
from lab.judges.orders import Access, GivenUp, NoOrder, Order, order_of, read_of, write_of
from lab.judges.registers import shrunk


def write(value: str | None, began: int, ended: int = NEVER) -> Access:
    return write_of(value, began, ended)


def read(value: str | None, began: int, ended: int) -> Access:
    return read_of(value, began, ended)


def has_order(*accesses: Access) -> bool:
    return isinstance(order_of(None, accesses), Order)


def test_one_after_another() -> None:
    assert has_order(write("a", 1, 2), read("a", 3, 4), write(None, 5, 6), read(None, 7, 8))


def test_a_read_beside_a_write_may_return_either_but_not_new_and_then_old() -> None:
    written = write("a", 1, 9)
    assert has_order(written, read(None, 2, 3), read("a", 4, 5))
    assert not has_order(written, read("a", 2, 3), read(None, 4, 5))


def test_a_write_does_not_take_effect_twice() -> None:
    """Fault 1 and fault 2 of the store, as clients saw them."""
    seen = read("a", 2, 3)
    over = write("b", 4, 5)
    assert not has_order(write("a", 1, 9), seen, over, read("a", 10, 11))
    assert not has_order(write("a", 1), seen, over, read("a", 10, 11))
    assert has_order(write("a", 1), read(None, 2, 3), over, read("a", 10, 11))


def test_an_acknowledged_write_is_not_lost() -> None:
    assert not has_order(write("a", 1, 2), write("b", 3, 4), read("a", 5, 6))
    assert not has_order(write("a", 1, 2), read(None, 3, 4))


def test_an_unknown_write_may_take_effect_late_or_never() -> None:
    assert has_order(write("a", 1), write("b", 2, 3), read("b", 4, 5), read("a", 6, 7))
    assert has_order(write("a", 1), write("b", 2, 3), read("b", 4, 5))


def test_one_delete_hides_one_write_only() -> None:
    first, second = write("a", 1, 2), write("b", 5, 6)
    seen = read("a", 3, 4), read("b", 7, 8)
    gone = read(None, 9, 10)
    assert not has_order(first, second, *seen, gone)
    assert has_order(first, second, *seen, gone, write(None, 2))
    twice = read(None, 4, 5)
    assert not has_order(first, second, *seen, twice, gone, write(None, 2))
    assert has_order(first, second, *seen, twice, gone, write(None, 2), write(None, 3))


def test_a_value_that_nobody_wrote_has_no_order() -> None:
    assert not has_order(read("a", 1, 2))
    assert not has_order(read("a", 1, 2), write("a", 3, 4))


def test_many_writes_under_way_at_once_cost_little() -> None:
    writes = [write(str(n), n, 10_000 - n) for n in range(200)]
    deletes = [write(None, n, 10_000 - n) for n in range(20)]
    reads = [read(str(n), 500 + 2 * n, 501 + 2 * n) for n in range(0, 200, 3)]
    assert has_order(*writes, *deletes, *reads)
    assert not has_order(*writes, *deletes, *reads, read("0", 2000, 2001))


# --- the twin ---


@st.composite
def histories(draw: st.DrawFn) -> list[Access]:
    """Few writes with values of their own, deletes, and reads of what may be there."""
    accesses = []
    for value in "abc"[: draw(st.integers(0, 3))]:
        began = draw(st.integers(0, 12))
        accesses.append(write(value, began, draw(ends(began))))
    for _ in range(draw(st.integers(0, 2))):
        began = draw(st.integers(0, 12))
        accesses.append(write(None, began, draw(ends(began))))
    for _ in range(draw(st.integers(0, 3))):
        began = draw(st.integers(0, 12))
        seen = draw(st.sampled_from((None, "a", "b", "c")))
        accesses.append(read(seen, began, began + draw(st.integers(0, 6))))
    return draw(st.permutations(accesses))


def ends(began: int) -> st.SearchStrategy[int]:
    return st.one_of(st.just(NEVER), st.integers(began, began + 8))


def subsets(unknown: Sequence[Access]) -> Iterator[list[Access]]:
    for chosen in range(1 << len(unknown)):
        yield [each for place, each in enumerate(unknown) if chosen >> place & 1]


def naive(accesses: Sequence[Access]) -> bool:
    """Try every order of the known accesses with every choice of the unknown ones."""
    known = [each for each in accesses if each.ended < NEVER]
    unknown = [each for each in accesses if each.ended == NEVER]
    return any(
        is_order(order) for chosen in subsets(unknown) for order in permutations([*known, *chosen])
    )


def is_order(order: Sequence[Access]) -> bool:
    value: str | None = None
    latest = -1
    for access in order:
        latest = max(latest, access.began)
        if access.ended < latest:
            return False
        if access.is_write:
            value = access.value
        elif access.value != value:
            return False
    return True


@settings(max_examples=400)
@given(histories())
def test_the_search_finds_what_trying_every_order_finds(accesses: list[Access]) -> None:
    found = order_of(None, accesses)
    assert not isinstance(found, GivenUp)
    assert isinstance(found, Order) == naive(accesses)


@given(histories())
def test_what_is_shrunk_has_no_order_either(accesses: list[Access]) -> None:
    if isinstance(order_of(None, accesses), NoOrder):
        fewer = shrunk(None, accesses)
        assert len(fewer) <= len(accesses)
        assert not naive(fewer)
