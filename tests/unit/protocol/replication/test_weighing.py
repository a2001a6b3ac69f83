"""A node reports what it carries in parts, from samples of its rows and of its requests."""

import msgspec
import pytest

from tenure.base.instants import SECOND_NS, Instant
from tenure.base.ranges import WHOLE, KeyRange
from tenure.columns.row_sample import SAMPLED_ROWS
from tenure.protocol.replication.node_events import CompareAsked
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.upkeep.weighing import (
    KEPT_REQUESTS,
    PARTS,
    RequestSample,
    parts_of,
)
from tenure.protocol.topology.limits import TOKEN_BYTES
from tenure.protocol.topology.messages import RangeWeight
from tests.unit.protocol.replication.stage_of_nodes import NodeStage
from tests.unit.protocol.replication.test_schedules import write
from tests.unit.protocol.replication.test_upkeep import rounds


def positions(count: int) -> list[bytes]:
    return [number.to_bytes(4) for number in range(count)]


def of(parts: tuple[RangeWeight, ...], key_range: KeyRange) -> float:
    """Bytes of the parts that lie within a range."""
    return sum(
        each.bytes for each in parts if KeyRange(each.start, each.end).intersection(key_range)
    )


def test_parts_weigh_about_the_same_and_cover_everything() -> None:
    sizes = {at: 1.0 + place % 7 for place, at in enumerate(positions(10_000))}
    parts = parts_of([WHOLE], sizes, {})
    assert PARTS / 2 <= len(parts) <= PARTS
    assert sum(each.bytes for each in parts) == sum(sizes.values())
    assert max(each.bytes for each in parts) < 2.2 * sum(sizes.values()) / PARTS
    ends = [(each.start, each.end) for each in parts]
    assert [start for start, _ in ends[1:]] == [end for _, end in ends[:-1]]


def test_a_row_as_heavy_as_a_part_is_one_of_its_own() -> None:
    sizes = dict.fromkeys(positions(1_000), 1.0)
    hot = (500).to_bytes(4)
    parts = parts_of([WHOLE], sizes, {hot: 50.0, (3).to_bytes(4): 1.0})
    [own] = [each for each in parts if each.requests >= 50]
    assert (own.start, own.end, own.bytes) == (hot, hot + b"\0", 1)


def test_no_part_begins_or_ends_where_a_manager_could_not_read_it() -> None:
    """A program chooses keys, and a manager hangs up on a node whose report it cannot read."""
    long = b"k" * 40_000
    sizes = {long + each: 1.0 for each in positions(200)} | {b"z" + long: 500.0}
    parts = parts_of([WHOLE], sizes, {b"y" + long: 9.0})
    assert sum(each.bytes for each in parts) == sum(sizes.values())
    bounds = [bound for each in parts for bound in (each.start, each.end) if bound]
    assert bounds
    assert max(map(len, bounds)) <= TOKEN_BYTES


def test_what_is_no_longer_replicated_weighs_nothing() -> None:
    sizes = dict.fromkeys(positions(100), 1.0)
    parts = parts_of([KeyRange((10).to_bytes(4), (20).to_bytes(4))], sizes, {})
    assert sum(each.bytes for each in parts) == 10


def test_requests_are_counted_however_many_there_are() -> None:
    sample = RequestSample()
    sample.take(Instant(0))
    for number in range(100_000):
        sample.add(b"hot" if number % 4 else number.to_bytes(4))
    rates = sample.take(Instant(10 * SECOND_NS))
    assert len(rates) <= KEPT_REQUESTS
    assert sum(rates.values()) == pytest.approx(10_000, rel=0.02)
    assert rates[b"hot"] == pytest.approx(7_500, rel=0.35)
    assert sample.take(Instant(11 * SECOND_NS)) == {}


def test_after_a_round_a_node_says_what_it_has() -> None:
    stage = NodeStage()
    asked = write(1, b"x" * 100, 1)
    for number in range(2 * SAMPLED_ROWS):
        edits = (Edit("names", None, b"a", b"x" * 100),)
        key = number.to_bytes(4)
        stage.ask(1, msgspec.structs.replace(asked, key=key, edits=edits))
        stage.deliver()
    rounds(stage)
    for node in stage.nodes.values():
        weights = node.machine.upkeep.weights
        found = sum(each.bytes for each in weights)
        assert found == pytest.approx(2 * SAMPLED_ROWS * 130, rel=0.2)
        assert sum(each.requests for each in weights) > 0


def test_replicas_are_compared_at_once_where_somebody_says_so() -> None:
    stage = NodeStage()
    stage.ask(1, write(1, b"x", 1))
    stage.deliver()
    assert not stage.nodes[1].machine.report(stage.now).tended
    for node in (3, 2, 1):
        stage.nodes[node].post(CompareAsked())
    stage.deliver()
    [tended] = stage.nodes[1].machine.report(stage.now).tended
    assert (tended.start, tended.end, tended.compared_seconds) == (b"", None, 0.0)
