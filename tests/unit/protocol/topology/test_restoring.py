"""Topologies that nodes have told are enough only if no later one can have counted anywhere."""

from random import Random

from msgspec.structs import replace

from tenure.protocol.topology.change import WantedChange, begin, join
from tenure.protocol.topology.proof import mark_of
from tenure.protocol.topology.records import NodeId, Topology
from tenure.protocol.topology.restoring import Telling, latest, missing
from tenure.protocol.topology.weights import NOTHING_KNOWN
from tests.unit.protocol.topology.test_moves import ring_of

WEIGH = NOTHING_KNOWN.of_a_thousand


def tell(topology: Topology, *nodes: NodeId) -> list[Telling]:
    return [Telling(node, b"", topology) for node in nodes]


def test_a_majority_of_all_nodes_is_not_enough_where_a_list_has_none() -> None:
    topology = ring_of(5, Random(1))
    lists = [each.old for each in topology.each()]
    told = [node.id for node in topology.nodes if node.id not in lists[0][:2]]
    assert len(told) == 3
    assert "a majority must tell what it knows, because they share a range" in missing(
        topology, tell(topology, *told)
    )
    assert missing(topology, tell(topology, *told, lists[0][0])) == ""
    assert missing(topology, tell(topology, *told[:2])).startswith("2 of 5 nodes have told")


def test_while_a_change_is_joint_the_new_lists_must_tell_too() -> None:
    topology = ring_of(4, Random(2))
    waiting = replace(ring_of(5, Random(3)).nodes[4], id=9, name="n9")
    topology = replace(topology, waiting=(waiting,))
    added = WantedChange(kind="add", node=9, token=waiting.token)
    filling = begin(topology, added, 3, WEIGH)
    joint = join(filling, 4)
    changed = next(each for each in joint.each() if each.gaining)
    told = [node for node in changed.old if node not in changed.new] + [
        node for node in changed.new if node in changed.old
    ][:1]
    told += [node.id for node in topology.nodes if node.id not in (*changed.old, *changed.new)]
    assert len(told) == 3
    assert missing(joint, tell(joint, *told))
    assert missing(joint, tell(joint, *told, 9)) == ""


def test_the_latest_of_this_cluster_counts() -> None:
    topology = ring_of(3, Random(4))
    later, other = replace(topology, version=9), replace(topology, version=99, id=2)
    by = topology.nodes[0].id
    said = [*tell(other, by), *tell(later, by), *tell(topology, by)]
    assert latest(topology, said) is later
    assert latest(later, tell(topology, by)) is later
    unformed = replace(topology, nodes=(), ranges=(), waiting=topology.nodes)
    assert missing(unformed, tell(unformed, by)) != ""


def test_who_is_no_member_makes_up_no_topology() -> None:
    topology = ring_of(3, Random(4))
    strangers = tuple(replace(node, id=node.id + 100) for node in topology.nodes)
    forged = replace(topology, version=99, nodes=strangers, ranges=())
    said = [*tell(topology, 1, 2, 3), *tell(forged, *(node.id for node in strangers))]
    assert latest(topology, said) is topology
    assert missing(topology, said) == ""
    assert latest(replace(topology, nodes=(), ranges=()), said) is forged  # nothing is known


def test_members_are_believed_and_then_the_members_of_what_they_tell() -> None:
    old = ring_of(3, Random(4))
    secret = b"the secret of a node that the copy does not know"
    newer = replace(old.nodes[0], id=9, mark=mark_of(secret))
    later = replace(old, version=9, nodes=(*old.nodes, newer))
    latest_of_all = replace(later, version=10)
    for proof, found in ((secret, latest_of_all), (b"another one", later)):
        said = [*tell(later, 1), Telling(9, proof, latest_of_all)]
        assert latest(old, said) is found
    assert latest(old, [Telling(9, secret, latest_of_all)]) is old
