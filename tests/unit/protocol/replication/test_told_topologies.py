"""One node's word ends no other node and uses up no versions (R32)."""

import msgspec
import pytest

from tenure.protocol.replication.messages import AskTopology, NodeMessage, Outdated, TopologySaid
from tenure.protocol.replication.node_events import NodeTold, TopologyLearned
from tenure.protocol.topology.limits import LEAP
from tenure.protocol.topology.records import Removed, Topology
from tests.unit.protocol.replication.stage_of_nodes import NodeStage

HIGHEST = 1 << 62


class Told:
    """Node 1 of three is told topologies, and its messages to others are not delivered."""

    def __init__(self) -> None:
        self.stage = NodeStage()
        self.first = self.stage.topology

    def later(self, version: int, *removed: int) -> Topology:
        nodes = tuple(node for node in self.first.nodes if node.id not in removed)
        gone = tuple(Removed(node, f"n{node}") for node in removed)
        return msgspec.structs.replace(self.first, version=version, nodes=nodes, removed=gone)

    def tell(self, sender: int, topology: Topology, *, is_proven: bool = True) -> None:
        message = NodeMessage(
            cluster=self.first.cluster,
            id=self.first.id,
            sender=sender,
            receiver=1,
            version=topology.version,
            body=TopologySaid(ticket=7, topology=topology),
        )
        self.stage.nodes[1].post(NodeTold(message, is_proven))

    @property
    def version(self) -> int:
        return self.stage.nodes[1].machine.context.topology.version

    @property
    def asked(self) -> list[int]:
        asked = [each for each in self.stage.messages if isinstance(each.body, AskTopology)]
        return sorted(each.receiver for each in asked)


def test_a_proven_node_is_believed() -> None:
    told = Told()
    told.tell(2, told.later(2))
    assert (told.version, told.stage.doubts) == (2, [])


@pytest.mark.parametrize("body", [TopologySaid, Outdated])
def test_who_has_proven_nothing_is_not_believed(body: type[TopologySaid | Outdated]) -> None:
    told = Told()
    forged = told.later(2)
    message = NodeMessage(
        cluster=forged.cluster,
        id=forged.id,
        sender=2,
        receiver=1,
        version=2,
        body=body(ticket=7, topology=forged),
    )
    told.stage.nodes[1].post(NodeTold(message, is_proven=False))
    assert (told.version, told.stage.doubts) == (1, ["is not proven"])


def test_a_leap_counts_when_a_second_member_tells_the_same() -> None:
    told = Told()
    leap = told.later(HIGHEST)
    told.tell(2, leap)
    told.tell(2, leap)
    assert (told.version, told.asked) == (1, [3, 3])
    told.tell(3, leap)
    assert told.version == HIGHEST


def test_two_leaps_that_differ_do_not_count_nor_does_that_of_no_member() -> None:
    told = Told()
    told.tell(2, told.later(HIGHEST))
    told.tell(3, told.later(HIGHEST + 1))
    told.tell(9, told.later(HIGHEST))
    assert (told.version, told.stage.doubts) == (1, ["leaps"] * 3)
    told.tell(2, told.later(LEAP + 1))
    assert told.version == LEAP + 1


def test_a_manager_is_believed_whatever_it_tells() -> None:
    told = Told()
    told.tell(2, told.later(HIGHEST))
    told.stage.nodes[1].post(TopologyLearned(told.later(HIGHEST + 1, 1)))
    assert told.version == HIGHEST + 1


def test_that_it_was_removed_a_node_believes_only_of_a_manager() -> None:
    told = Told()
    for sender in (2, 3):
        told.tell(sender, told.later(2, 1))
    assert (told.version, told.stage.doubts) == (1, ["removes this node"] * 2)
    told.stage.nodes[1].post(TopologyLearned(told.later(2, 1)))
    assert told.version == 2
