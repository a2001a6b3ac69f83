"""Schedules that clients saw go wrong, judged by the values that they wrote and read (D2, D3).

No version tells that these are wrong: each answer has a version above the one before. Both fail at
commit 29d9f0eb. There, the simulator finds the first with the seeds 58 and 67 of the store, and the
second with seed 15, of an hour each.
"""

import msgspec
import pytest

from tenure.protocol.replication.admission import Outrun
from tenure.protocol.replication.edits import Edit
from tenure.protocol.replication.messages import Failed, NotWritten, RowWritten, WriteRow
from tests.unit.protocol.replication.stage_of_nodes import EPOCH_US, NodeStage
from tests.unit.protocol.replication.test_schedules import found, last, read, write
from tests.unit.protocol.replication.test_schedules_of_repeats import repeated

drawn_anew = pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="a write that is outrun is drawn anew, after it was read and overwritten (R4 of before)",
)


def write_columns(request: int, value: bytes, time: int, columns: bytes) -> WriteRow:
    """One write of several columns, each named by a letter."""
    edits = tuple(Edit("names", None, bytes((name,)), value) for name in columns)
    return msgspec.structs.replace(write(request, value, time), edits=edits)


def go_on_as_a_handle_does(stage: NodeStage, node: int, asked: WriteRow) -> None:
    """Draw the write anew above what outran it, as often as it takes."""
    answer = last(stage)
    while isinstance(answer, NotWritten) and isinstance(answer.refused, Outrun):
        above = answer.refused.newest.time + 1 - EPOCH_US
        attempt = write(asked.request, b"", above).attempt
        stage.ask(node, msgspec.structs.replace(asked, attempt=attempt))
        stage.deliver()
        answer = last(stage)
    assert answer == RowWritten(request=asked.request)


@drawn_anew
def test_a_write_that_was_read_and_overwritten_has_no_effect_when_it_is_repeated() -> None:
    """The read mends only the column that it asks for, so the other one has no trace."""
    stage = NodeStage()
    first = write_columns(1, b"x", 5, b"ab")
    stage.ask(1, first)
    stage.lose(2, 3)
    stage.wait(6)
    assert last(stage) == Failed(request=1, why="unknown")
    stage.ask(1, read(2))
    stage.deliver(1, 2)
    stage.messages.clear()
    assert found(stage) == b"x"
    stage.ask(2, write_columns(3, b"over it", 10, b"ab"))
    stage.deliver(2, 3)
    stage.messages.clear()
    assert last(stage) == RowWritten(request=3)
    stage.ask(3, repeated(4, first))
    stage.deliver()
    go_on_as_a_handle_does(stage, 3, msgspec.structs.replace(first, request=4))
    stage.ask(3, read(5))
    stage.deliver()
    assert found(stage) == b"over it"


@drawn_anew
def test_a_write_that_was_read_and_overwritten_while_it_was_under_way_has_no_effect_later() -> None:
    """No fault is needed: two replicas hear of another column first, which outruns it there."""
    stage = NodeStage()
    first = write(1, b"x", 5)
    stage.ask(1, first)
    slow, stage.messages = stage.messages, []
    stage.ask(2, write_columns(2, b"beside it", 6, b"b"))
    stage.deliver(2, 3)
    stage.messages.clear()
    assert last(stage) == RowWritten(request=2)
    stage.ask(1, read(3))
    stage.deliver(1, 2)
    stage.messages.clear()
    assert found(stage) == b"x"
    stage.ask(2, write(4, b"over it", 7))
    stage.deliver(2, 3)
    stage.messages.clear()
    assert last(stage) == RowWritten(request=4)
    stage.messages = slow
    stage.deliver()
    go_on_as_a_handle_does(stage, 1, first)
    stage.ask(1, read(5))
    stage.deliver()
    assert found(stage) == b"over it"
