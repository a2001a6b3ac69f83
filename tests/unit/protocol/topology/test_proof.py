"""Who speaks for a node to a manager: the node itself, by its secret, and nobody else."""

from msgspec.structs import replace

from tenure.protocol.topology.messages import NodeRequest
from tenure.protocol.topology.proof import mark_of
from tests.unit.protocol.topology.world import CLUSTER, SimulatedNode, World

HIGHEST = (1 << 62) - 1
ANOTHER = b"another secret"


def formed() -> tuple[World, SimulatedNode]:
    world = World(6)
    world.settle(2)
    return world, world.nodes[1]


def lie(world: World, request: NodeRequest) -> None:
    world.leader.on_request(world.now, world.nodes[2].node.id, request)
    world.desk.commit()


def test_a_life_and_a_counter_that_a_stranger_makes_up_turn_no_node_away() -> None:
    world, node = formed()
    honest = node.request()
    for proof in (b"", ANOTHER):
        lie(world, replace(honest, life=HIGHEST, counter=HIGHEST, sequence=9, proof=proof))
        world.say(node)
        assert node.refused == ""
    assert sum("without its secret" in each for each in world.story) == 1  # and no flood of lines


def test_a_stranger_gives_a_node_no_other_address_and_no_progress() -> None:
    world, node = formed()
    before = world.topology
    elsewhere = replace(node.node, address="http://evil:1")
    lie(world, replace(node.request(), node=elsewhere, version=HIGHEST, proof=ANOTHER))
    assert world.topology == before
    assert world.leader.led[CLUSTER].trouble == ""


def test_the_next_manager_knows_the_secrets_too() -> None:
    world, node = formed()
    world.take_over()
    lie(world, replace(node.request(), life=HIGHEST, proof=b""))
    world.say(node)
    assert node.refused == ""


def test_a_node_of_a_release_without_secrets_is_believed_until_it_has_shown_one() -> None:
    world = World(6)
    proofs = {number: node.proof for number, node in world.nodes.items()}
    for node in world.nodes.values():
        node.proof = b""
    world.settle(2)
    node = world.add_node()
    proofs[node.node.id], node.proof = node.proof, b""
    node.start()
    world.say(node)
    assert node.refused == ""
    node.proof = proofs[node.node.id]
    node.start()
    world.say(node)
    known = {each.id: each.mark for each in (*world.topology.nodes, *world.topology.waiting)}
    assert known[node.node.id] == mark_of(node.proof)


def test_who_went_back_to_a_release_without_secrets_still_hears_the_topology() -> None:
    world, node = formed()
    node.proof = b""
    node.start()
    world.add_node()  # so that there is something new to hear
    world.say(node)
    assert node.refused == ""
    assert node.version == world.topology.version
