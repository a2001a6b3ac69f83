"""A member whose disk has lost something comes back as another node, where others have its rows."""

import pytest
from msgspec.structs import replace

from tenure.protocol.topology.answers import RingRead
from tenure.protocol.topology.questions import ReadRing, TakeBackChange
from tenure.protocol.topology.records import Placement
from tests.unit.protocol.topology.world import CLUSTER, ROWS, SimulatedNode, World


def formed(nodes: int = 3, replicas: int = 3) -> World:
    world = World(8, nodes, Placement("rack_unaware", replicas))
    world.settle(2)
    for row in ROWS:
        world.value += 1
        assert world.nodes[1].write(row, world.value)
        world.acknowledged[row] = world.value
    return world


def members(world: World) -> list[SimulatedNode]:
    return [world.nodes[node.id] for node in world.topology.nodes]


def test_a_damaged_node_is_replaced_and_the_new_one_has_its_name_and_rows() -> None:
    world = formed()
    world.lose(world.nodes[2])
    world.settle(6)
    [removed] = world.topology.removed
    assert (removed.id, removed.name) == (2, "n2")
    assert sorted(node.name for node in world.topology.nodes) == ["n1", "n2", "n3"]
    world.nodes[1].is_up = False
    for row in ROWS:
        assert world.nodes[3].read(row) == world.acknowledged[row]


@pytest.mark.parametrize(("nodes", "replicas"), [(1, 1), (3, 1), (2, 2), (3, 2)])
def test_the_last_copy_stays_where_it_is(nodes: int, replicas: int) -> None:
    """With two replicas the other one may lack what only a quorum of both has."""
    world = formed(nodes, replicas)
    before = world.topology
    world.lose(world.nodes[1])
    world.settle(6)
    assert world.topology == before
    ring = world.ask(ReadRing(cluster=CLUSTER))
    assert isinstance(ring, RingRead)
    assert [node.damage for node in ring.nodes if node.name == "n1"] == [world.nodes[1].damage]


def test_of_two_damaged_nodes_with_a_range_in_common_none_leaves() -> None:
    world = formed()
    before = world.topology
    world.leader.on_lost(3)
    for number in (1, 2):
        world.nodes[number].damage = "a block cannot be read"
        world.say(world.nodes[number])
    world.settle(6)
    assert world.topology == before


def test_a_node_that_left_waits_while_another_one_is_down() -> None:
    """It was down and damaged before it could ask."""
    world = formed()
    world.lose(world.nodes[2])
    new = world.begin_anew(world.nodes[2])
    world.leader.on_lost(3)
    world.nodes[3].is_up = False
    world.say(new)
    assert [node.name for node in world.topology.waiting] == ["n2 anew"]
    assert world.topology.change is None
    ring = world.ask(ReadRing(cluster=CLUSTER))
    assert isinstance(ring, RingRead)
    assert [node.replaces for node in ring.nodes if node.standing == "waiting"] == ["n2"]
    world.nodes[3].start()
    world.settle(6)
    assert [node.name for node in world.topology.removed] == ["n2"]


def test_who_does_not_show_the_secret_takes_nobodys_place() -> None:
    world = formed()
    new = world.begin_anew(world.nodes[2])
    new.replaces = SimulatedNode(world, replace(world.nodes[2].node))
    new.replaces.proof = b"another secret"
    world.say(new)
    assert new.refused == "taken"
    assert world.topology.waiting == ()


def test_a_repair_that_an_operator_has_taken_back_is_not_begun_again() -> None:
    world = formed()
    world.lose(world.nodes[2])
    world.say(world.nodes[1])
    world.say(world.nodes[3])
    world.say(world.nodes[2])
    world.say(world.nodes[4])
    assert world.topology.change is not None
    world.ask(TakeBackChange(cluster=CLUSTER))
    world.settle(6)
    assert [node.name for node in world.topology.waiting] == ["n2 anew"]


@pytest.mark.parametrize("seed", range(40))
def test_nothing_acknowledged_is_lost_where_disks_lose_something(seed: int) -> None:
    """One after the other: a second disk loses something when the first node is well again."""
    world = World(seed, nodes=5, placement=Placement("rack_unaware", 3))
    world.settle(2)
    for _ in range(3):
        world.lose(world.random.choice(members(world)))
        world.loss, world.interrupts, world.commits_late = 0.1, 0.05, True
        for _ in range(200):
            (world.step if world.random.random() < 0.5 else world.request)()
        world.settle()
        assert not any(node.damage for node in members(world))
    for row in ROWS:
        assert (members(world)[0].read(row) or 0) >= world.acknowledged[row]
