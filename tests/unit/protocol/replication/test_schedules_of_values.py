"""Schedules that clients saw go wrong, judged by the values that they wrote and read (D2, D3).

No version tells that these are wrong: each answer has a version above the one before. At commit
29d9f0eb, where a write that was outrun was drawn anew, both fail. There, the simulator finds the
first with the seeds 58 and 67 of the store, and the second with seed 15, of an hour each.
"""

import msgspec

from tenure.protocol.replication.messages import Failed, RowWritten, WriteRow
from tenure.protocol.replication.row.edits import Edit
from tests.unit.protocol.replication.stage_of_nodes import NodeStage
from tests.unit.protocol.replication.test_schedules import found, last, read, write


def write_columns(request: int, value: bytes, time: int, columns: bytes) -> WriteRow:
    """One write of several columns, each named by a letter."""
    edits = tuple(Edit("names", None, bytes((name,)), value) for name in columns)
    return msgspec.structs.replace(write(request, value, time), edits=edits)


def test_a_write_that_was_read_and_overwritten_has_no_effect_when_it_is_repeated() -> None:
    """The read mends only the column that it asks for, so a quorum lacks the other."""
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
    stage.ask(3, msgspec.structs.replace(first, request=4))
    stage.deliver()
    assert last(stage) == RowWritten(request=4)
    stage.ask(3, read(5))
    stage.deliver()
    assert found(stage) == b"over it"


def test_a_write_that_was_read_and_overwritten_while_it_was_under_way_has_no_effect_later() -> None:
    """No fault is needed: two replicas hear of another column first, and have a newer version."""
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
    assert last(stage) == RowWritten(request=1)
    stage.ask(1, read(5))
    stage.deliver()
    assert found(stage) == b"over it"
