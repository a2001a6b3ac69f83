"""The checker of topologies is silent on what was decided, and finds what a node invents."""

import pytest
from msgspec.structs import replace

from lab.worlds.columns.processes import NodeProcess
from lab.worlds.columns.topologies import TopologyChecker
from lab.worlds.columns.trial import ColumnsTrial
from lab.worlds.columns.world import ColumnsWorld
from tenure.base.instants import SECOND_NS
from tenure.protocol.topology.history import TopologySet
from tenure.protocol.topology.records import Topology
from tenure.sim.kernel.checkers import Violation


@pytest.fixture
def world() -> ColumnsWorld:
    """Return a world in which nothing has gone wrong."""
    made = ColumnsWorld(ColumnsTrial(seed=1, faults=()))
    made.start_all()
    made.run_until(20 * SECOND_NS)
    return made


def a_node(world: ColumnsWorld) -> NodeProcess:
    return world.nodes()[0]


def decided(world: ColumnsWorld, version: int) -> Topology:
    """Let the managers decide what they have decided already, under a later version."""
    topology = replace(world.topology, version=version)
    world.journal.append(TopologySet(topology))
    return topology


def act_by(checker: TopologyChecker, node: NodeProcess, topology: Topology) -> None:
    node.machine.context.topology = topology
    checker.on_step(node)


def test_topologies_that_were_decided_are_acted_by_in_order(world: ColumnsWorld) -> None:
    checker, node = TopologyChecker(world.journal), a_node(world)
    first = world.topology
    act_by(checker, node, first)
    act_by(checker, node, decided(world, first.version + 1))
    assert not checker.counts


def test_a_topology_that_nobody_decided_is_found(world: ColumnsWorld) -> None:
    checker, node = TopologyChecker(world.journal), a_node(world)
    invented = replace(world.topology, version=world.topology.version + 1)
    with pytest.raises(Violation, match="nobody decided"):
        act_by(checker, node, invented)


def test_an_earlier_topology_after_a_later_one_is_found(world: ColumnsWorld) -> None:
    checker, node = TopologyChecker(world.journal), a_node(world)
    first = world.topology
    act_by(checker, node, decided(world, first.version + 1))
    with pytest.raises(Violation, match="earlier topology"):
        act_by(checker, node, first)
