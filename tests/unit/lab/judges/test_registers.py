"""Registers judged as operations arrive: what is settled is forgotten, and nothing is missed."""

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lab.judges.operations import (
    NEVER,
    AnyOperation,
    Complaint,
    ReadOperation,
    Told,
    WriteOperation,
)
from lab.judges.orders import Access, Order, order_of
from lab.judges.registers import ColumnHistory, RegisterJudge
from tests.unit.lab.judges.test_orders import read, write


def wrote(
    value: str | None, began: int, ended: int, told: Told = "written", column: str = "a"
) -> WriteOperation:
    return WriteOperation("c1", "k", {column: value}, began, ended, told)


def saw(value: str | None, began: int, ended: int, column: str = "a") -> ReadOperation:
    return ReadOperation("c2", "k", {column: value}, began, ended)


def judged(*operations: AnyOperation) -> list[Complaint]:
    judge = RegisterJudge()
    for each in operations:
        judge.add(each)
    return list(judge.judge())


def test_what_was_not_written_explains_nothing() -> None:
    assert judged(wrote("x", 1, 2, "unknown"), saw("x", 3, 4)) == []
    assert len(judged(wrote("x", 1, 2, "not written"), saw("x", 3, 4))) == 1


def test_each_column_is_a_register_of_its_own() -> None:
    both = WriteOperation("c1", "k", {"a": "x", "b": "y"}, 1, 2, "written")
    assert judged(both, saw("x", 3, 4), saw("y", 5, 6, "b")) == []
    [complaint] = judged(both, saw("x", 3, 4), saw(None, 5, 6, "b"))
    assert "k b: nothing explains None" in complaint.what


def test_a_complaint_names_few_operations() -> None:
    busy: list[AnyOperation] = []
    for n in range(30):
        busy += [wrote(f"v{n}", 10 * n, 10 * n + 3), saw(f"v{n}", 10 * n + 4, 10 * n + 6)]
    [complaint] = judged(*busy, saw("v17", 500, 501))
    assert saw("v17", 500, 501) in complaint.operations
    assert len(complaint.operations) <= 4


def test_what_is_settled_is_forgotten_and_unknown_writes_are_kept() -> None:
    history = ColumnHistory("k a")
    history.add(write("a", 1))
    history.add(write("b", 2))
    history.add(write("c", 3, 4))
    history.add(read("b", 5, 6))
    assert history.judge(7) is None
    assert history.value == "b"
    history.add(read("a", 7, 8))
    assert history.judge(9) is None
    history.add(read("b", 9, 10))
    assert history.judge() is not None


def test_nothing_is_settled_before_an_access_that_is_still_under_way() -> None:
    history = ColumnHistory("k a")
    history.add(read("a", 5, 6))
    assert history.judge(1) is None
    history.add(write("a", 1, 8))
    assert history.judge() is None


@st.composite
def long_histories(draw: st.DrawFn) -> list[Access]:
    """Some accesses after one another, some beside each other."""
    accesses: list[Access] = []
    at = 0
    for number in range(draw(st.integers(1, 14))):
        began = at + draw(st.integers(0, 3))
        ended = began + draw(st.integers(0, 6))
        kind = draw(st.sampled_from(("write", "read", "read", "delete", "unknown")))
        seen = [each.value for each in accesses if each.is_write][-4:]
        match kind:
            case "write":
                accesses.append(write(str(number), began, ended))
            case "unknown":
                accesses.append(write(draw(st.sampled_from((str(number), None))), began))
            case "delete":
                accesses.append(write(None, began, ended))
            case _:
                accesses.append(read(draw(st.sampled_from((None, *seen))), began, ended))
        at = draw(st.integers(began, ended + 1))
    return accesses


@settings(max_examples=300)
@given(long_histories(), st.lists(st.integers(0, 100), max_size=4))
def test_judging_in_between_finds_the_same_as_judging_once(
    accesses: list[Access], looks: list[int]
) -> None:
    whole = order_of(None, accesses)
    assume(accesses)
    history = ColumnHistory("k a")
    found = None
    added: set[int] = set()
    for now in (*sorted(looks), NEVER):
        for place, access in enumerate(accesses):
            is_over = access.ended <= now or (access.ended == NEVER and access.began < now)
            if is_over and place not in added:
                added.add(place)
                history.add(access)
        left = [each.began for place, each in enumerate(accesses) if place not in added]
        found = found or history.judge(min(left, default=now))
    assert (found is None) == isinstance(whole, Order)
    assert history.undecided == 0
