"""Schedules of writes that are repeated: which of them count, and which begin anew (R4)."""

import msgspec
import pytest

from tenure.protocol.replication.admission import Outrun
from tenure.protocol.replication.edits import Edit
from tenure.protocol.replication.messages import Failed, NotWritten, RowWritten, WriteRow
from tenure.protocol.replication.node_events import Convicted, TopologyLearned
from tenure.protocol.replication.versions import Version
from tests.unit.protocol.replication.stage_of_nodes import EPOCH_US, NodeStage
from tests.unit.protocol.replication.test_schedules import (
    adopt,
    found,
    joint,
    last,
    read,
    write,
)


def repeated(request: int, asked: WriteRow) -> WriteRow:
    """Return the same write once more."""
    again = msgspec.structs.replace(asked.attempt, kind="repeat")
    return msgspec.structs.replace(asked, request=request, attempt=again)


def clear(request: int, time: int, family: str | None) -> WriteRow:
    """Delete everything in the family, or in the row."""
    edits = (Edit(family, None, None, None),)
    return msgspec.structs.replace(write(request, b"", time), edits=edits)


def test_a_repeat_that_has_been_nowhere_begins_anew_above_what_was_there_before() -> None:
    stage = NodeStage()
    stage.ask(1, write(1, b"earlier", 10))
    stage.deliver()
    stage.ask(2, write(2, b"later", 5, first=False))
    stage.deliver()
    assert last(stage) == NotWritten(request=2, refused=Outrun(Version(0, EPOCH_US + 10)))


def test_a_repeat_is_not_known_by_the_time_of_another_writer() -> None:
    """Both have drawn the first time above the newest that they were told."""
    stage = NodeStage()
    for request, column, time in ((1, b"b", 5), (2, b"a", 6)):
        asked = msgspec.structs.replace(
            write(request, b"x", time), edits=(Edit("names", None, column, b"x"),)
        )
        stage.ask(2, asked)
        stage.deliver(2, 3)
        stage.lose(1)
        assert last(stage) == RowWritten(request=request)
    stage.ask(1, write(3, b"y", 5))
    stage.messages.clear()
    stage.wait(6)
    stage.messages.clear()
    assert last(stage) == Failed(request=3, why="unknown")
    stage.ask(1, write(4, b"y", 5, first=False))
    stage.deliver()
    assert last(stage) == NotWritten(request=4, refused=Outrun(Version(0, EPOCH_US + 6)))


def test_a_repeat_that_was_seen_and_overwritten_does_not_count_again() -> None:
    stage = NodeStage()
    stage.ask(1, write(1, b"x", 5))
    stage.lose(3)
    stage.deliver(1, 2)
    stage.ask(2, write(2, b"over it", 10))
    stage.deliver()
    stage.ask(3, write(3, b"x", 5, first=False))
    stage.deliver()
    assert last(stage) == RowWritten(request=3)
    stage.ask(3, read(4))
    stage.deliver()
    assert found(stage) == b"over it"


def test_a_repeat_that_only_a_mend_has_brought_to_a_quorum_does_not_count_again() -> None:
    stage = NodeStage()
    stage.ask(1, write(1, b"x", 5))
    stage.lose(2, 3)
    stage.ask(1, read(2))
    stage.deliver(1, 2)
    assert found(stage) == b"x"
    stage.lose(3)
    stage.ask(2, write(3, b"over it", 10))
    stage.deliver()
    stage.ask(3, write(4, b"x", 5, first=False))
    stage.deliver()
    assert last(stage) == RowWritten(request=4)
    stage.ask(3, read(5))
    stage.deliver()
    assert found(stage) == b"over it"


def test_a_repeat_of_which_mends_have_brought_a_part_does_not_count_where_the_rest_is_hidden() -> (
    None
):
    """Its other column lies below a write that was acknowledged before it began."""
    stage = NodeStage()
    stage.ask(2, write(1, b"earlier", 10))
    stage.deliver(2, 3)
    stage.lose(1)
    assert last(stage) == RowWritten(request=1)
    both = (Edit("names", None, b"a", b"x"), Edit("names", None, b"b", b"x"))
    first = msgspec.structs.replace(write(2, b"x", 5), edits=both)
    stage.ask(1, first)
    stage.lose(2, 3)
    stage.ask(1, msgspec.structs.replace(read(3), name=b"b"))
    stage.deliver()
    assert found(stage) == b"x"
    again = msgspec.structs.replace(first.attempt, kind="repeat")
    stage.ask(3, msgspec.structs.replace(first, request=4, attempt=again))
    stage.deliver()
    assert last(stage) == NotWritten(request=4, refused=Outrun(Version(0, EPOCH_US + 10)))


def test_a_repeat_that_a_hint_has_brought_does_not_count_below_what_was_there_before() -> None:
    stage = NodeStage()
    stage.ask(2, write(1, b"earlier", 10))
    stage.deliver(2, 3)
    stage.lose(1)
    assert last(stage) == RowWritten(request=1)
    first = write(2, b"x", 5)
    stage.ask(1, first)
    stage.lose(2, 3)
    stage.wait(6)
    assert last(stage) == Failed(request=2, why="unknown")
    stage.wait(11)
    stage.deliver()  # the hints
    stage.ask(3, repeated(3, first))
    stage.deliver()
    assert last(stage) == NotWritten(request=3, refused=Outrun(Version(0, EPOCH_US + 10)))


def test_a_repeat_that_a_hint_has_brought_and_that_was_written_over_changes_nothing() -> None:
    stage = NodeStage()
    first = write(1, b"x", 5)
    stage.ask(1, first)
    stage.lose(2, 3)
    stage.wait(6)
    stage.wait(11)
    stage.deliver()
    stage.ask(2, write(2, b"over it", 10))
    stage.deliver()
    stage.ask(3, repeated(3, first))
    stage.deliver()
    assert last(stage) == RowWritten(request=3)
    stage.ask(1, read(4))
    stage.deliver()
    assert found(stage) == b"over it"


@pytest.mark.parametrize("family", ["names", None])
def test_a_clear_that_a_mend_has_brought_does_not_count_where_it_clears_not_all(
    family: str | None,
) -> None:
    """A column that was there before it began is greater, because that writer's clock was ahead."""
    stage = NodeStage()
    stage.ask(2, write(1, b"earlier", 10))
    stage.deliver(2, 3)
    stage.lose(1)
    assert last(stage) == RowWritten(request=1)
    first = clear(2, 5, family)
    stage.ask(1, first)
    stage.lose(2, 3)
    stage.ask(1, read(3))
    stage.deliver()
    assert found(stage) == b"earlier"
    stage.ask(3, repeated(4, first))
    stage.deliver()
    assert last(stage) == NotWritten(request=4, refused=Outrun(Version(0, EPOCH_US + 10)))


@pytest.mark.parametrize("family", ["names", None])
def test_a_clear_that_a_mend_has_brought_and_that_was_written_over_changes_nothing(
    family: str | None,
) -> None:
    stage = NodeStage()
    stage.ask(1, write(1, b"cleared", 1))
    stage.deliver()
    first = clear(2, 5, family)
    stage.ask(1, first)
    stage.lose(2, 3)
    stage.ask(1, read(3))
    stage.deliver(1, 2)
    stage.lose(3)
    assert found(stage) is None
    stage.ask(2, write(4, b"over it", 10))
    stage.deliver()
    stage.ask(3, repeated(5, first))
    stage.deliver()
    assert last(stage) == RowWritten(request=5)
    stage.ask(1, read(6))
    stage.deliver()
    assert found(stage) == b"over it"


def test_an_owners_repeat_that_nobody_had_does_not_count_below_what_it_wrote_before() -> None:
    """Its clock was ahead, and was set right between the two writes."""
    stage = NodeStage()
    stage.ask(1, adopt(1, 1))
    stage.deliver()
    stage.ask(1, write(2, b"earlier", 10, number=1))
    stage.deliver()
    assert last(stage) == RowWritten(request=2)
    stage.nodes[2].post(Convicted((1, 3)))
    stage.ask(2, write(3, b"later", 5, number=1))
    assert last(stage) == Failed(request=3, why="too few replicas")
    stage.nodes[2].post(Convicted(()))
    stage.ask(2, write(4, b"later", 5, number=1, first=False))
    stage.deliver()
    assert last(stage) == NotWritten(request=4, refused=Outrun(Version(1, EPOCH_US + 10)))


def test_an_owners_repeat_that_was_seen_and_written_over_changes_nothing() -> None:
    stage = NodeStage()
    stage.ask(1, adopt(1, 1))
    stage.deliver()
    for request, value, time in ((2, b"earlier", 5), (3, b"later", 10)):
        stage.ask(1, write(request, value, time, number=1))
        stage.deliver()
    stage.ask(2, write(4, b"earlier", 5, number=1, first=False))
    stage.deliver()
    assert last(stage) == RowWritten(request=4)
    stage.ask(3, read(5, "owned"))
    stage.deliver()
    assert found(stage) == b"later"


def test_a_repeat_that_has_been_in_the_old_list_is_had_by_the_new_one() -> None:
    stage = NodeStage(4)
    stage.ask(1, write(1, b"x", 5))
    stage.deliver(1, 2)
    stage.messages.clear()
    stage.ask(1, write(2, b"over it", 10))
    stage.deliver()
    for node in stage.nodes.values():
        node.post(TopologyLearned(joint(stage)))
    stage.ask(4, write(3, b"at the new one", 11))
    stage.deliver()
    stage.ask(2, write(4, b"x", 5, first=False))
    stage.deliver()
    assert last(stage) == RowWritten(request=4)
