"""What is read together: good pages, torn ones, and a twin that tries every order of mutations."""

from collections.abc import Sequence
from itertools import permutations

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
from lab.judges.pages import PageJudge

Columns = dict[str, str | None]
TOLD: tuple[Told, ...] = ("written", "written", "unknown")


def wrote(columns: Columns, began: int, ended: int, told: Told = "written") -> WriteOperation:
    return WriteOperation("c1", "k", columns, began, ended, told)


def both(value: str | None, began: int, ended: int, told: Told = "written") -> WriteOperation:
    return wrote({"a": value, "b": value}, began, ended, told)


def saw(a: str | None, b: str | None, began: int, ended: int) -> ReadOperation:
    return ReadOperation("c2", "k", {"a": a, "b": b}, began, ended)


def judged(*operations: AnyOperation) -> list[Complaint]:
    judge = PageJudge()
    for each in operations:
        judge.add(each)
    return list(judge.judge())


def test_what_was_acknowledged_is_seen_whole() -> None:
    x, y = both("x", 1, 8), both("y", 2, 9)
    apart = wrote({"a": "z"}, 0, 1)  # not all writes are of both columns, so the row is not even
    assert judged(apart, x, y, saw("y", "y", 10, 11)) == []
    [complaint] = judged(apart, x, y, saw("x", "y", 10, 11))
    assert complaint.promise.startswith("D1")
    assert x in complaint.operations
    assert y in complaint.operations


def test_two_reads_do_not_disagree_about_the_order_of_two_mutations() -> None:
    x, y = both("x", 1, 8), both("y", 2, 9)
    over = wrote({"a": "z"}, 12, 13)
    assert judged(x, y, over, saw("y", "y", 10, 11), saw("z", "y", 14, 15)) == []
    assert len(judged(x, y, over, saw("x", "x", 10, 11), saw("z", "y", 14, 15))) == 1


def test_a_part_of_what_is_under_way_may_be_seen() -> None:
    apart = wrote({"a": "z"}, 0, 1)
    for told in ("written", "unknown"):
        assert judged(apart, both("x", 2, 30, told), saw("x", None, 10, 11)) == []


def test_an_even_row_is_never_shown_in_parts() -> None:
    assert judged(both("x", 2, 30), saw("x", "x", 10, 11)) == []
    assert len(judged(both("x", 2, 30), saw("x", None, 10, 11))) == 1


def test_a_delete_is_whole_like_any_mutation() -> None:
    apart = wrote({"a": "z"}, 0, 1)
    x, gone = both("x", 2, 8), both(None, 3, 9)
    assert judged(apart, x, gone, saw(None, None, 10, 11)) == []
    assert len(judged(apart, x, gone, saw("x", None, 10, 11))) == 1


def test_what_no_read_can_show_is_forgotten() -> None:
    judge = PageJudge()
    for n in range(0, 1000, 10):
        judge.add(both(str(n), n, n + 2))
        judge.add(saw(str(n), str(n), n + 3, n + 4))
        assert list(judge.judge(n + 5)) == []
    [row] = judge._rows.values()
    assert len(row._writes) <= 2


# --- the twin ---


@st.composite
def histories(draw: st.DrawFn, *, deletes: bool) -> list[AnyOperation]:
    """Few writes of one or two of two columns, and reads of both that return something written."""
    writes: list[WriteOperation] = []
    for number in range(draw(st.integers(1, 4))):
        began = draw(st.integers(0, 8))
        names = draw(st.sampled_from(("a", "b", "ab", "ab")))
        is_delete = deletes and draw(st.booleans())
        columns: Columns = {name: None if is_delete else f"{name}{number}" for name in names}
        told: Told = draw(st.sampled_from(TOLD))
        writes.append(wrote(columns, began, began + draw(st.integers(0, 8)), told))
    reads = []
    for _ in range(draw(st.integers(1, 3))):
        began = draw(st.integers(0, 16))
        ended = began + draw(st.integers(0, 6))
        shown: Columns = {}
        for name in "ab":
            there = [each.columns[name] for each in writes if name in each.columns]
            shown[name] = draw(st.sampled_from((None, *there)))
        reads.append(ReadOperation("c2", "k", shown, began, ended))
    return [*writes, *reads]


def naive(operations: Sequence[AnyOperation]) -> bool:
    """Whether any order of the mutations explains all reads."""
    writes = [each for each in operations if isinstance(each, WriteOperation)]
    reads = [each for each in operations if isinstance(each, ReadOperation)]
    return any(is_real(order) and explains(order, reads) for order in permutations(writes))


def is_real(order: Sequence[WriteOperation]) -> bool:
    return all(
        not (later.last < earlier.began)
        for place, earlier in enumerate(order)
        for later in order[place + 1 :]
    )


def explains(order: Sequence[WriteOperation], reads: Sequence[ReadOperation]) -> bool:
    return all(
        is_shown(order, name, value, read) for read in reads for name, value in read.columns.items()
    )


def is_shown(
    order: Sequence[WriteOperation], name: str, value: str | None, read: ReadOperation
) -> bool:
    of = [each for each in order if name in each.columns]
    last = max((n for n, each in enumerate(of) if each.last < read.began), default=-1)
    if last < 0 and value is None:
        return True
    return any(
        each.columns[name] == value and each.began <= read.ended and n >= last
        for n, each in enumerate(of)
    )


def is_for_registers(write: WriteOperation, read: ReadOperation) -> bool:
    """Whether a read shows what was not begun, or nothing where something was acknowledged."""
    return any(
        (value == read.columns[name] and write.began > read.ended)
        or (read.columns[name] is None and write.last < read.began)
        for name, value in write.columns.items()
    )


@settings(max_examples=300)
@given(histories(deletes=False))
def test_the_judge_finds_what_trying_every_order_finds(operations: list[AnyOperation]) -> None:
    apart = wrote({"c": "z"}, 0, NEVER, "unknown")
    writes = [each for each in operations if isinstance(each, WriteOperation)]
    reads = [each for each in operations if isinstance(each, ReadOperation)]
    assume(not any(is_for_registers(write, read) for write in writes for read in reads))
    assert (judged(apart, *operations) == []) == naive(operations)


@settings(max_examples=300)
@given(histories(deletes=True))
def test_with_deletes_the_judge_is_never_wrong(operations: list[AnyOperation]) -> None:
    apart = wrote({"c": "z"}, 0, NEVER, "unknown")
    if naive(operations):
        assert judged(apart, *operations) == []
