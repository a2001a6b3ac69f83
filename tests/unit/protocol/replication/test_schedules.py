"""Schedules of the store on several nodes: orders of events that chance finds late."""

import msgspec

from tenure.protocol.replication.messages import (
    Adopted,
    AdoptRow,
    ClientAnswer,
    DrawVersion,
    Failed,
    NotWritten,
    PageFound,
    ReadColumn,
    ReadPage,
    RowWritten,
    WriteRow,
)
from tenure.protocol.replication.node import PARKED_BYTES
from tenure.protocol.replication.node_events import Convicted, NodeTold, TopologyLearned
from tenure.protocol.replication.operations import MergeState
from tenure.protocol.replication.row.admission import Attempt, Outranked
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.pages import Slice
from tenure.protocol.replication.row.versions import Version
from tenure.protocol.topology.records import ReplicaRange, RingChange, Topology
from tests.unit.protocol.replication.stage_of_nodes import EPOCH_US, NodeStage


def draw(request: int, floor: int) -> DrawVersion:
    return DrawVersion(request=request, table="plain", key=b"k", floor=EPOCH_US + floor)


def write(request: int, value: bytes, time: int, *, number: int = 0) -> WriteRow:
    return WriteRow(
        request=request,
        table="owned" if number else "plain",
        key=b"k",
        edits=(Edit("names", None, b"a", value),),
        attempt=Attempt(Version(number, EPOCH_US + time), journal=min(number, 1)),
    )


def read(request: int, table: str = "plain") -> ReadColumn:
    return ReadColumn(request=request, table=table, key=b"k", family="names", name=b"a")


def adopt(request: int, number: int, attempt: int = 1) -> AdoptRow:
    return AdoptRow(
        request=request, table="owned", key=b"k", number=number, journal=1, attempt=attempt
    )


def last(stage: NodeStage) -> ClientAnswer:
    """Return the last answer that a client got."""
    return stage.answers[-1]


def found(stage: NodeStage) -> bytes | None:
    """Return what the last answer has in the column."""
    answer = last(stage)
    assert isinstance(answer, PageFound), answer
    return next((cell.value for cell in answer.page.cells), None)


def test_a_write_is_acknowledged_when_a_quorum_has_it() -> None:
    stage = NodeStage()
    stage.ask(1, write(1, b"x", 1))
    assert stage.answers == []
    stage.deliver(1, 2)
    assert stage.answers == [RowWritten(request=1)]
    stage.ask(3, read(2))
    stage.deliver()
    assert found(stage) == b"x"


def test_a_replica_says_nothing_that_is_not_durable() -> None:
    stage = NodeStage()
    for node in stage.nodes.values():
        node.is_quick = False
    stage.ask(1, write(1, b"x", 1))
    stage.deliver()
    stage.ask(3, read(2))
    stage.deliver()
    assert stage.answers == []
    for node in stage.nodes.values():
        node.sync()
    stage.deliver()
    assert RowWritten(request=1) in stage.answers
    assert [type(each) for each in stage.answers].count(PageFound) == 1


def test_with_too_few_replicas_nothing_is_sent() -> None:
    stage = NodeStage()
    stage.nodes[1].post(Convicted((2, 3)))
    stage.ask(1, write(1, b"x", 1))
    assert stage.answers == [Failed(request=1, why="too few replicas")]
    assert stage.messages == []


def test_what_is_too_much_at_once_is_refused_before_it_begins() -> None:
    stage = NodeStage()
    most = stage.nodes[1].machine.context.config.most_requests * 3 // 4
    for number in range(most + 1):
        stage.ask(1, write(number, b"x", number))
    assert stage.answers == [Failed(request=most, why="overloaded")]
    stage.deliver()
    assert len(stage.answers) == most + 1
    stage.ask(1, read(most + 1))
    stage.deliver()
    assert isinstance(last(stage), PageFound), "it takes requests again"


def test_whoever_asks_as_much_as_it_can_leaves_places_for_others() -> None:
    stage = NodeStage()
    for number in range(2_000):
        stage.ask(1, write(number, b"x", number), by="one")
    refused = len(stage.answers)
    stage.ask(1, write(3_000, b"y", 3_000), by="another")
    assert len(stage.answers) == refused, "it is not refused"
    stage.deliver()
    assert RowWritten(request=3_000) in stage.answers


def test_a_large_request_takes_several_places() -> None:
    """All that waits is kept in memory."""
    stage = NodeStage()
    for number in range(100):
        stage.ask(1, write(number, b"x", number), places=64)
    assert len(stage.answers) == 100 - 11
    assert stage.answers[0] == Failed(request=11, why="overloaded")
    stage.deliver()
    stage.ask(1, write(200, b"x", 200), places=64)
    stage.deliver()
    assert last(stage) == RowWritten(request=200), "all places were given back"


def test_past_its_deadline_a_write_is_unknown_and_a_hint_brings_it() -> None:
    stage = NodeStage()
    stage.ask(1, write(1, b"x", 1))
    stage.lose(2, 3)
    stage.wait(6)
    assert stage.answers == [Failed(request=1, why="unknown")]
    stage.wait(11)
    stage.deliver()
    stage.nodes[2].post(Convicted((1,)))
    stage.ask(2, read(2))
    stage.deliver(2, 3)
    assert found(stage) == b"x"


def test_a_read_waits_until_a_quorum_has_what_it_returns() -> None:
    """One replica has it, and the mends are lost: the next reader could see less."""
    stage = NodeStage()
    stage.ask(1, write(1, b"x", 1))
    stage.messages.clear()
    stage.wait(6)
    unknown = [Failed(request=1, why="unknown")]
    assert stage.answers == unknown
    stage.messages.clear()
    stage.ask(1, read(2))
    lost = 0
    while stage.messages:
        message = stage.messages.pop(0)
        if isinstance(message.body, MergeState):
            lost += 1
        else:
            stage.nodes[message.receiver].post(NodeTold(message))
    assert lost
    assert stage.answers == unknown


def test_a_former_owners_late_write_is_refused_and_not_seen() -> None:
    """Schedule 1: it reaches one replica that the adoption did not."""
    stage = NodeStage()
    stage.ask(1, adopt(1, 1))
    stage.deliver()
    assert stage.answers == [Adopted(request=1)]
    stage.ask(2, adopt(2, 2))
    stage.lose(3)
    stage.deliver(1, 2)
    stage.wait(1)
    stage.lose(3)
    stage.deliver(1, 2)
    assert last(stage) == Adopted(request=2)
    stage.ask(3, write(3, b"late", 9, number=1))
    stage.deliver()
    answer = last(stage)
    assert isinstance(answer, NotWritten), answer
    assert isinstance(answer.refused, Outranked)
    stage.ask(3, read(4, "owned"))
    stage.deliver()
    assert found(stage) is None


def test_a_former_owners_write_at_a_replica_that_was_not_reached_is_not_seen() -> None:
    """Schedule 1: the replica has promised nothing, and takes it."""
    stage = NodeStage()
    stage.ask(1, adopt(1, 1))
    stage.deliver()
    stage.ask(2, adopt(2, 2))
    stage.lose(3)
    stage.deliver(1, 2)
    stage.wait(1)
    stage.lose(3)
    stage.deliver(1, 2)
    assert last(stage) == Adopted(request=2)
    stage.ask(3, write(3, b"late", 9, number=1))
    stage.lose(1, 2)
    stage.wait(6)
    assert last(stage) == Failed(request=3, why="unknown")
    stage.ask(3, read(4, "owned"))
    stage.deliver()
    assert found(stage) is None


def test_an_adoption_keeps_what_a_former_owner_had_written() -> None:
    stage = NodeStage()
    stage.ask(1, adopt(1, 1))
    stage.deliver()
    stage.ask(1, write(2, b"kept", 1, number=1))
    stage.lose(3)
    stage.deliver(1, 2)
    assert last(stage) == RowWritten(request=2)
    stage.ask(2, adopt(3, 2))
    stage.lose(1)
    stage.deliver(2, 3)
    stage.wait(1)
    stage.deliver(2, 3)
    assert last(stage) == Adopted(request=3, newest=Version(1, EPOCH_US + 1))
    stage.nodes[3].post(Convicted((1,)))
    stage.ask(3, read(4, "owned"))
    stage.deliver(2, 3)
    assert found(stage) == b"kept"


def test_one_try_at_an_adoption_that_comes_twice_counts_once() -> None:
    """The second would find, and settle, what a former owner wrote after the first."""
    stage = NodeStage()
    for request in (1, 2):
        stage.ask(request, adopt(request, 3))
        stage.deliver()
    assert stage.answers == [Adopted(request=1), Failed(request=2, why="unavailable")]


def test_a_write_without_answer_is_repeated_exactly() -> None:
    stage = NodeStage()
    for request in (1, 2):
        stage.ask(1, write(request, b"x", 1))
        stage.deliver()
    assert stage.answers == [RowWritten(request=1), RowWritten(request=2)]


def test_half_of_each_replicas_page_is_deleted() -> None:
    """Schedule 9: what a part does not reach may be deleted there."""
    stage = NodeStage()
    edits = {name: Edit("names", None, name, b"x") for name in (b"a", b"b", b"c", b"d")}

    def mutate(node: int, time: int, *parts: Edit) -> None:
        attempt = Attempt(Version(0, EPOCH_US + time))
        asked = WriteRow(request=time, table="plain", key=b"k", edits=parts, attempt=attempt)
        stage.ask(node, asked)

    mutate(1, 1, *edits.values())
    stage.deliver()
    mutate(1, 2, Edit("names", None, b"a"), Edit("names", None, b"b"))
    stage.lose(2, 3)
    mutate(2, 3, Edit("names", None, b"c"))
    stage.lose(1)
    stage.deliver()
    assert last(stage) == RowWritten(request=3)
    stage.ask(1, ReadPage(request=4, table="plain", key=b"k", family="names", part=Slice(2)))
    stage.deliver(1, 2)
    answer = last(stage)
    assert isinstance(answer, PageFound), answer
    assert [cell.name for cell in answer.page.cells] == [b"d"]
    assert answer.page.next is None


def newest_page(request: int) -> ReadPage:
    """All columns of the family in the order of time."""
    return ReadPage(request=request, table="plain", key=b"k", family="times", part=Slice(10))


def edit_by_time(request: int, value: bytes | None, time: int) -> WriteRow:
    attempt = Attempt(Version(0, EPOCH_US + time))
    edits = (Edit("times", None, b"a", value),)
    return WriteRow(request=request, table="plain", key=b"k", edits=edits, attempt=attempt)


def test_in_the_order_of_time_what_one_reader_saw_deleted_stays_so() -> None:
    """A replica that never had the column and one that has deleted it both list nothing."""
    stage = NodeStage()
    stage.ask(1, edit_by_time(1, b"x", 1))
    stage.lose(2)
    stage.deliver()
    assert last(stage) == RowWritten(request=1)
    stage.ask(1, edit_by_time(2, None, 2))  # reaches no other node, and is not acknowledged
    stage.lose(2, 3)
    stage.ask(1, newest_page(3))
    stage.deliver(1, 2)
    assert found(stage) is None
    stage.nodes[3].post(Convicted((1,)))
    stage.ask(3, newest_page(4))
    stage.deliver(2, 3)
    assert found(stage) is None, "it was deleted, and is there again"


def joint(stage: NodeStage) -> Topology:
    """Node 4 takes the place of node 1, and the change is in its joint step."""
    change = RingChange(kind="replace", node=4, replaces=1, token=b"0", began=2, joint=3)
    ranges = (ReplicaRange(b"", (1, 2, 3), (2, 3, 4)),)
    return msgspec.structs.replace(stage.topology, version=3, ranges=ranges, change=change)


def test_a_replica_with_a_later_topology_refuses_and_tells_it() -> None:
    stage = NodeStage(4)
    later = joint(stage)
    for node in (2, 3):
        stage.nodes[node].post(TopologyLearned(later))
    stage.ask(1, write(1, b"x", 1))
    stage.deliver()
    assert last(stage) == RowWritten(request=1)  # the same write, under the later topology
    assert stage.nodes[1].machine.context.topology == later


def test_a_replica_learns_a_later_topology_before_it_answers() -> None:
    stage = NodeStage(4)
    later = joint(stage)
    stage.nodes[1].post(TopologyLearned(later))
    stage.ask(1, write(1, b"x", 1))
    stage.deliver()
    assert last(stage) == RowWritten(request=1)
    assert all(node.machine.context.topology == later for node in stage.nodes.values())


def test_in_the_joint_step_a_write_needs_both_lists() -> None:
    stage = NodeStage(4)
    for node in stage.nodes.values():
        node.post(TopologyLearned(joint(stage)))
    stage.ask(1, write(1, b"x", 1))
    stage.lose(3, 4)
    stage.deliver(1, 2)
    assert stage.answers == []  # a majority of the old list, and one of the new
    stage.wait(6)
    assert last(stage) == Failed(request=1, why="unknown")


def test_in_the_joint_step_a_read_needs_both_lists() -> None:
    stage = NodeStage(4)
    for node in stage.nodes.values():
        node.post(TopologyLearned(joint(stage)))
    stage.ask(1, read(1))
    stage.lose(3, 4)
    stage.deliver(1, 2)
    stage.wait(1)
    stage.lose(3, 4)
    stage.deliver(1, 2)
    assert stage.answers == []


def test_what_waits_for_a_topology_is_bounded_by_bytes() -> None:
    """A thousand messages of a node that is ahead may be gigabytes; their senders count silence."""
    stage = NodeStage()
    machine = stage.nodes[2].machine
    value = b"x" * (4 << 20)
    stage.ask(1, write(1, value, 1))
    said = next(each for each in stage.messages if each.receiver == 2)
    for _ in range(100):
        stage.nodes[2].post(NodeTold(msgspec.structs.replace(said, version=said.version + 1)))
    assert len(machine._parked) * len(value) <= PARKED_BYTES < 100 * len(value)
    later = msgspec.structs.replace(stage.topology, version=stage.topology.version + 1)
    stage.nodes[2].post(TopologyLearned(later))
    assert machine._parked == []
    assert machine._parked_bytes == 0
