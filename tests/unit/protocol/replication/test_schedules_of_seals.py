"""Schedules of seals: what a delete hid stays hidden, whatever is late, slow or away (R23 to R25).

Names such as "schedule 4" are those of the list that the store was designed with.
"""

from collections.abc import Callable

import msgspec

from tenure.base.ranges import WHOLE
from tenure.protocol.replication import messages as m
from tenure.protocol.replication import operations
from tenure.protocol.replication.node_events import Convicted, NodeTold, TopologyLearned
from tenure.protocol.replication.operations import (
    ApplyRow,
    MergeState,
    ReadState,
    RowApplied,
    SealHorizon,
    StateRead,
)
from tenure.protocol.replication.row.admission import Attempt, Late
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.versions import Version
from tenure.protocol.replication.tasks import SweepSome, TaskDone
from tenure.protocol.topology.records import Removed, ReplicaRange
from tests.unit.protocol.replication.stage_of_nodes import EPOCH_US, NodeStage, StagedNode
from tests.unit.protocol.replication.test_filling import JOINS, Filled, filling
from tests.unit.protocol.replication.test_schedules import adopt, found, read
from tests.unit.protocol.replication.test_upkeep import (
    ROUND_SECONDS,
    bodies,
    entries,
    put,
    rounds,
    tell,
)


def applied(stage: NodeStage, node: int, key: bytes, time: int, value: bytes | None) -> RowApplied:
    """Return what one replica says of a write that comes late, as a hint does."""
    attempt = Attempt(Version(0, EPOCH_US + time), "merge")
    edits = (Edit("names", None, b"a", value),)
    result, _ = stage.nodes[node].store.run(
        ApplyRow(table="plain", key=key, edits=edits, attempt=attempt)
    )
    assert isinstance(result, RowApplied)
    return result


def held(stage: NodeStage, kind: type, until: Callable[[list[m.NodeMessage]], bool]) -> None:
    """Let time pass until this many messages of a kind are on their way, and bring none of them."""
    kept: list[m.NodeMessage] = []
    for _ in range(14 * 12):
        stage.wait(ROUND_SECONDS / 12)
        while stage.messages:
            message = stage.messages.pop(0)
            if isinstance(message.body, kind):
                kept.append(message)
            else:
                stage.nodes[message.receiver].post(NodeTold(message))
        if until(kept):
            stage.messages = kept
            return
    raise AssertionError(f"no {kind.__name__} was said")


def test_what_comes_between_the_comparison_and_the_seal_is_refused() -> None:
    """Schedule 5: below the seal nobody would tell the others of it."""
    stage = NodeStage()
    put(stage, (1, 2, 3), b"k", 2, None)
    held(stage, operations.SealHorizon, bool)
    late = applied(stage, 2, b"l", 1, b"late")
    stage.deliver()
    rounds(stage, 2)
    assert len({entries(node.store, b"l") for node in stage.nodes.values()}) == 1
    assert isinstance(late.refused, Late)


def test_a_promise_survives_a_power_failure() -> None:
    """Schedule 5: promise, crash, late delete, seal."""
    stage = NodeStage()
    node = stage.nodes[2]
    node.is_quick = False
    tell(stage, 1, 2, operations.PromiseHorizon(ticket=1, range=WHOLE, time=EPOCH_US + 3))
    is_promised = bool(bodies(stage.said, operations.HorizonPromised))
    node.engine.crash()
    node.start(stage.topology)
    is_refused = applied(stage, 2, b"k", 2, None).refused is not None
    assert is_refused >= is_promised


def test_a_tombstone_stays_until_all_have_it() -> None:
    stage = NodeStage()
    put(stage, (1, 2, 3), b"k", 1, b"x")
    put(stage, (1, 2), b"k", 2, None)
    for node in (1, 2, 3):
        tell(stage, 1, node, operations.PromiseHorizon(ticket=1, range=WHOLE, time=EPOCH_US + 2))
    rounds(stage, 2)
    assert len({entries(node.store, b"k") for node in stage.nodes.values()}) == 1


def test_a_hint_from_before_a_seal_is_dropped() -> None:
    stage = NodeStage()
    put(stage, (1, 2, 3), b"k", 2, None)
    rounds(stage, 12)
    assert not any(entries(node.store, b"k") for node in stage.nodes.values())
    assert isinstance(applied(stage, 3, b"k", 1, b"late").refused, Late)
    assert not entries(stage.nodes[3].store, b"k")


def seal_and_purge(stage: NodeStage, time: int) -> None:
    """Seal and purge at all replicas, at once."""
    for node in stage.nodes.values():
        node.store.run(SealHorizon(range=WHOLE, time=EPOCH_US + time))
        purge(node)


def purge(node: StagedNode) -> None:
    """Sweep what is sealed."""
    while True:
        result, _ = node.store.run(SweepSome())
        assert isinstance(result, TaskDone)
        if result.is_all:
            break
    node.sync()


def test_what_an_owner_with_a_slow_clock_deletes_does_not_come_back() -> None:
    """Its predecessor's clock was ahead. One replica sweeps the delete sooner than another. So the
    owner is told of the newest version when it adopts the row, and writes above that.
    """
    stage = NodeStage()

    def wrote(number: int, time: int, edit: Edit) -> m.ClientAnswer:
        attempt = Attempt(Version(number, EPOCH_US + time), journal=1)
        stage.ask(1, m.WriteRow(request=1, table="owned", key=b"k", edits=(edit,), attempt=attempt))
        stage.deliver()
        return stage.answers[-1]

    stage.ask(1, adopt(1, 1))
    stage.deliver()
    assert wrote(1, 9, Edit("names", None, b"a", b"x")) == m.RowWritten(request=1)
    stage.ask(2, adopt(2, 2))
    stage.deliver()
    adopted = stage.answers[-1]
    assert adopted == m.Adopted(request=2, newest=Version(1, EPOCH_US + 9))
    time = adopted.newest.time - EPOCH_US + 1
    assert wrote(2, time, Edit()) == m.RowWritten(request=1)
    for node in stage.nodes.values():
        node.store.run(SealHorizon(range=WHOLE, time=EPOCH_US + time))
    purge(stage.nodes[2])
    later, _ = stage.nodes[3].store.run(ReadState(table="owned", key=b"k"))
    assert isinstance(later, StateRead)
    stage.nodes[2].store.run(MergeState(table="owned", key=b"k", state=later.state))
    purge(stage.nodes[1])
    purge(stage.nodes[3])
    stage.ask(2, read(3, "owned"))
    stage.deliver()
    assert found(stage) is None


def test_a_read_that_spans_a_seal_does_not_bring_back_what_was_deleted() -> None:
    """Schedule 4: one replica has answered before the delete, and the other after the seal."""
    stage = NodeStage()
    put(stage, (1, 2, 3), b"k", 1, b"x")
    stage.nodes[1].post(Convicted((3,)))
    stage.ask(1, read(1))
    for node in (1, 2, 3):
        applied(stage, node, b"k", 2, None)
    seal_and_purge(stage, 2)
    assert not entries(stage.nodes[2].store, b"k")
    stage.deliver(1, 2)
    assert found(stage) is None
    assert not entries(stage.nodes[2].store, b"k")


def test_a_removed_replica_brings_nothing_back() -> None:
    """Schedule 3: a delete was sealed without it."""
    stage = NodeStage(4)
    put(stage, (1, 2, 3), b"k", 1, b"x")
    before, _ = stage.nodes[3].store.run(ReadState(table="plain", key=b"k"))
    assert isinstance(before, StateRead)
    without = msgspec.structs.replace(
        stage.topology,
        version=2,
        nodes=tuple(node for node in stage.topology.nodes if node.id != 3),
        removed=(Removed(3, "n3"),),
        ranges=(ReplicaRange(b"", (1, 2, 4)),),
    )
    for node in (1, 2, 4):
        stage.nodes[node].post(TopologyLearned(without))
        applied(stage, node, b"k", 2, None)
    seal_and_purge(stage, 2)
    said = operations.MergeState(ticket=1, table="plain", key=b"k", state=before.state)
    for version in (1, 2):
        context = stage.nodes[3].machine.context
        context.topology = msgspec.structs.replace(stage.topology, version=version)
        for node in (1, 2, 4):
            tell(stage, 3, node, said)
    stage.ask(1, read(1))
    stage.deliver()
    assert found(stage) is None


def test_while_a_node_fills_nothing_is_sealed() -> None:
    """It has promised nothing, and may be given what is deleted later."""
    stage = Filled([])
    for node in (1, 2, 3):
        applied(stage, node, b"k", 2, None)
    stage.learn(filling(stage.topology, 2))
    for _ in range(13 * 12):
        stage.wait(ROUND_SECONDS / 12)
        while stage.messages:
            stage.lose(JOINS)
            stage.deliver(1, 2, 3)
    assert not bodies(stage.said, operations.SealHorizon)


def test_a_seal_is_not_begun_under_one_topology_and_ended_under_another() -> None:
    stage = NodeStage()
    put(stage, (1, 2, 3), b"k", 2, None)
    held(stage, operations.HorizonPromised, lambda kept: len(kept) == 2)
    later = msgspec.structs.replace(stage.topology, version=2)
    for node in stage.nodes.values():
        node.post(TopologyLearned(later))
    stage.deliver()
    assert not bodies(stage.said, operations.SealHorizon)
    rounds(stage, 2)
    assert bodies(stage.said, operations.SealHorizon), "the next round seals it"
