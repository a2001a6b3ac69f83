"""Schedules of pages over several families, judged by the values that clients see (D1, D2)."""

import msgspec
import pytest

from tenure.protocol.replication.edits import Edit
from tenure.protocol.replication.messages import (
    AskParts,
    NodeMessage,
    ReadRow,
    RowFound,
    RowWritten,
    WriteRow,
)
from tests.unit.protocol.replication.stage_of_nodes import NodeStage
from tests.unit.protocol.replication.test_schedules import last, write


def write_both(request: int, value: bytes, time: int) -> WriteRow:
    """One write of a column in each of two families."""
    edits = tuple(Edit(family, None, b"a", value) for family in ("names", "times"))
    return msgspec.structs.replace(write(request, value, time), edits=edits)


def asks_for_times(message: NodeMessage) -> bool:
    body = message.body
    return isinstance(body, AskParts) and any(each.family == "times" for each in body.questions)


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="a whole row is read in a round for each family, with writes in between",
)
def test_a_row_that_is_read_while_it_is_written_is_seen_whole() -> None:
    stage = NodeStage()
    stage.ask(1, write_both(1, b"x", 1))
    stage.deliver()
    stage.ask(2, ReadRow(request=2, table="plain", key=b"k", within=10))
    held: list[NodeMessage] = []
    while stage.messages:
        held += [each for each in stage.messages if asks_for_times(each)]
        stage.messages = [each for each in stage.messages if not asks_for_times(each)]
        if stage.messages:
            stage.deliver_one()
    stage.ask(1, write_both(3, b"y", 2))
    stage.deliver()
    assert last(stage) == RowWritten(request=3)
    stage.messages = held
    stage.deliver()
    answer = last(stage)
    assert isinstance(answer, RowFound)
    values = {cell.value for page in answer.row.simple.values() for cell in page.cells}
    assert len(values) == 1
