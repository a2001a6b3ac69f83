"""Rows of owners: what is unknown may vanish, and what was acknowledged may not."""

from tenure.sim.histories.fenced import FencedJudge
from tenure.sim.histories.operations import AnyOperation, ReadOperation, Told, WriteOperation


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
