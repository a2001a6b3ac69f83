"""All judges over one history, with pages of sets among its operations."""

from hypothesis import given, settings
from hypothesis import strategies as st

from lab.judges.judging import HistoryJudge
from lab.judges.operations import (
    NEVER,
    AnyRecord,
    PageOperation,
    ReadOperation,
    Told,
    WriteOperation,
)
from lab.judges.orders import read_of, write_of
from tests.unit.lab.judges.test_orders import naive

TOLD: tuple[Told, ...] = ("written", "written", "unknown", "not written")


def added(member: str, began: int, ended: int) -> WriteOperation:
    return WriteOperation("c1", "s", {f"set/{member}": member}, began, ended, "written")


def removed(member: str, began: int, ended: int) -> WriteOperation:
    return WriteOperation("c1", "s", {f"set/{member}": None}, began, ended, "written")


def page(members: str, began: int, *, after: str = "", until: str | None = None) -> PageOperation:
    columns: dict[str, str | None] = {f"set/{member}": member for member in members}
    end = None if until is None else f"set/{until}"
    start = f"set/{after}" if after else ""
    return PageOperation("c2", "s", "set/", columns, began, began + 1, start, end)


def found(*records: AnyRecord) -> list[str]:
    """The promises that are broken."""
    judge, complaints = HistoryJudge(), []
    for place, record in enumerate(records, 1):
        judge.add(record)
        since = min((each.began for each in records[place:]), default=NEVER)
        complaints += list(judge.judge(since))
    return [each.promise[:2] for each in complaints]


def test_a_page_shows_every_member_within_its_bounds() -> None:
    three = [added("a", 1, 2), added("b", 1, 2), added("c", 1, 2)]
    assert found(*three, page("abc", 10)) == []
    assert found(*three, page("ab", 10, until="b"), page("c", 20, after="b")) == []
    assert found(*three, page("ac", 10)) == ["D2"]
    assert found(*three, page("a", 10, until="b")) == ["D2"]
    assert found(*three, page("", 10, after="b")) == ["D2"]


def test_a_removed_member_stays_away() -> None:
    one: list[AnyRecord] = [added("a", 1, 2), page("a", 3), removed("a", 5, 6)]
    assert found(*one, page("", 7), page("", 9)) == []
    assert found(*one, page("", 7), page("a", 9)) == ["D2"]
    assert found(*one, page("", 7), added("a2", 9, 10), page("", 11)) == ["D2"]


def test_a_member_that_is_not_acknowledged_yet_does_not_come_and_go() -> None:
    late = added("a", 1, 20)
    assert found(page("", 2), page("a", 4), late) == []
    assert found(page("a", 2), page("", 4), late) == ["D2"]


def test_each_judge_has_its_say() -> None:
    denied = WriteOperation("c1", "k", {"a": "x"}, 1, 2, "not written")
    seen = ReadOperation("c2", "k", {"a": "x"}, 3, 4)
    assert sorted(found(denied, seen)) == ["D2", "D9"]
    x, y = (WriteOperation("c1", "k", {"a": v, "b": v}, 1, 2, "written") for v in "xy")
    assert found(x, y, ReadOperation("c2", "k", {"a": "x", "b": "y"}, 3, 4)) == ["D1"]


# --- the twin ---


@st.composite
def sets(draw: st.DrawFn) -> list[AnyRecord]:
    """Two members that come and go, and pages of both, or of one of them."""
    made: list[AnyRecord] = []
    for number in range(draw(st.integers(1, 5))):
        member, began = draw(st.sampled_from("ab")), draw(st.integers(0, 12))
        value = None if draw(st.booleans()) else str(number)
        told: Told = draw(st.sampled_from(TOLD))
        ended = began + draw(st.integers(0, 6))
        made.append(WriteOperation("c1", "s", {f"set/{member}": value}, began, ended, told))
    for _ in range(draw(st.integers(1, 3))):
        began = draw(st.integers(0, 14))
        after, until = draw(st.sampled_from((("", None), ("set/a", None), ("", "set/a"))))
        shown: dict[str, str | None] = {}
        for member in "ab":
            column = f"set/{member}"
            values = [w.columns[column] for w in made if column in w.columns]
            value = draw(st.sampled_from((None, *values)))
            if value is not None and column > after and (until is None or column <= until):
                shown[column] = value
        ended = began + draw(st.integers(0, 5))
        made.append(PageOperation("c2", "s", "set/", shown, began, ended, after, until))
    return sorted(made, key=lambda each: each.ended)


def has_order(column: str, records: list[AnyRecord]) -> bool:
    """Whether any order explains what was done with one member."""
    reads = [
        read_of(each.columns.get(column), each.began, each.ended)
        for each in records
        if isinstance(each, PageOperation) and each.covers(column)
    ]
    writes = [
        write_of(each.columns[column], each.began, each.last)
        for each in records
        if isinstance(each, WriteOperation)
        if column in each.columns and each.told != "not written"
    ]
    return naive([*reads, *writes])


@settings(max_examples=300)
@given(sets())
def test_a_set_is_judged_as_trying_every_order_of_each_member_would(
    records: list[AnyRecord],
) -> None:
    wanted = {column for column in ("set/a", "set/b") if not has_order(column, records)}
    judge = HistoryJudge()
    for each in records:
        judge.add(each)
    complaints = [each for each in judge.judge() if each.promise.startswith("D2")]
    assert {each.what.partition(":")[0] for each in complaints} == {f"s {name}" for name in wanted}
