"""A handle asks replicas that have answered it, and forgets nodes that have left."""

import msgspec

from tenure.columns.backends.known_nodes import PROBE_SECONDS, KnownNodes
from tenure.protocol.topology.records import Node, Placement, ReplicaRange, Topology
from tenure.protocol.topology.ring import position
from tests.unit.protocol.replication.stage_of_nodes import TABLES

GIVEN = ("http://n1", "http://n2")


def topology_of(*numbers: int, version: int = 1, replicas: int = 2) -> Topology:
    """Nodes n1 and so on; the first few have everything."""
    nodes = tuple(
        Node(
            id=i,
            name=f"n{i}",
            address=f"http://n{i}",
            token=b"%d" % i,
            datacentre="west" if i % 2 else "east",
        )
        for i in sorted(numbers)
    )
    return Topology(
        cluster="store",
        id=99,
        version=version,
        placement=Placement(replicas=replicas),
        first_nodes=1,
        nodes=nodes,
        ranges=(ReplicaRange(b"", numbers[:replicas]),),
        tables=dict(TABLES),
    )


def in_one_centre(topology: Topology) -> Topology:
    nodes = tuple(msgspec.structs.replace(node, datacentre="") for node in topology.nodes)
    return msgspec.structs.replace(topology, nodes=nodes)


def knowing(topology: Topology, *answered: str, home: str = "http://n1") -> KnownNodes:
    known = KnownNodes((home,))
    for node in (home, *answered):
        known.on_answer(node)
    known.learn((), topology)
    return known


def asked(known: KnownNodes) -> str:
    return known.choose(known.replicas("plain", b"ann"))


def test_a_replica_that_has_answered_is_asked_and_always_the_same() -> None:
    topology = in_one_centre(topology_of(2, 3, 1))
    found = set()
    for _ in range(50):
        known = knowing(topology, "http://n2", "http://n3")
        found.add(asked(known))
        assert len({asked(known) for _ in range(5)}) == 1
    assert found == {"http://n2", "http://n3"}


def test_a_replica_that_has_not_answered_is_probed_and_not_asked() -> None:
    known = knowing(in_one_centre(topology_of(2, 1, replicas=1)))
    replicas = known.replicas("plain", b"ann")
    assert replicas == ["http://n2"]
    assert known.choose(replicas) == "http://n1"
    assert known.to_probe(replicas, 7.0) == "http://n2"
    assert known.to_probe(replicas, 7.0 + PROBE_SECONDS / 2) is None
    assert known.to_probe(replicas, 7.0 + PROBE_SECONDS) == "http://n2"
    known.on_answer("http://n2")
    assert known.choose(replicas) == "http://n2"
    assert known.to_probe(replicas, 99.0) is None


def test_a_replica_in_another_data_centre_is_not_preferred() -> None:
    known = knowing(topology_of(2, 3, 1), "http://n2", "http://n3")
    assert known.replicas("plain", b"ann") == ["http://n3"]
    elsewhere = knowing(topology_of(2, 3, 1), "http://n2", home="http://behind-a-proxy")
    assert asked(elsewhere) == "http://behind-a-proxy"


def test_a_node_that_was_lost_is_not_asked_while_another_answers() -> None:
    known = knowing(in_one_centre(topology_of(1, 2)), "http://n2")
    known.on_lost("http://n1", "it is gone")
    assert asked(known) == "http://n2"
    known.on_lost("http://n2", "it is gone")
    assert known.all_are_lost
    assert not known.is_any_heard
    assert known.lost == {"http://n1": "it is gone", "http://n2": "it is gone"}
    known.on_answer("http://n1")
    assert asked(known) == "http://n1"
    assert known.lost == {"http://n2": "it is gone"}


def test_while_none_answers_all_are_tried_in_turn() -> None:
    known = KnownNodes(GIVEN)
    tried = []
    for _ in range(6):
        tried.append(known.choose(()))
        known.on_lost(tried[-1], "refused")
    assert tried[:2] == tried[2:4] == tried[4:]
    assert set(tried) == set(GIVEN)


def test_nodes_that_leave_are_forgotten_and_urls_of_nobody_are_kept() -> None:
    known = KnownNodes((*GIVEN, "http://balancer"))
    known.on_answer("http://n1")
    known.on_lost("http://n2", "refused")
    known.learn((), topology_of(1, 2))
    known.learn((), topology_of(3, 4, version=2))
    assert set(known.all) == {"http://n3", "http://n4", "http://balancer"}
    assert known.lost == {}
    assert not known.is_any_heard
    known.learn((), topology_of(1, 2))
    assert "http://n3" in known.all, "an older topology replaces none"


def test_a_node_of_a_release_that_tells_no_topology_tells_addresses() -> None:
    known = KnownNodes(("http://n1",))
    known.learn(("http://n5", "http://n6"), None)
    assert known.all == ("http://n1", "http://n5", "http://n6")
    known.learn((), topology_of(1, 2))
    known.learn(("http://n5",), None)
    assert "http://n5" not in known.all


def test_a_key_is_found_by_its_position() -> None:
    topology = in_one_centre(topology_of(1, 2, replicas=1))
    middle = position(b"m", TABLES["plain"].kind)
    ranges = (ReplicaRange(b"", (1,)), ReplicaRange(middle, (2,)))
    known = knowing(msgspec.structs.replace(topology, ranges=ranges), "http://n2")
    assert known.replicas("plain", b"m") == ["http://n2"]
    assert known.replicas("no such table", b"m") == []


def test_a_node_that_reaches_too_few_is_not_asked_until_it_answers_a_probe() -> None:
    known = knowing(in_one_centre(topology_of(1, 2)), "http://n2")
    first = asked(known)
    other = known.other_than([first])
    assert {first, other} == {"http://n1", "http://n2"}
    assert known.other_than([first, "http://n1", "http://n2"]) is None
    assert known.other_than([]) is None
    known.demote([first], 5.0)
    assert asked(known) == other
    replicas = known.replicas("plain", b"ann")
    assert known.to_probe(replicas, 5.0 + PROBE_SECONDS / 2) is None
    assert known.to_probe(replicas, 5.0 + PROBE_SECONDS) == first
    known.on_answer(first)
    assert asked(known) == first
