"""Tokens move until all nodes carry about the same, within a budget."""

from bisect import bisect_left
from itertools import pairwise
from random import Random

import pytest
from msgspec.structs import replace

from tenure.base.instants import Instant
from tenure.base.ranges import KeyRange
from tenure.protocol.topology.balancing import DAY_NS, LOOK_NS
from tenure.protocol.topology.change import WantedChange, begin, finish, form, gained, join
from tenure.protocol.topology.messages import RangeWeight
from tenure.protocol.topology.moves import proposed_moves, relieving_token, unevenness
from tenure.protocol.topology.questions import SetBalance
from tenure.protocol.topology.records import Node, Placement, PlacementKind, ReplicaRange, Topology
from tenure.protocol.topology.ring import random_token
from tenure.protocol.topology.weights import NOTHING_KNOWN, RingPart, Weights, between
from tests.unit.protocol.topology.world import CLUSTER, World

KEYS = 20_000
PARTS = 256


def skewed_keys(random: Random) -> list[bytes]:
    """Names that begin with `a` far more often than with `z`, and so on with each letter."""
    return sorted(bytes(97 + int(26 * random.random() ** 3) for _ in range(7)) for _ in range(KEYS))


def weighed(keys: list[bytes]) -> Weights:
    """Parts with about as many keys each, of a hundred bytes."""
    bounds = [b"", *dict.fromkeys(keys[KEYS // PARTS :: KEYS // PARTS])]
    parts = (KeyRange(*ends) for ends in zip(bounds, [*bounds[1:], None], strict=True))
    return Weights([RingPart(part, 100.0 * _count(keys, part), 0.0) for part in parts])


def _count(keys: list[bytes], part: KeyRange) -> int:
    low = bisect_left(keys, part.start)
    return (len(keys) if part.end is None else bisect_left(keys, part.end)) - low


def ring_of(count: int, random: Random, kind: PlacementKind = "rack_unaware") -> Topology:
    waiting = tuple(
        Node(
            id=number + 1,
            name=f"n{number + 1}",
            address=f"h{number}",
            rack=f"r{number % 3}",
            token=random_token(random),
        )
        for number in range(count)
    )
    forming = Topology(
        cluster="c",
        id=1,
        version=1,
        placement=Placement(kind, 3),
        first_nodes=count,
        waiting=waiting,
    )
    return form(forming, 2)


def moved(topology: Topology, node: int, token: bytes, weights: Weights) -> tuple[Topology, int]:
    wanted = WantedChange(kind="move", node=node, token=token)
    begun = begin(topology, wanted, topology.version + 1, weights.of_a_thousand)
    copied = sum(gained(begun, weights.bytes_in).values())
    return finish(join(begun, begun.version + 1), begun.version + 2), copied


@pytest.mark.parametrize("kind", ["rack_unaware", "rack_aware"])
@pytest.mark.parametrize("seed", range(6))
def test_six_nodes_with_skewed_keys_are_within_one_and_a_half_after_the_moves(
    seed: int, kind: PlacementKind
) -> None:
    random = Random(seed)
    topology, weights = ring_of(6, random, kind), weighed(skewed_keys(random))
    assert unevenness(topology, weights) > 1.8
    copied = 0
    for move in list(proposed_moves(topology, weights)):
        assert move.before == pytest.approx(unevenness(topology, weights))
        topology, bytes_ = moved(topology, move.node, move.token, weights)
        topology.invariants()
        assert bytes_ == move.bytes
        copied += bytes_
        assert move.after == pytest.approx(unevenness(topology, weights))
    assert unevenness(topology, weights) <= 1.5
    print(f"max/mean {unevenness(topology, weights):.2f}, {copied} of {weights.bytes:.0f} bytes")


def test_moves_stay_within_their_budget() -> None:
    random = Random(1)
    topology, weights = ring_of(6, random), weighed(skewed_keys(random))
    whole = sum(move.bytes for move in proposed_moves(topology, weights))
    some = list(proposed_moves(topology, weights, whole // 2))
    assert sum(move.bytes for move in some) <= whole // 2
    assert list(proposed_moves(topology, weights, 0)) == []


def test_where_one_key_is_everything_or_nothing_is_known_nothing_moves() -> None:
    topology = ring_of(6, Random(2))
    key = KeyRange(b"a", b"a\0")
    assert list(proposed_moves(topology, Weights([RingPart(key, 1e9, 0.0)]))) == []
    assert list(proposed_moves(topology, NOTHING_KNOWN)) == []
    assert relieving_token(topology, NOTHING_KNOWN) is None


def test_a_new_node_takes_the_token_that_halves_the_heaviest_range() -> None:
    random = Random(3)
    topology, keys = ring_of(4, random), skewed_keys(random)
    token = relieving_token(topology, weighed(keys))
    assert token is not None
    tokens = sorted(node.token for node in topology.nodes)
    counts = {KeyRange(*ends): _count(keys, KeyRange(*ends)) for ends in pairwise(tokens)}
    counts[KeyRange(tokens[-1], None)] = _count(keys, KeyRange(tokens[-1], None))
    counts[KeyRange(b"", tokens[0])] = _count(keys, KeyRange(b"", tokens[0]))
    heaviest = max(counts, key=lambda each: counts[each])
    assert token in heaviest
    below = _count(keys, KeyRange(heaviest.start, token))
    assert below / counts[heaviest] == pytest.approx(0.5, abs=0.03)


def test_requests_weigh_as_much_as_bytes() -> None:
    parts = [RingPart(KeyRange(b"", b"m"), 100.0, 0.0), RingPart(KeyRange(b"m", None), 0.0, 7.0)]
    weights = Weights(parts)
    assert weights.load(KeyRange(b"", b"m")) == weights.load(KeyRange(b"m", None)) == 0.5
    assert weights.bytes_in(KeyRange(b"m", None)) == 0


def test_of_several_replicas_the_first_that_speaks_is_believed() -> None:
    topology = replace(
        ring_of(3, Random(4)),
        ranges=(ReplicaRange(b"", (1, 2, 3)), ReplicaRange(b"m", (2, 3, 1))),
    )
    said = {
        1: (RangeWeight(start=b"", end=None, bytes=1_000),),
        3: (RangeWeight(start=b"m", end=None, bytes=500),),
    }
    weights = Weights.of(topology, said)
    assert [part.range.start for part in weights.parts] == [b"", b"m"]
    assert weights.parts[1].bytes == 500


@pytest.mark.parametrize(
    "key_range",
    [KeyRange(b"", None), KeyRange(b"a", b"b"), KeyRange(b"abc", b"abd"), KeyRange(b"\xff", None)],
)
def test_a_token_between_lies_between(key_range: KeyRange) -> None:
    tokens = [between(key_range, fraction) for fraction in (0.0, 0.25, 0.5, 0.75, 1.0)]
    found = [token for token in tokens if token is not None]
    assert len(found) == 5
    assert found == sorted(found)
    assert all(token in key_range and token != key_range.start for token in found)


def test_between_a_key_and_its_follower_there_is_no_token() -> None:
    assert between(KeyRange(b"a", b"a\0"), 0.5) is None


def test_balance_moves_one_token_at_a_time_within_so_many_bytes_a_day() -> None:
    world = World(1, nodes=4)
    world.settle(2)
    for node in world.nodes.values():
        node.weights = tuple(
            RangeWeight(start=bytes([at]), end=bytes([at, 128]), bytes=1_000)
            for at in range(60, 90)
        )
    world.settle(2)
    before = world.topology
    world.now = Instant(world.now + 2 * LOOK_NS)
    world.leader.advance(world.now)
    assert world.topology is before  # nobody has said that it may
    world.ask(SetBalance(cluster=CLUSTER, bytes_a_day=100_000))
    began: list[int] = []
    for _ in range(100):
        world.now = Instant(world.now + LOOK_NS)
        world.leader.advance(world.now)
        world.desk.commit()
        change = world.topology.change
        if change is not None:
            began.append(change.began)
            world.leader.advance(Instant(world.now + LOOK_NS))
            assert world.topology.change == change  # one at a time
            world.settle(4)
    assert began
    assert began == sorted(set(began))
    even = unevenness(world.topology, world.leader.led[CLUSTER].weights())
    assert even < unevenness(before, world.leader.led[CLUSTER].weights())
    world.ask(SetBalance(cluster=CLUSTER, bytes_a_day=0))
    assert world.leader.wake_at > world.now + 400 * DAY_NS
