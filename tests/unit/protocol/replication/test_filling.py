"""A node gains a range: it wipes, copies, continues after a break, and catches up (R15, R17)."""

from itertools import pairwise

import msgspec
import pytest

from tenure.base.ranges import WHOLE, KeyRange
from tenure.protocol.replication import operations
from tenure.protocol.replication.node_events import Convicted, NodeTold, TopologyLearned
from tenure.protocol.replication.operations import (
    ApplyRow,
    PromiseHorizon,
    ReadState,
    SealHorizon,
    StateRead,
)
from tenure.protocol.replication.row.admission import Attempt
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.versions import Version
from tenure.protocol.replication.tasks import TakePiece
from tenure.protocol.replication.upkeep.copying import split
from tenure.protocol.topology.change import take_back
from tenure.protocol.topology.records import ReplicaRange, RingChange, Topology
from tests.unit.protocol.replication.stage_of_nodes import EPOCH_US, NodeStage

ROWS = [b"row%d" % number for number in range(300)]
JOINS = 4


def filling(topology: Topology, began: int) -> Topology:
    """Node 4 is to have what node 3 has."""
    change = RingChange(kind="move", node=JOINS, token=b"x", began=began)
    ranges = (ReplicaRange(b"", (1, 2, 3), (1, 2, JOINS)),)
    return msgspec.structs.replace(topology, version=began, change=change, ranges=ranges)


def joint(topology: Topology) -> Topology:
    assert topology.change is not None
    version = topology.version + 1
    change = msgspec.structs.replace(topology.change, joint=version)
    return msgspec.structs.replace(topology, version=version, change=change)


class Filled(NodeStage):
    """Three nodes that have rows, and a fourth."""

    def __init__(self, rows: list[bytes] = ROWS) -> None:
        super().__init__(count=4)
        for row in rows:
            for node in (1, 2, 3):
                self.write(node, row, b"one")

    def write(self, node: int, row: bytes, value: bytes, time: int = 1) -> None:
        """Write at one replica, whatever the others do."""
        attempt = Attempt(Version(0, EPOCH_US + time))
        step = ApplyRow(
            table="plain", key=row, edits=(Edit("names", None, b"n", value),), attempt=attempt
        )
        self.nodes[node].store.run(step)

    def value(self, node: int, row: bytes) -> bytes | None:
        """Return what one replica has."""
        result, _ = self.nodes[node].store.run(ReadState(table="plain", key=row))
        assert isinstance(result, StateRead)
        return next((entry[17:] for _, _, entry in result.state.entries), None)

    def learn(self, topology: Topology, *nodes: int) -> None:
        """All act by it, or these."""
        self.topology = topology
        for node in nodes or tuple(self.nodes):
            self.nodes[node].post(TopologyLearned(topology))

    def run(self, seconds: int = 30) -> None:
        """Let all of it happen."""
        for _ in range(seconds * 2):
            self.deliver()
            self.wait(0.5)


def test_what_is_gained_is_copied_and_its_sums_agree() -> None:
    stage = Filled()
    stage.learn(filling(stage.topology, 2))
    stage.run()
    assert stage.nodes[JOINS].through == 2
    assert all(stage.value(JOINS, row) == b"one" for row in ROWS)
    theirs, mine = stage.nodes[1].store.sums("plain"), stage.nodes[JOINS].store.sums("plain")
    assert list(mine) == list(theirs)


def test_pieces_come_from_several_replicas() -> None:
    stage = Filled()
    stage.learn(filling(stage.topology, 2))
    stage.wait(0.01)
    asked = {
        each.receiver for each in stage.messages if isinstance(each.body, operations.ReadPiece)
    }
    assert len(asked) >= 2


def rounds_from(*sources: int) -> int:
    """How long a copy takes if each of these sends a piece in a round, and no other is up."""
    stage = Filled()
    joining = stage.nodes[JOINS]
    joining.post(Convicted(tuple({1, 2, 3} - {*sources})))
    stage.learn(filling(stage.topology, 2))
    for number in range(500):
        if joining.through == 2:
            return number
        for source in sources:
            asked = next((each for each in stage.messages if each.receiver == source), None)
            if asked is not None:
                stage.messages.remove(asked)
                stage.nodes[source].post(NodeTold(asked))
        stage.deliver(JOINS)
        stage.wait(0.01)
    raise AssertionError(f"nothing is copied from {sources}")


def test_a_copy_from_two_replicas_takes_half_as_long_and_from_three_still_less() -> None:
    one, two, three = rounds_from(1), rounds_from(1, 2), rounds_from(1, 2, 3)
    assert one > 20, one
    assert two <= 0.55 * one, (one, two)
    assert three <= 0.45 * one, (one, three)


def test_a_copy_that_was_killed_goes_on_with_what_was_under_way() -> None:
    stage = Filled()
    stage.learn(filling(stage.topology, 2))
    sent = 0

    def some_pieces(until: int) -> None:
        nonlocal sent
        while sent < until and stage.nodes[JOINS].through != 2:
            if not stage.messages:
                stage.wait(0.1)
                continue
            message = stage.messages.pop(0)
            sent += len(message.body.rows) if isinstance(message.body, operations.PieceRead) else 0
            stage.nodes[message.receiver].post(NodeTold(message))

    whole = Filled()
    whole.learn(filling(whole.topology, 2))
    whole.run()
    total = whole.nodes[JOINS].machine.filler.copied
    some_pieces(total // 2)
    stage.messages.clear()
    stage.nodes[JOINS].start(stage.topology)
    stage.nodes[JOINS].advance()
    some_pieces(10 * total)
    assert stage.nodes[JOINS].through == 2
    assert all(stage.value(JOINS, row) == b"one" for row in ROWS)
    lanes = 6  # pieces that may have been under way
    assert sent <= total + lanes * 1_300, (sent, total)
    assert list(stage.nodes[JOINS].store.sums("plain")) == list(stage.nodes[1].store.sums("plain"))


def test_what_a_node_had_of_what_it_gains_is_wiped() -> None:
    stage = Filled([b"kept"])
    stage.write(JOINS, b"gone", b"old")
    stage.learn(filling(stage.topology, 2))
    stage.run()
    assert stage.nodes[JOINS].through == 2
    assert stage.value(JOINS, b"gone") is None
    assert stage.value(JOINS, b"kept") == b"one"


def test_a_change_that_is_begun_anew_is_filled_anew() -> None:
    stage = Filled([b"kept"])
    stage.learn(filling(stage.topology, 2))
    stage.run()
    taken = take_back(stage.topology, 3)
    stage.learn(msgspec.structs.replace(taken, nodes=stage.topology.nodes, waiting=()))
    for node in (1, 2, 3):
        stage.write(node, b"kept", b"two", 2)
    stage.write(JOINS, b"gone", b"old")
    stage.learn(filling(stage.topology, 4))
    stage.run()
    assert stage.nodes[JOINS].through == 4
    assert (stage.value(JOINS, b"kept"), stage.value(JOINS, b"gone")) == (b"two", None)


def test_a_node_catches_up_with_what_a_majority_acknowledged() -> None:
    """A node that filled from a replica without a write must hear of that write from the others."""
    stage = Filled([b"kept"])
    stage.learn(filling(stage.topology, 2))
    stage.run()
    for node in (1, 2):
        stage.write(node, b"late", b"acknowledged", 3)
        stage.write(node, b"kept", b"acknowledged", 3)
    stage.learn(joint(stage.topology))
    stage.run()
    assert stage.nodes[JOINS].through == 3
    assert stage.value(JOINS, b"late") == stage.value(JOINS, b"kept") == b"acknowledged"


def test_a_node_is_not_through_before_a_majority_has_answered() -> None:
    stage = Filled([b"kept"])
    stage.learn(filling(stage.topology, 2))
    stage.run()
    stage.learn(joint(stage.topology))
    for _ in range(60):
        stage.deliver(1, JOINS)
        stage.lose(2, 3)
        stage.wait(0.5)
    assert stage.nodes[JOINS].through == 2
    for _ in range(60):
        stage.deliver(1, 2, JOINS)
        stage.lose(3)
        stage.wait(0.5)
    assert stage.nodes[JOINS].through == 3


def test_what_was_promised_and_sealed_is_taken_over() -> None:
    stage = Filled([b"kept"])
    for node in (1, 2, 3):
        stage.nodes[node].store.run(PromiseHorizon(range=WHOLE, time=7))
        stage.nodes[node].store.run(SealHorizon(range=WHOLE, time=5))
    stage.learn(filling(stage.topology, 2))
    stage.run()
    store = stage.nodes[JOINS].store
    assert (store.promised[b"any"], store.sealed[b"any"]) == (7, 5)


def test_a_disk_that_does_not_know_the_filling_is_never_through() -> None:
    stage = Filled([b"kept"])
    stage.learn(joint(filling(stage.topology, 2)))
    stage.run()
    assert stage.nodes[JOINS].through == 0


def test_promises_are_counted_on_the_disk() -> None:
    stage = Filled([])
    node = stage.nodes[1]
    node.store.run(PromiseHorizon(range=WHOLE, time=7))
    node.sync()
    node.store.run(PromiseHorizon(range=WHOLE, time=8))
    assert node.store.promises == 2
    node.engine.crash()
    node.start(stage.topology)
    assert node.store.promises == 1


@pytest.mark.parametrize(
    "whole",
    [WHOLE, KeyRange(b"a", b"b"), KeyRange(b"a", b"a\1"), KeyRange(b"x" * 20, b"x" * 20 + b"y")],
)
def test_parts_of_a_range_are_all_of_it(whole: KeyRange) -> None:
    parts = list(split(whole, 7))
    assert (parts[0].start, parts[-1].end) == (whole.start, whole.end)
    assert all(one.end == other.start for one, other in pairwise(parts))
    assert len(list(split(WHOLE, 7))) == 7


@pytest.mark.parametrize("begins", [b"user-000", b"https://example.org/users/"])
def test_positions_that_begin_alike_are_divided_too(begins: bytes) -> None:
    whole = KeyRange(begins + b"0000", begins + b"9999")
    parts = list(split(whole, 5))
    rows = [begins + b"%04d" % number for number in range(9_999)]
    counts = [sum(row in part for row in rows) for part in parts]
    assert len(parts) == 5
    assert min(counts) > 500, counts


def test_a_piece_is_tried_less_and_less_often_while_the_disk_is_full() -> None:
    stage = Filled()
    joining = stage.nodes[JOINS]
    stage.learn(filling(stage.topology, 2))
    joining.refuses = TakePiece
    stage.wait(0.01)
    stage.deliver()
    for _ in range(600):
        stage.wait(0.05)
    pieces = len([each for each in stage.said if isinstance(each.body, operations.PieceRead)])
    assert 30 * pieces <= joining.refused <= 40 * pieces, (joining.refused, pieces)
    joining.refuses = None
    stage.wait(1.0)
    stage.run()
    assert joining.through == 2


def test_a_piece_that_the_disk_refuses_is_written_soon_and_not_sent_again() -> None:
    stage = Filled()
    joining = stage.nodes[JOINS]
    stage.learn(filling(stage.topology, 2))
    joining.refuses = TakePiece
    stage.wait(0.01)
    stage.deliver()
    sent = [each for each in stage.said if isinstance(each.body, operations.PieceRead)]
    assert sent
    joining.refuses = None
    stage.wait(0.03)  # much less than after which a silent replica is given up
    taken = sum(part.bytes for part in joining.machine.context.filling.parts)
    assert taken == sum(
        len(each.body.rows) for each in sent if isinstance(each.body, operations.PieceRead)
    )
    stage.run()
    assert joining.through == 2
    asked = [each.body for each in stage.said if isinstance(each.body, operations.ReadPiece)]
    assert len({(each.range.start, each.mark) for each in asked}) == len(asked)
    assert all(stage.value(JOINS, row) == b"one" for row in ROWS)
