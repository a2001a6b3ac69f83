"""Schedules of ordered writes: each takes effect once, above all that was there before (R4)."""

import msgspec

from tenure.base.ranges import WHOLE
from tenure.protocol.replication.messages import (
    Failed,
    NotWritten,
    RowWritten,
    VersionDrawn,
    WriteRow,
)
from tenure.protocol.replication.node_events import Convicted, TopologyLearned
from tenure.protocol.replication.operations import ApplyRow, PromiseHorizon
from tenure.protocol.replication.request.drawing import SLOTS, DrawnTimes, slot_of
from tenure.protocol.replication.row.admission import Attempt, Late, Outranked
from tenure.protocol.replication.row.limits import LAST_US
from tenure.protocol.topology.records import ReplicaRange
from tests.unit.protocol.replication.stage_of_nodes import EPOCH_US, NodeStage, topology_of
from tests.unit.protocol.replication.test_schedules import (
    adopt,
    draw,
    found,
    joint,
    last,
    read,
    write,
)

PROMISED = 50
"""The horizon that some nodes have promised."""


def drawn(stage: NodeStage, node: int, floor: int = 1) -> int:
    """Draw a version, and return its time behind the beginning of the stage."""
    stage.ask(node, draw(99, floor))
    stage.deliver()
    answer = last(stage)
    assert isinstance(answer, VersionDrawn), answer
    return answer.version.time - EPOCH_US


def test_an_insert_whose_clock_is_behind_is_neither_refused_nor_hidden() -> None:
    stage = NodeStage()
    stage.ask(1, write(1, b"b", 10_000))
    stage.deliver()
    a = drawn(stage, 2, floor=5)
    assert a > 10_000
    stage.ask(2, write(2, b"a", a))
    stage.deliver()
    assert last(stage) == RowWritten(request=2)
    stage.ask(3, read(3))
    stage.deliver()
    assert found(stage) == b"a"


def test_a_version_is_above_what_a_read_has_returned() -> None:
    stage = NodeStage()
    stage.ask(1, write(1, b"x", 10_000))
    stage.lose(2, 3)
    stage.ask(1, read(2))
    stage.deliver(1, 2)
    stage.lose(3)
    assert found(stage) == b"x"
    stage.nodes[3].post(Convicted((1,)))
    assert drawn(stage, 3) > 10_000


def test_a_version_is_above_what_the_new_list_has_in_the_joint_step() -> None:
    """And above what the old list has: writers of either are seen by those of the other."""
    for holders in ((1, 2), (3, 4)):
        stage = NodeStage(4)
        for holder in holders:
            stage.nodes[holder].store.run(step_of(write(1, b"x", 10_000)))
        later = joint(stage)
        for node in stage.nodes.values():
            node.post(TopologyLearned(later))
        assert drawn(stage, 1) > 10_000


def step_of(asked: WriteRow) -> ApplyRow:
    """The step of a replica that gets the write."""
    return ApplyRow(table=asked.table, key=asked.key, edits=asked.edits, attempt=asked.attempt)


def test_a_version_is_above_the_horizon_that_was_promised() -> None:
    stage = NodeStage()
    promise(stage, 1, 2)
    assert drawn(stage, 3) > PROMISED


def test_no_quorum_no_version() -> None:
    stage = NodeStage()
    stage.ask(1, draw(1, 1))
    stage.wait(6)
    assert last(stage) == Failed(request=1, why="unavailable")
    stage.lose(1, 2, 3)
    stage.nodes[1].post(Convicted((2, 3)))
    stage.ask(1, draw(2, 1))
    assert last(stage) == Failed(request=2, why="too few replicas")


def test_a_version_is_drawn_again_under_a_later_topology() -> None:
    stage = NodeStage(4)
    later = joint(stage)
    for node in (2, 3, 4):
        stage.nodes[node].post(TopologyLearned(later))
    assert drawn(stage, 1) > 0
    assert stage.nodes[1].machine.context.topology == later


def test_a_node_that_was_removed_meanwhile_draws_none() -> None:
    stage = NodeStage(4)
    stage.ask(1, draw(1, 1))
    nodes = stage.topology.nodes[1:]
    ranges = (ReplicaRange(b"", (2, 3, 4)),)
    later = msgspec.structs.replace(stage.topology, version=2, nodes=nodes, ranges=ranges)
    stage.nodes[1].post(TopologyLearned(later))
    stage.deliver()
    assert last(stage) == Failed(request=1, why="too few replicas")


def test_no_two_nodes_draw_one_time_and_no_node_draws_one_twice() -> None:
    topology = topology_of(5)
    times = {
        DrawnTimes().draw(b"k", 1_000, slot_of(node.id, each), LAST_US)
        for each in (topology, msgspec.structs.replace(topology, version=2))
        for node in topology.nodes
    }
    assert len(times) == 10
    one = DrawnTimes()
    assert len({one.draw(b"k", 1_000, 4, LAST_US) for _ in range(9)}) == 9
    more = one.draw(b"j", 7, 4, LAST_US), one.draw(b"k", 0, 4, LAST_US)
    assert all(time % SLOTS == 4 for time in more)


def test_replicas_of_an_earlier_release_are_asked_for_all_that_they_have() -> None:
    stage = NodeStage()
    stage.older = {2, 3}
    for node in (2, 3):
        stage.nodes[node].store.run(step_of(write(1, b"x", 10_000)))
    assert drawn(stage, 1) > 10_000


# --- what the client is told ---


def promise(stage: NodeStage, *nodes: int) -> None:
    """Have these nodes refuse what is not above a horizon."""
    for node in nodes:
        stage.nodes[node].store.run(PromiseHorizon(range=WHOLE, time=EPOCH_US + PROMISED))


def test_a_write_that_one_replica_has_and_two_refuse_is_unknown() -> None:
    stage = NodeStage()
    promise(stage, 2, 3)
    stage.ask(1, write(1, b"x", 10))
    stage.deliver()
    answer = last(stage)
    assert isinstance(answer, Failed), answer
    assert answer.why == "unknown"


def test_a_write_that_all_replicas_refuse_is_not_written() -> None:
    stage = NodeStage()
    promise(stage, 1, 2, 3)
    stage.ask(1, write(1, b"x", 10))
    stage.deliver()
    assert last(stage) == NotWritten(request=1, refused=Late(EPOCH_US + PROMISED))


def test_a_write_that_two_replicas_refuse_while_one_is_silent_is_unknown_at_the_end() -> None:
    stage = NodeStage()
    promise(stage, 1, 2)
    stage.ask(1, write(1, b"x", 10))
    stage.lose(3)
    stage.deliver()
    assert not [each for each in stage.answers if each.request == 1]
    stage.wait(6)
    assert last(stage) == Failed(request=1, why="unknown")


def test_a_write_that_was_sent_is_unknown_when_too_few_are_left_under_a_later_topology() -> None:
    stage = NodeStage(4)
    later = joint(stage)
    stage.nodes[2].post(TopologyLearned(later))
    stage.ask(1, write(1, b"x", 10))
    stage.lose(3, 4)
    stage.nodes[1].post(Convicted((2, 3, 4)))
    stage.deliver(1, 2)
    assert last(stage) == Failed(request=1, why="unknown")


def test_a_former_owner_is_told_that_a_later_one_may_find_its_write() -> None:
    stage = NodeStage()
    stage.ask(1, adopt(1, 1))
    stage.deliver()
    stage.ask(2, adopt(2, 2))
    stage.lose(1)
    stage.deliver(2, 3)
    stage.ask(1, write(3, b"x", 10, number=1))
    stage.deliver()
    answer = last(stage)
    assert answer == NotWritten(request=3, refused=Outranked(2, 1, is_partial=True))


# --- clients of an earlier release ---


def as_before(asked: WriteRow, kind: str) -> WriteRow:
    attempt = Attempt(asked.attempt.version, "first" if kind == "first" else "repeat")
    return msgspec.structs.replace(asked, attempt=attempt)


def test_a_client_of_an_earlier_release_is_told_to_draw_above_what_there_is() -> None:
    stage = NodeStage()
    stage.ask(1, write(1, b"x", 10))
    stage.deliver()
    stage.ask(2, as_before(write(2, b"y", 5), "first"))
    stage.deliver()
    assert last(stage) == NotWritten(request=2, refused=Late(EPOCH_US + 10))
    stage.ask(2, as_before(write(3, b"y", 11), "first"))
    stage.deliver()
    assert last(stage) == RowWritten(request=3)
    stage.ask(3, as_before(write(4, b"z", 7), "repeat"))
    stage.deliver()
    assert last(stage) == RowWritten(request=4)
    stage.ask(3, read(5))
    stage.deliver()
    assert found(stage) == b"y"
