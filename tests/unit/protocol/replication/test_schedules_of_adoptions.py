"""Schedules of adoptions: former owners, late states, and tries that overtake each other (D6)."""

from tenure.protocol.replication import messages as m
from tenure.protocol.replication import operations
from tenure.protocol.replication.node_events import Convicted, NodeTold
from tenure.protocol.replication.operations import ApplyRow, RowApplied
from tenure.protocol.replication.row.admission import Attempt
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.versions import Version
from tests.unit.protocol.replication.stage_of_nodes import EPOCH_US, NodeStage
from tests.unit.protocol.replication.test_filling import JOINS, Filled, filling, joint
from tests.unit.protocol.replication.test_schedules import adopt, found, last, read, write
from tests.unit.protocol.replication.test_schedules_of_seals import seal_and_purge


def written_at(stage: NodeStage, node: int, value: bytes, number: int = 1) -> bool:
    """Whether one replica takes what an owner writes."""
    attempt = Attempt(Version(number, EPOCH_US + 1), journal=1)
    edits = (Edit("names", None, b"a", value),)
    result, _ = stage.nodes[node].store.run(
        ApplyRow(table="owned", key=b"k", edits=edits, attempt=attempt)
    )
    assert isinstance(result, RowApplied)
    stage.nodes[node].sync()
    return result.refused is None


def read_without(stage: NodeStage, away: int, request: int, coordinator: int = 4) -> bytes | None:
    """Return what a quorum of the other two shows."""
    stage.nodes[coordinator].post(Convicted((away,)))
    stage.ask(coordinator, read(request, "owned"))
    stage.deliver()
    if not isinstance(last(stage), m.PageFound):  # a mend waits for the node that is away
        stage.wait(1)
        stage.deliver()
    stage.nodes[coordinator].post(Convicted(()))
    return found(stage)


def test_a_former_owners_hints_are_refused() -> None:
    """Schedule 1: they reach a quorum that has promised the row to another owner."""
    stage = NodeStage()
    stage.ask(1, adopt(1, 1))
    stage.deliver()
    stage.ask(1, write(2, b"late", 9, number=1))
    stage.lose(2, 3)
    stage.wait(6)
    assert last(stage) == m.Failed(request=2, why="unknown")
    stage.messages.clear()
    stage.nodes[2].post(Convicted((1,)))
    stage.ask(2, adopt(3, 2))
    stage.deliver(2, 3)
    stage.wait(1)
    stage.deliver(2, 3)
    assert last(stage) == m.Adopted(request=3)
    stage.messages.clear()
    stage.wait(11)
    assert any(isinstance(each.body, operations.ApplyRow) for each in stage.messages)
    stage.deliver()
    stage.ask(2, read(4, "owned"))
    stage.deliver(2, 3)
    assert found(stage) is None


def test_a_fence_survives_a_power_failure() -> None:
    stage = NodeStage()
    for node in (2, 3):
        stage.nodes[node].is_quick = False
    stage.ask(1, adopt(1, 2))
    stage.deliver()
    is_adopted = m.Adopted(request=1) in stage.answers
    for node in (2, 3):
        stage.nodes[node].engine.crash()
        stage.nodes[node].start(stage.topology)
    takes = [written_at(stage, node, b"late") for node in (2, 3)]
    assert not (is_adopted and any(takes))


def test_a_former_owners_write_at_a_node_that_joins_is_not_seen() -> None:
    """Schedule 1: the node was filled before the adoption, and has promised nothing."""
    stage = Filled([])
    stage.learn(filling(stage.topology, 2))
    stage.run()
    stage.ask(1, adopt(1, 2))
    stage.deliver()
    assert last(stage) == m.Adopted(request=1)
    stage.learn(joint(stage.topology))
    stage.messages.clear()  # it has not caught up
    assert written_at(stage, JOINS, b"late")
    assert read_without(stage, 1, 2, coordinator=JOINS) is None


def test_the_first_trys_state_arrives_after_the_second_try() -> None:
    """Schedule 2: it does not have what the second try has found."""
    stage = NodeStage(4)
    assert written_at(stage, 3, b"kept")
    stage.ask(4, adopt(1, 2))
    stage.lose(3)
    stage.deliver(1, 2, 4)
    stage.wait(1)
    states = [each for each in stage.messages if isinstance(each.body, operations.MergeState)]
    assert {each.receiver for each in states} == {1, 2, 3}
    stage.messages.clear()
    stage.wait(6)
    stage.messages.clear()
    assert last(stage) == m.Failed(request=1, why="unavailable")
    assert read_without(stage, 2, 2) == read_without(stage, 1, 3) == b"kept"
    stage.ask(4, adopt(4, 2, attempt=2))
    stage.deliver()
    assert last(stage) == m.Adopted(request=4, newest=Version(1, EPOCH_US + 1))
    for each in states:
        if each.receiver != 2:
            stage.nodes[each.receiver].post(NodeTold(each))
    stage.deliver()
    assert read_without(stage, 2, 5) == b"kept"


def test_a_mend_from_before_an_adoption_brings_nothing_of_a_former_owner() -> None:
    stage = NodeStage(4)
    assert written_at(stage, 3, b"late")
    stage.nodes[4].post(Convicted((2,)))
    stage.ask(4, read(1, "owned"))
    mends = []
    while stage.messages:
        message = stage.messages.pop(0)
        if isinstance(message.body, operations.MergeState):
            mends.append(message)
        else:
            stage.nodes[message.receiver].post(NodeTold(message))
    assert [each.receiver for each in mends] == [1]
    stage.nodes[4].post(Convicted(()))
    stage.ask(4, adopt(2, 2))
    stage.lose(3)
    stage.deliver(1, 2, 4)
    stage.wait(1)
    stage.lose(3)
    stage.deliver(1, 2, 4)
    assert last(stage) == m.Adopted(request=2)
    stage.nodes[1].post(NodeTold(mends[0]))
    stage.deliver(1, 2)
    stage.messages.clear()
    assert read_without(stage, 3, 3) is None


def test_of_two_owners_that_adopt_at_once_the_later_one_has_the_row() -> None:
    """Schedule 2: their promises cross."""
    stage = NodeStage()
    stage.ask(1, adopt(1, 1))
    stage.ask(2, adopt(2, 2))
    stage.deliver()
    stage.wait(1)
    stage.deliver()
    assert m.Adopted(request=2) in stage.answers
    stage.ask(1, write(3, b"former", 1, number=1))
    stage.deliver()
    assert isinstance(last(stage), m.NotWritten)
    stage.ask(3, write(4, b"kept", 2, number=2))
    stage.deliver()
    assert last(stage) == m.RowWritten(request=4)
    stage.ask(1, read(5, "owned"))
    stage.deliver()
    assert found(stage) == b"kept"


def test_tries_of_a_former_owner_are_not_counted_as_those_of_its_successor() -> None:
    """A replica gets the successor's fence by a mend; its own tries under it come later."""
    stage = NodeStage()
    for request, attempt in enumerate((1, 50), start=1):
        stage.ask(1, adopt(request, 1, attempt))
        stage.deliver()
    assert last(stage) == m.Adopted(request=2)
    stage.ask(1, adopt(3, 2))
    stage.lose(3)
    stage.deliver(1, 2)
    stage.wait(1)
    stage.deliver()
    assert last(stage) == m.Adopted(request=3)
    stage.ask(2, adopt(4, 2, attempt=2))
    stage.deliver()
    stage.wait(1)
    stage.deliver()
    assert last(stage) == m.Adopted(request=4)


def test_an_adoption_after_a_seal_keeps_what_was_acknowledged_below_it() -> None:
    """Schedule 2: one replica has not heard of the seal."""
    stage = NodeStage()
    stage.ask(1, adopt(1, 1))
    stage.deliver()
    stage.ask(1, write(2, b"kept", 1, number=1))
    stage.lose(3)
    stage.deliver()
    assert last(stage) == m.RowWritten(request=2)
    stage.messages.clear()
    seal_and_purge(stage, 2)
    stage.nodes[2].post(Convicted((1,)))
    stage.ask(2, adopt(3, 2))
    stage.deliver(2, 3)
    stage.wait(1)
    stage.deliver(2, 3)
    assert last(stage) == m.Adopted(request=3, newest=Version(1, EPOCH_US + 1))
    stage.nodes[3].post(Convicted((1,)))
    stage.ask(3, read(4, "owned"))
    stage.deliver(2, 3)
    assert found(stage) == b"kept"
