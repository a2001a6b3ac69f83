"""Schedules of pages over several families, judged by the values that clients see (D1, D2)."""

from collections.abc import Callable

import msgspec

from tenure.protocol.replication.messages import (
    NodeMessage,
    PageFound,
    ReadColumn,
    ReadPage,
    ReadRow,
    RowFound,
    RowWritten,
    WriteRow,
)
from tenure.protocol.replication.node_events import Convicted
from tenure.protocol.replication.operations import ReadParts, ReadState
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.limits import PART_ENTRIES
from tenure.protocol.replication.row.pages import Slice
from tests.unit.protocol.replication.stage_of_nodes import NodeStage
from tests.unit.protocol.replication.test_schedules import found, last, write

ZED = Edit("names", None, b"z", b"z")


def write_both(request: int, value: bytes, time: int) -> WriteRow:
    """One write of a column in each of two families."""
    edits = tuple(Edit(family, None, b"a", value) for family in ("names", "times"))
    return msgspec.structs.replace(write(request, value, time), edits=edits)


def asks_for_times(message: NodeMessage) -> bool:
    body = message.body
    return isinstance(body, ReadParts) and any(each.family == "times" for each in body.questions)


def deliver_but(stage: NodeStage, is_held: Callable[[NodeMessage], bool]) -> list[NodeMessage]:
    """Deliver all messages but some, which are returned."""
    held: list[NodeMessage] = []
    while stage.messages:
        held += filter(is_held, stage.messages)
        stage.messages = [each for each in stage.messages if not is_held(each)]
        if stage.messages:
            stage.deliver_one()
    return held


def test_a_row_that_is_read_while_it_is_written_is_seen_whole() -> None:
    stage = NodeStage()
    stage.ask(1, write_both(1, b"x", 1))
    stage.deliver()
    stage.ask(2, ReadRow(request=2, table="plain", key=b"k", within=10))
    held = deliver_but(stage, asks_for_times)
    stage.ask(1, write_both(3, b"y", 2))
    stage.deliver()
    assert last(stage) == RowWritten(request=3)
    stage.messages = held
    stage.deliver()
    answer = last(stage)
    assert isinstance(answer, RowFound)
    values = {cell.value for page in answer.row.simple.values() for cell in page.cells}
    assert len(values) == 1


def test_a_row_that_is_read_where_replicas_differ_is_mended_whole() -> None:
    """One replica has two columns of an unknown write, and a page has room for one of them."""
    stage = NodeStage()
    edits = tuple(Edit("names", None, name, b"x") for name in (b"a", b"b"))
    stage.ask(1, msgspec.structs.replace(write(1, b"x", 1), edits=edits))
    stage.lose(2, 3)
    stage.wait(6)
    stage.messages.clear()
    stage.ask(1, ReadRow(request=2, table="plain", key=b"k", within=1))
    stage.deliver()
    answer = last(stage)
    assert isinstance(answer, RowFound)
    assert [each.name for each in answer.row.simple["names"].cells] == [b"a"]
    assert answer.row.simple["names"].next == b"a"
    stage.nodes[2].post(Convicted((1,)))
    stage.ask(2, ReadColumn(request=3, table="plain", key=b"k", family="names", name=b"b"))
    stage.deliver(2, 3)
    assert found(stage) == b"x"


def test_a_row_on_replicas_of_an_earlier_release_is_read_by_family() -> None:
    """In place of its super columns with their columns they tell a list of names."""
    stage = NodeStage()
    edits = tuple(Edit("inner", b"s", name, b"x") for name in (b"a", b"b"))
    edits = (*edits, Edit("names", None, b"a", b"x"))
    stage.ask(1, msgspec.structs.replace(write(1, b"x", 1), table="nested", edits=edits))
    stage.deliver()
    stage.ask(3, ReadRow(request=2, table="nested", key=b"k", within=1))
    while stage.messages:
        stage.messages = [without_whole_rows(each) for each in stage.messages]
        stage.deliver_one()
    answer = last(stage)
    assert isinstance(answer, RowFound)
    assert [each.name for each in answer.row.simple["names"].cells] == [b"a"]
    [(name, page)] = answer.row.supers["inner"].supers
    assert (name, [each.name for each in page.cells], page.next) == (b"s", [b"a"], b"a")
    assert not any(isinstance(each.body, ReadState) for each in stage.said)


def without_whole_rows(message: NodeMessage) -> NodeMessage:
    """The message as an earlier release reads it."""
    body = message.body
    if not isinstance(body, ReadParts):
        return message
    plain = tuple(msgspec.structs.replace(each, within=None) for each in body.questions)
    body = msgspec.structs.replace(body, questions=plain)
    return msgspec.structs.replace(message, body=body)


def test_a_row_whose_first_part_is_all_deleted_is_read_on() -> None:
    """A part ends after so many deleted columns, and a page cannot go on without any column."""
    stage = NodeStage()
    for first in range(0, PART_ENTRIES, 5_000):
        names = [b"%06d" % number for number in range(first, first + 5_000)]
        edits = tuple(Edit("names", None, name, None) for name in names)
        stage.ask(1, msgspec.structs.replace(write(1, b"", first), edits=edits))
        stage.deliver()
    stage.ask(1, msgspec.structs.replace(write(2, b"", 1), edits=(ZED,)))
    stage.deliver()
    stage.ask(2, ReadRow(request=3, table="plain", key=b"k", within=1))
    stage.deliver()
    answer = last(stage)
    assert isinstance(answer, RowFound)
    assert [each.name for each in answer.row.simple["names"].cells] == [b"z"]


def write_times(request: int, column: bytes, value: bytes | None, time: int) -> WriteRow:
    edits = (Edit("times", None, column, value),)
    return msgspec.structs.replace(write(request, b"", time), edits=edits)


def asks_again(message: NodeMessage) -> bool:
    """Whether it asks for what did not fit into the first round of a page of two columns."""
    body = message.body
    return isinstance(body, ReadParts) and any(
        each.part is not None and (each.part.after is not None or each.part.first != 2)
        for each in body.questions
    )


def test_a_column_that_is_rewritten_while_a_page_by_time_is_read_is_on_it() -> None:
    """Seed 58 of the store, at the first commit with the new rule for writes."""
    stage = NodeStage()
    for request, column in ((1, b"a"), (2, b"b"), (3, b"c")):
        stage.ask(1, write_times(request, column, b"x", request))
        stage.deliver()
    stage.ask(1, write_times(4, b"c", None, 4))
    stage.lose(3)
    stage.deliver()
    page = ReadPage(request=5, table="plain", key=b"k", family="times", part=Slice(2))
    stage.ask(3, page)
    held = deliver_but(stage, asks_again)
    assert held
    stage.ask(1, write_times(6, b"a", b"y", 10))
    stage.deliver()
    assert last(stage) == RowWritten(request=6)
    stage.messages = held
    stage.deliver()
    answer = last(stage)
    assert isinstance(answer, PageFound)
    assert {cell.name for cell in answer.page.cells} == {b"a", b"b"}
