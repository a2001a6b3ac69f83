"""A topology says which nodes keep each position, and one of another cluster is refused."""

from random import Random

import pytest
from msgspec.structs import replace

from tenure.base.ranges import KeyRange
from tenure.errors import StoreDamaged, StoreTooNew
from tenure.protocol.replication.row.layout import bound
from tenure.protocol.replication.row.layout import position as place_on_disk
from tenure.protocol.topology.records import Placement, Removed, ReplicaRange, RingChange, Topology
from tenure.protocol.topology.ring import owner_index, pieces, position, random_token
from tenure.protocol.topology.tables import RowKind
from tenure.wire.topology import packed_topology, read_topology
from tests.unit.protocol.topology.rings import ring

SETTLED = Topology(
    cluster="chat",
    id=7,
    version=12,
    placement=Placement("rack_unaware", 2),
    first_nodes=3,
    nodes=tuple(ring([(0, 0)] * 3)),
    ranges=(
        ReplicaRange(b"", (1, 2)),
        ReplicaRange(b"\x10", (2, 3)),
        ReplicaRange(b"\x20", (3, 1)),
        ReplicaRange(b"\x30", (1, 2)),
    ),
)
CHANGE = RingChange(kind="remove", node=2, token=b"\x20", began=13)
FILLING = replace(
    SETTLED,
    version=13,
    change=CHANGE,
    ranges=(*SETTLED.ranges[:1], ReplicaRange(b"\x10", (2, 3), (3, 1)), *SETTLED.ranges[2:]),
)
JOINT = replace(FILLING, version=14, change=replace(CHANGE, joint=14))


def test_every_position_has_its_replicas() -> None:
    positions = b"", b"\x0f\xff", b"\x10", b"\x1f", b"\x20", b"\xff"
    kept = (1, 2), (1, 2), (2, 3), (2, 3), (3, 1), (1, 2)
    assert tuple(SETTLED.at(at).old for at in positions) == kept
    assert SETTLED.at(b"\x11").range == KeyRange(b"\x10", b"\x20")
    assert SETTLED.at(b"\x99").range == KeyRange(b"\x30", None)
    assert [each.old for each in SETTLED.each()] == [each.old for each in SETTLED.ranges]


def test_while_it_fills_requests_go_by_the_old_list_and_then_by_both() -> None:
    filling, joint, other = FILLING.at(b"\x11"), JOINT.at(b"\x11"), JOINT.at(b"\x21")
    assert (filling.phase, filling.lists, filling.everyone) == ("filling", ((2, 3),), (2, 3))
    assert (joint.phase, joint.lists) == ("joint", ((2, 3), (3, 1)))
    assert joint.everyone == (2, 3, 1)
    assert filling.gaining == joint.gaining == (1,)
    assert (other.phase, other.lists, other.gaining) == ("settled", ((3, 1),), ())
    assert JOINT.gaining() == {1: [KeyRange(b"\x10", b"\x20")]}


def test_before_the_ring_is_formed_nobody_keeps_anything() -> None:
    forming = replace(SETTLED, ranges=(), nodes=(), waiting=SETTLED.nodes)
    assert forming.at(b"k").everyone == ()
    assert list(forming.each()) == []
    forming.invariants()


def test_what_was_looked_up_in_one_topology_is_not_found_in_the_next() -> None:
    """Each finds its replicas and nodes once, for itself; what is compared and sent is the same."""
    fresh = replace(SETTLED)
    assert SETTLED.at(b"\x11").old == (2, 3)
    assert SETTLED.node(2) is not None
    assert not SETTLED.is_removed(2)
    assert fresh == SETTLED
    assert packed_topology(fresh) == packed_topology(SETTLED)
    after = replace(
        SETTLED,
        version=13,
        nodes=tuple(node for node in SETTLED.nodes if node.id != 2),
        removed=(Removed(2, "n2"),),
        ranges=(ReplicaRange(b"", (3, 1)),),
    )
    assert after.at(b"\x11").old == (3, 1)
    assert after.node(2) is None
    assert after.is_removed(2)


def test_a_node_takes_later_topologies_of_its_own_cluster_only() -> None:
    assert FILLING.is_taken_over(SETTLED)
    assert SETTLED.is_taken_over(None)
    assert not SETTLED.is_taken_over(FILLING)
    assert not SETTLED.is_taken_over(SETTLED)
    assert not replace(JOINT, id=8).is_taken_over(SETTLED)


@pytest.mark.parametrize("topology", [SETTLED, FILLING, JOINT])
def test_what_is_packed_is_read_back(topology: Topology) -> None:
    assert read_topology(packed_topology(topology), "here") == topology


def test_a_flipped_bit_is_damage_and_a_later_format_is_said() -> None:
    packed = bytearray(packed_topology(SETTLED))
    with pytest.raises(StoreTooNew, match="format 9"):
        read_topology(b"\x09" + packed[1:], "here")
    packed[-1] ^= 1
    with pytest.raises(StoreDamaged, match="here cannot be read: its checksum"):
        read_topology(bytes(packed), "here")
    for wrong in (b"", packed_topology(replace(SETTLED, ranges=SETTLED.ranges[1:]))):
        with pytest.raises(StoreDamaged):
            read_topology(wrong, "here")


def test_a_node_owns_what_is_below_its_token_and_the_lowest_what_is_above_all() -> None:
    tokens = [b"c", b"m", b"t"]
    assert [owner_index(tokens, at) for at in (b"", b"b", b"c", b"l", b"m", b"t", b"z")] == [
        0, 0, 1, 1, 2, 0, 0,
    ]  # fmt: skip
    assert pieces(tokens) == [
        KeyRange(b"", b"c"), KeyRange(b"c", b"m"), KeyRange(b"m", b"t"), KeyRange(b"t", None),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["ordered", "hashed"])
def test_on_disk_a_token_parts_the_rows_as_on_the_ring(kind: RowKind) -> None:
    random = Random(3)
    for _ in range(2_000):
        key = bytes(random.choices((0, 1, 97, 255), k=random.randrange(4)))
        near = position(key, kind)[: random.randrange(1, 13)]
        token = random.choice((near, near + b"\0", random_token(random))) or b"\0"
        is_above = position(key, kind) >= token
        assert (place_on_disk(key, kind) >= bound(token, kind)) == is_above, (key, token)
