"""Topologies that nodes have told are enough only if no later one can have counted anywhere."""

from random import Random

from msgspec.structs import replace

from tenure.protocol.topology.change import WantedChange, begin, join
from tenure.protocol.topology.restoring import latest, missing
from tenure.protocol.topology.weights import NOTHING_KNOWN
from tests.unit.protocol.topology.test_moves import ring_of

WEIGH = NOTHING_KNOWN.of_a_thousand


def test_a_majority_of_all_nodes_is_not_enough_where_a_list_has_none() -> None:
    topology = ring_of(5, Random(1))
    lists = [each.old for each in topology.each()]
    told = [node.id for node in topology.nodes if node.id not in lists[0][:2]]
    assert len(told) == 3
    assert "a majority must tell what it knows, because they share a range" in missing(
        topology, told
    )
    assert missing(topology, [*told, lists[0][0]]) == ""
    assert missing(topology, told[:2]).startswith("2 of 5 nodes have told")


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
    assert missing(joint, told)
    assert missing(joint, [*told, 9]) == ""


def test_the_latest_of_this_cluster_counts() -> None:
    topology = ring_of(3, Random(4))
    later, other = replace(topology, version=9), replace(topology, version=99, id=2)
    assert latest(topology, [other, later, topology]) is later
    assert latest(later, [topology]) is later
    assert missing(replace(topology, nodes=(), ranges=(), waiting=topology.nodes), [1]) != ""
