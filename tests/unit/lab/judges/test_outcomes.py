"""What writers were told: a write that was denied is never seen, an unknown one may be."""

from hypothesis import given
from hypothesis import strategies as st

from lab.judges.operations import AnyOperation, ReadOperation, Told, WriteOperation
from lab.judges.outcomes import OutcomeJudge

TOLD: tuple[Told, ...] = ("written", "not written", "unknown")


def wrote(value: str, began: int, ended: int, told: Told) -> WriteOperation:
    return WriteOperation("c1", "k", {"a": value, "b": value}, began, ended, told)


def saw(value: str | None, began: int, ended: int, *, is_weak: bool = False) -> ReadOperation:
    return ReadOperation("c2", "k", {"a": value}, began, ended, is_weak)


def complaints(*operations: AnyOperation) -> int:
    judge = OutcomeJudge()
    for each in operations:
        judge.add(each)
    return len(list(judge.judge()))


def test_only_a_write_that_was_denied_must_not_be_seen() -> None:
    for told in ("written", "unknown"):
        assert complaints(wrote("x", 1, 2, told), saw("x", 3, 4)) == 0
    denied = wrote("x", 1, 2, "not written")
    assert complaints(denied, saw(None, 3, 4), saw("y", 3, 4)) == 0
    assert complaints(denied, saw("x", 3, 4)) == 1
    assert complaints(denied, saw("x", 3, 4, is_weak=True)) == 1


def test_a_write_may_be_denied_after_it_was_seen() -> None:
    judge = OutcomeJudge()
    judge.add(saw("x", 3, 4))
    assert list(judge.judge(1)) == []
    judge.add(wrote("x", 1, 9, "not written"))
    assert len(list(judge.judge(10))) == 1
    assert list(judge.judge()) == []


@st.composite
def histories(draw: st.DrawFn) -> list[AnyOperation]:
    """Writes, each read by some, in the order of their ends, which need not be that of begins."""
    made: list[AnyOperation] = []
    for number in range(draw(st.integers(0, 4))):
        began, lasted = draw(st.integers(0, 9)), draw(st.integers(0, 9))
        told: Told = draw(st.sampled_from(TOLD))
        made.append(wrote(str(number), began, began + lasted, told))
        for _ in range(draw(st.integers(0, 2))):
            at = draw(st.integers(began, 15))
            made.append(saw(str(number), at, at + draw(st.integers(0, 5))))
    return sorted(made, key=lambda each: each.ended)


@given(histories(), st.lists(st.integers(0, 20), max_size=3))
def test_judging_in_between_finds_as_much_as_looking_at_all(
    operations: list[AnyOperation], looks: list[int]
) -> None:
    denied = {
        each.columns["a"]
        for each in operations
        if isinstance(each, WriteOperation) and each.told == "not written"
    }
    wanted = sum(
        isinstance(each, ReadOperation) and each.columns["a"] in denied for each in operations
    )
    judge, found, left = OutcomeJudge(), 0, list(operations)
    for now in sorted(looks):
        while left and left[0].ended <= now:
            judge.add(left.pop(0))
        found += len(list(judge.judge(min((each.began for each in left), default=now))))
    for each in left:
        judge.add(each)
    assert found + len(list(judge.judge())) == wanted
