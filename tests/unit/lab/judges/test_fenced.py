"""Rows of owners: what is unknown may vanish, and what was acknowledged may not."""

from hypothesis import given, settings
from hypothesis import strategies as st

from lab.judges.fenced import FencedJudge
from lab.judges.operations import AnyOperation, ReadOperation, Told, WriteOperation
from lab.judges.orders import read_of, write_of
from tests.unit.lab.judges.test_orders import naive

TOLD: tuple[Told, ...] = ("written", "written", "unknown", "not written")


def wrote(value: str | None, began: int, ended: int, told: Told = "written") -> WriteOperation:
    return WriteOperation("owner", "o", {"a": value}, began, ended, told)


def saw(value: str | None, began: int, ended: int) -> ReadOperation:
    return ReadOperation("c", "o", {"a": value}, began, ended)


def complaints(*operations: AnyOperation) -> int:
    judge = FencedJudge()
    for each in operations:
        judge.add(each)
    return len(list(judge.judge()))


def test_what_was_acknowledged_is_a_register() -> None:
    x, y = wrote("x", 1, 2), wrote("y", 3, 4)
    assert complaints(x, saw("x", 3, 4), y, saw("y", 5, 6)) == 0
    assert complaints(x, y, saw("x", 5, 6)) == 1
    assert complaints(x, saw(None, 3, 4)) == 1


def test_what_is_unknown_may_be_seen_once_and_then_be_gone() -> None:
    x, unknown = wrote("x", 1, 2), wrote("y", 3, 4, "unknown")
    assert complaints(x, unknown, saw("y", 5, 6), saw("x", 7, 8)) == 0
    assert complaints(x, unknown, saw("y", 5, 6), wrote("z", 7, 8), saw("x", 9, 10)) == 1
    deleted = wrote(None, 3, 4, "unknown")
    assert complaints(x, deleted, saw(None, 5, 6), saw("x", 7, 8)) == 0
    assert complaints(x, saw(None, 3, 4), wrote(None, 5, 6, "unknown")) == 1


def test_a_read_waits_for_the_writes_that_it_may_have_seen() -> None:
    judge = FencedJudge()
    judge.add(saw("x", 2, 3))
    assert list(judge.judge(1)) == []
    judge.add(wrote("x", 1, 9, "unknown"))
    assert list(judge.judge(10)) == []
    assert list(judge.judge()) == []


@st.composite
def histories(draw: st.DrawFn) -> list[AnyOperation]:
    """Writes of an owner, some of them unknown, and reads of what was written."""
    made: list[AnyOperation] = []
    for number in range(draw(st.integers(0, 4))):
        began = draw(st.integers(0, 12))
        value = None if draw(st.integers(0, 4)) == 0 else str(number)
        told: Told = draw(st.sampled_from(TOLD))
        made.append(wrote(value, began, began + draw(st.integers(0, 6)), told))
    values = [each.columns["a"] for each in made]
    for _ in range(draw(st.integers(0, 3))):
        began = draw(st.integers(0, 14))
        value = draw(st.sampled_from((None, *values)))
        made.append(saw(value, began, began + draw(st.integers(0, 5))))
    return made


@settings(max_examples=300)
@given(histories())
def test_what_is_certain_has_an_order_if_trying_all_finds_one(
    operations: list[AnyOperation],
) -> None:
    unknown = [
        each for each in operations if isinstance(each, WriteOperation) and each.told == "unknown"
    ]
    accesses = []
    for each in operations:
        value = each.columns["a"]
        if isinstance(each, ReadOperation):
            if not any(it.columns["a"] == value and it.began <= each.ended for it in unknown):
                accesses.append(read_of(value, each.began, each.ended))
        elif each.told == "written":
            accesses.append(write_of(value, each.began, each.ended))
    assert (complaints(*operations) == 0) == naive(accesses)
