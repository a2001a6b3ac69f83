"""Messages between nodes and managers survive their bytes, and other bytes are refused."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tenure.errors import LocalProtocolError, RemoteProtocolError
from tenure.protocol.lease.messages import Standby
from tenure.protocol.topology.limits import NODES, RANGES, WEIGHTS
from tenure.protocol.topology.messages import (
    HintsFor,
    NodeRefused,
    NodeReport,
    NodeRequest,
    NodeScrubbed,
    NodeSeen,
    RangeTended,
    RangeWeight,
    ToNode,
    TopologyTold,
)
from tenure.protocol.topology.records import ReplicaRange, Topology
from tenure.testing.contracts.records import A_TOPOLOGY
from tenure.wire.lease import encode
from tenure.wire.topology import decode_node_request, decode_to_node, encode_topology

REQUEST = NodeRequest(
    cluster="chat",
    cluster_id=A_TOPOLOGY.id,
    node=A_TOPOLOGY.nodes[0],
    life=3,
    sequence=7,
    version=17,
    through=17,
    copied=5,
    to_copy=9,
    counter=2,
    weights=(
        RangeWeight(start=b"", end=b"k", bytes=5, requests=1.5),
        RangeWeight(start=b"k", end=None, bytes=0),
    ),
    topology=A_TOPOLOGY,
    report=NodeReport(
        tended=(RangeTended(start=b"", end=None, compared_seconds=2.5, held_back_by=(1,)),),
        hints=(HintsFor(node=1, count=2, bytes=3),),
        hints_dropped=4,
        seen=(NodeSeen(node=1, phi=0.5),),
        scrubbed=NodeScrubbed(entries=9, passes=1),
    ),
)
TOLD: tuple[ToNode, ...] = (
    TopologyTold(journal=1, leadership=2, topology=A_TOPOLOGY, version=17, wanted=True, life=3),
    NodeRefused(sequence=7, node=1, reason="removed", detail="it was", life=3),
)


def test_a_request_and_its_answers_survive_their_bytes() -> None:
    assert decode_node_request(encode_topology(REQUEST, 2), 2) == REQUEST
    for told in TOLD:
        assert decode_to_node(encode_topology(told, 2), 2) == told


def test_a_standby_says_to_nodes_what_it_says_to_all() -> None:
    standby = Standby(leader="http://10.0.0.1:7400")
    assert decode_to_node(encode(standby, 2), 2) == standby


def test_the_first_version_knows_no_clusters() -> None:
    with pytest.raises(LocalProtocolError, match="NodeRequest is of protocol version 2"):
        encode_topology(REQUEST, 1)
    with pytest.raises(RemoteProtocolError, match="version 2, where version 1 is spoken"):
        decode_node_request(encode_topology(REQUEST, 2), 1)


@given(st.binary(max_size=60))
def test_any_bytes_are_refused(data: bytes) -> None:
    for decode in (decode_node_request, decode_to_node):
        with pytest.raises(RemoteProtocolError):
            decode(b"\x02" + data, 2)


WRONG: list[tuple[Callable[[Topology], Topology], str]] = [
    (lambda it: replace(it, ranges=it.ranges[1:]), "no topology"),
    (lambda it: replace(it, ranges=(ReplicaRange(b"", (1, 1)),)), "no topology"),
    (lambda it: replace(it, ranges=(ReplicaRange(b"", (1, 8)),)), "no topology"),
    (lambda it: replace(it, change=None), "no topology"),
    (lambda it: replace(it, waiting=it.nodes), "no topology"),
    (lambda it: replace(it, removed=it.removed * 2), "no topology"),
    (
        lambda it: replace(it, ranges=(*it.ranges, ReplicaRange(b"z" * 2_000, (1, 2)))),
        "length <= 1032",
    ),
]


@pytest.mark.parametrize(("spoil", "why"), WRONG)
def test_what_cannot_be_a_topology_is_refused(
    spoil: Callable[[Topology], Topology], why: str
) -> None:
    told = TopologyTold(journal=1, leadership=2, topology=spoil(A_TOPOLOGY), version=17)
    with pytest.raises(RemoteProtocolError, match=why):
        decode_to_node(encode_topology(told, 2), 2)


def test_weights_are_few_and_in_order() -> None:
    one = RangeWeight(start=b"a", end=b"b", bytes=1)
    empty, strange = replace(one, end=b"a"), replace(one, requests=float("nan"))
    huge = replace(one, requests=1.7e308)  # two of them are not a number any more
    many = (one,) * (WEIGHTS + 1)
    for weights in ((one, one), (replace(one, end=b""),), (empty,), (strange,), (huge,), many):
        data = encode_topology(replace(REQUEST, weights=weights), 2)
        with pytest.raises(RemoteProtocolError, match=r"weights|length <= 4096"):
            decode_node_request(data, 2)


def test_reports_are_bounded_and_of_numbers() -> None:
    long = RangeTended(start=b"a" * 9_000, end=None)
    strange = NodeSeen(node=1, phi=float("nan"))
    for report in (
        NodeReport(tended=(long,)),
        NodeReport(tended=(RangeTended(start=b"", end=None, sealed_seconds=float("inf")),)),
        NodeReport(tended=REQUEST.report.tended * (RANGES + 1)),
        NodeReport(hints=REQUEST.report.hints * (NODES + 1)),
        NodeReport(seen=(strange,)),
    ):
        data = encode_topology(replace(REQUEST, report=report), 2)
        with pytest.raises(RemoteProtocolError):
            decode_node_request(data, 2)
