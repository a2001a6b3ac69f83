"""Schedules of the joint step, of clocks that are apart, of rows by time, and of warming."""

import msgspec

from tenure.protocol.replication.messages import (
    NotWritten,
    PageFound,
    ReadPage,
    RowWritten,
    VersionDrawn,
    WriteRow,
)
from tenure.protocol.replication.node_events import Convicted, TopologyLearned
from tenure.protocol.replication.operations import PartsRead
from tenure.protocol.replication.row.admission import Ahead, Attempt
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.pages import CellPage, Slice
from tenure.protocol.replication.row.versions import Version
from tenure.protocol.topology.records import ReplicaRange, Topology
from tests.unit.protocol.replication.stage_of_nodes import EPOCH_US, NodeStage
from tests.unit.protocol.replication.test_schedules import draw, found, joint, last, read, write


def later_by_a_step(stage: NodeStage) -> Topology:
    """The same change, when it is done."""
    nodes = tuple(node for node in stage.topology.nodes if node.id != 1)
    ranges = (ReplicaRange(b"", (2, 3, 4)),)
    return msgspec.structs.replace(stage.topology, version=4, ranges=ranges, nodes=nodes)


def test_a_reader_in_the_joint_step_sees_what_was_written_in_the_new_list() -> None:
    """Schedule 6: the reader's node has not heard that the change is done."""
    stage = NodeStage(4)
    for node in stage.nodes.values():
        node.post(TopologyLearned(joint(stage)))
    for each in (3, 4):
        stage.nodes[each].post(TopologyLearned(later_by_a_step(stage)))
    stage.ask(4, write(1, b"x", 1))
    stage.lose(2)
    stage.deliver(3, 4)
    assert last(stage) == RowWritten(request=1)
    stage.messages.clear()
    stage.ask(2, read(2))
    stage.deliver()
    assert found(stage) == b"x"


def test_a_reader_in_the_new_list_sees_what_was_written_in_the_joint_step() -> None:
    """Schedule 6: the writer had a majority of each list."""
    stage = NodeStage(4)
    for node in stage.nodes.values():
        node.post(TopologyLearned(joint(stage)))
    stage.ask(1, write(1, b"x", 1))
    stage.lose(3)
    stage.deliver()
    assert last(stage) == RowWritten(request=1)
    stage.messages.clear()
    for each in (3, 4):
        stage.nodes[each].post(TopologyLearned(later_by_a_step(stage)))
    stage.nodes[3].post(Convicted((2,)))
    stage.ask(3, read(2))
    stage.deliver(3, 4)
    assert found(stage) == b"x"


def test_two_writers_whose_clocks_are_10_s_apart_write_in_turn_and_delete() -> None:
    """Schedule 7: the one that is behind draws above what the other has written."""
    stage = NodeStage()
    ahead = 10_000_000
    stage.ask(1, write(1, b"x", ahead))
    stage.deliver()
    for node, edit in ((2, Edit("names", None, b"a", b"y")), (3, Edit())):
        stage.ask(node, draw(2, 1))
        stage.deliver()
        drawn = last(stage)
        assert isinstance(drawn, VersionDrawn), drawn
        assert drawn.version.time > EPOCH_US + ahead
        attempt = Attempt(drawn.version)
        asked = WriteRow(request=3, table="plain", key=b"k", edits=(edit,), attempt=attempt)
        stage.ask(node, asked)
        stage.deliver()
        assert last(stage) == RowWritten(request=3)
        stage.ask(1, read(4))
        stage.deliver()
        assert found(stage) == (b"y" if edit.value else None)


def test_a_clock_a_year_ahead_is_refused_and_hinders_nobody() -> None:
    """Schedule 7."""
    stage = NodeStage()
    year = 365 * 86_400_000_000
    stage.ask(1, write(1, b"x", year))
    stage.deliver()
    answer = last(stage)
    assert isinstance(answer, NotWritten), answer
    assert isinstance(answer.refused, Ahead)
    stage.ask(2, write(2, b"y", 1))
    stage.deliver()
    assert last(stage) == RowWritten(request=2)


def test_a_column_that_was_rewritten_stands_once_in_the_order_of_time() -> None:
    """Schedule 10: a stale replica lists it at its former place."""
    stage = NodeStage()
    for request, (name, time) in enumerate([(b"a", 1), (b"b", 2), (b"a", 3)], 1):
        attempt = Attempt(Version(0, EPOCH_US + time))
        edits = (Edit("times", None, name, b"%d" % time),)
        asked = WriteRow(request=request, table="plain", key=b"k", edits=edits, attempt=attempt)
        stage.ask(1, asked)
        if request == 3:
            stage.lose(3)
        stage.deliver()
    stage.nodes[3].post(Convicted((2,)))
    for first in (10, 1):
        page = ReadPage(request=9, table="plain", key=b"k", family="times", part=Slice(first))
        stage.ask(3, page)
        stage.deliver(1, 3)
        answer = last(stage)
        assert isinstance(answer, PageFound), answer
        expected = [(b"a", b"3"), (b"b", b"2")][:first]
        assert [(cell.name, cell.value) for cell in answer.page.cells] == expected


def test_what_is_warmed_is_read_by_all_replicas_and_told_to_nobody() -> None:
    stage = NodeStage(4)
    stage.ask(4, write(1, b"x" * 1_000, 1))
    stage.deliver()
    before = len(stage.said)
    asked = ReadPage(
        request=2, table="plain", level="one", key=b"k", family="names", part=Slice(9), warms=True
    )
    stage.ask(4, asked)
    stage.deliver()
    assert last(stage) == PageFound(request=2, page=CellPage(()))
    said = [each.body for each in stage.said[before:]]
    told = [each for each in said if isinstance(each, PartsRead)]
    assert len(told) == 3
    assert all(each.parts == () for each in told)
    assert len({each.digest for each in told}) == 1


def test_a_replica_that_is_silent_keeps_nobody_from_warming() -> None:
    stage = NodeStage()
    stage.ask(
        1, ReadPage(request=1, table="plain", key=b"k", family="names", part=Slice(9), warms=True)
    )
    stage.lose(3)
    stage.deliver()
    assert stage.answers == []
    stage.wait(6)
    assert last(stage) == PageFound(request=1, page=CellPage(()))
