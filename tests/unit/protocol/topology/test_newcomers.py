"""What a holder of a `node` token can cause with nodes that nobody has added (R34)."""

from collections.abc import Iterator

from msgspec.structs import replace

from tenure.base.instants import Instant
from tenure.protocol.topology.answers import ClusterRefused, ClustersListed, RingRead, RingSteered
from tenure.protocol.topology.doubts import LISTED, LISTED_NS
from tenure.protocol.topology.limits import LEAP, NODES
from tenure.protocol.topology.messages import NodeReport, NodeSeen
from tenure.protocol.topology.newcomers import RECORDS_AT_ONCE, SILENT_NS
from tenure.protocol.topology.proof import mark_of
from tenure.protocol.topology.questions import AddNode, CreateCluster, ListClusters, ReadRing
from tenure.protocol.topology.records import Node, Placement
from tests.unit.protocol.topology.world import CLUSTER, SimulatedNode, World

HIGHEST = (1 << 62) - 1


def formed() -> World:
    world = World(6)
    world.settle(2)
    return world


def stranger(world: World, node_id: int, **of_node: str) -> SimulatedNode:
    """A node that nobody expects; its `say` is heard with a token of its own."""
    node = Node(
        id=node_id,
        name=of_node.get("name", f"s{node_id}"),
        address=of_node.get("address", f"evil:{node_id}"),
        token=b"%d" % node_id,
    )
    made = world.nodes[node_id] = SimulatedNode(world, node)
    made.start()
    return made


def say(world: World, node: SimulatedNode, by: str = "", **changes: object) -> None:
    request = replace(node.request(), **changes)
    world.leader.on_request(world.now, node.node.id, request, by)
    world.leader.clusters.invariants()
    world.desk.commit()


def ring(world: World) -> RingRead:
    read = world.ask(ReadRing(cluster=CLUSTER))
    assert isinstance(read, RingRead)
    return read


def waiting(world: World) -> list[int]:
    return [node.id for node in world.topology.waiting]


def strangers(world: World, by: str, count: int, first: int = 1000) -> Iterator[SimulatedNode]:
    for number in range(first, first + count):
        made = stranger(world, number)
        say(world, made, by)
        yield made


# --- versions ---


def test_a_version_that_a_stranger_makes_up_stops_no_change() -> None:
    world = formed()
    say(world, stranger(world, 1000), version=HIGHEST)
    assert waiting(world) == []
    late = stranger(world, 1001)
    say(world, late)
    say(world, late, version=world.topology.version + 1)  # now it waits, and is still no member
    assert ring(world).trouble == ""
    added = world.ask(AddNode(cluster=CLUSTER, node=late.node.name))
    assert isinstance(added, RingSteered)
    [doubt] = ring(world).doubted
    assert "is not known here" in doubt
    assert f"version {HIGHEST}" in doubt


def test_a_member_that_has_a_later_version_still_stops_changes() -> None:
    world = formed()
    say(world, world.nodes[1], version=world.topology.version + 1)
    assert f"a node has version {world.topology.version + 1}" in ring(world).trouble


def test_one_member_that_leaps_is_not_believed_and_two_are() -> None:
    world = formed()
    far = world.topology.version + LEAP + 1
    say(world, world.nodes[1], version=far)
    assert ring(world).trouble == ""
    say(world, world.nodes[2], version=far + 1)
    assert f"a node has version {far} " in ring(world).trouble


def test_before_the_ring_is_formed_who_waits_shows_that_the_journal_is_an_old_copy() -> None:
    world = World(6)
    other = CreateCluster(cluster="other", id=6, placement=Placement(), first_nodes=3)
    world.ask(other)
    cluster = world.leader.led["other"]
    for number in (1, 2):
        say(world, world.nodes[number], cluster="other", cluster_id=0, version=0)
    say(world, world.nodes[2], cluster="other", cluster_id=0, version=1 << 30)
    say(world, world.nodes[3], cluster="other", cluster_id=0, version=0)
    assert f"a node has version {1 << 30} " in cluster.trouble
    assert cluster.topology.ranges == ()
    world.leader.on_lost(world.nodes[2].node.id)
    assert cluster.trouble == ""


# --- places ---


def test_one_token_cannot_keep_out_the_nodes_of_another() -> None:
    world = formed()
    made = list(strangers(world, "attacker", NODES - 3))
    assert len(waiting(world)) == NODES - 3
    more = stranger(world, 2000)
    say(world, more, "attacker")
    assert more.refused == "full"
    for number in range(3000, 3000 + (NODES - 3) // 2):
        node = stranger(world, number)
        say(world, node, "operator")
        assert node.refused == ""
        assert number in waiting(world)
    last = stranger(world, 4000)
    say(world, last, "operator")
    assert last.refused == "full"  # each has its half
    assert made[0].node.id in waiting(world)  # the last to come give way


def test_who_waits_and_is_silent_for_an_hour_gives_way() -> None:
    world = formed()
    world.settle(1)
    made = list(strangers(world, "", NODES - 3))
    world.now = Instant(world.now + SILENT_NS + 1)
    for node in made[1:]:
        say(world, node)
    late = stranger(world, 2000)
    say(world, late)
    assert late.refused == ""
    assert made[0].node.id not in waiting(world)
    assert len(waiting(world)) == NODES - 3


def test_records_that_strangers_cause_are_bounded_for_each_token() -> None:
    world = formed()
    node = stranger(world, 1000)
    before = len(world.records)
    for number in range(3 * RECORDS_AT_ONCE):
        node.node = replace(node.node, address=f"evil:{number}")
        say(world, node, "attacker")
    assert len(world.records) - before == RECORDS_AT_ONCE
    other = stranger(world, 1001)
    say(world, other, "operator")
    assert other.node.id in waiting(world)


def test_who_is_not_written_down_is_not_remembered_without_end() -> None:
    world = formed()
    say(world, world.nodes[1], version=world.topology.version + 1)  # nothing is written down
    list(strangers(world, "attacker", 3 * NODES))
    cluster = world.leader.led[CLUSTER]
    assert len(cluster.sessions.heard_besides(world.nodes.keys() & {1, 2, 3})) == NODES


# --- names and addresses ---


def test_a_member_takes_an_address_that_a_stranger_has_taken() -> None:
    world = formed()
    member = world.nodes[1]
    say(world, stranger(world, 1000, address="h1:7600"))
    assert waiting(world) == [1000]
    member.node = replace(member.node, address="h1:7600")
    world.say(member)
    assert member.refused == ""
    assert waiting(world) == []
    known = world.topology.node(1)
    assert known is not None
    assert known.address == "h1:7600"


def test_a_stranger_takes_neither_the_name_nor_the_address_of_a_member() -> None:
    world = formed()
    member = world.nodes[1].node
    for made in (
        stranger(world, 1000, name=member.name),
        stranger(world, 1001, address=member.address),
    ):
        say(world, made)
        assert made.refused == "taken"
    assert len(ring(world).doubted) == 2


def test_a_name_that_somebody_silent_has_is_free_after_an_hour() -> None:
    world = formed()
    say(world, stranger(world, 1000, name="n9"))
    real = stranger(world, 9, name="n9")
    say(world, real)
    assert real.refused == "taken"
    world.now = Instant(world.now + SILENT_NS + 1)
    real.refused = ""
    say(world, real)
    assert real.refused == ""
    assert waiting(world) == [9]


# --- first secrets ---


def test_while_a_node_without_a_secret_is_here_nobody_else_speaks_for_it() -> None:
    world = formed()
    unproven = stranger(world, 1000)
    unproven.proof = b""
    say(world, unproven)
    request = replace(unproven.request(), life=HIGHEST, proof=mark_of(b"first"))
    world.leader.on_request(world.now, world.nodes[1].node.id, request)
    say(world, unproven)
    assert unproven.refused == ""
    assert any("two speak for the node" in each for each in ring(world).doubted)
    world.leader.on_lost(unproven.node.id)
    unproven.start()
    unproven.proof = mark_of(b"its own")
    say(world, unproven)
    assert world.topology.waiting[0].mark == mark_of(unproven.proof)


# --- what operators see ---


def test_who_was_not_believed_is_listed_for_an_hour_and_the_list_is_bounded() -> None:
    world = formed()
    story = len(world.story)
    for number in range(1000, 1000 + 10 * LISTED):
        say(world, stranger(world, number), version=HIGHEST)
    listed = world.ask(ListClusters())
    assert isinstance(listed, ClustersListed)
    [cluster] = listed.clusters
    assert cluster.doubted == 10 * LISTED
    assert len(ring(world).doubted) == LISTED + 1
    assert "more" in ring(world).doubted[-1]
    assert len(world.story) - story == LISTED + 1
    world.now = Instant(world.now + LISTED_NS + 1)
    assert not any("s1000" in each for each in ring(world).doubted)


def test_what_a_stranger_takes_down_of_others_is_not_taken_for_true() -> None:
    world = formed()
    seen = NodeReport(seen=(NodeSeen(node=1, phi=99.0, is_convicted=True),))
    say(world, stranger(world, 1000), report=seen)
    assert not any("taken to be down" in each for each in world.story)
    say(world, world.nodes[2], report=seen)
    assert any("taken to be down" in each for each in world.story)


def test_a_change_refused_says_who_was_ahead() -> None:
    world = formed()
    late = stranger(world, 1000)
    say(world, late)
    say(world, world.nodes[1], version=world.topology.version + 1)
    refused = world.ask(AddNode(cluster=CLUSTER, node=late.node.name))
    assert isinstance(refused, ClusterRefused)
    assert "this journal" in refused.why
