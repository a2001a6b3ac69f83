"""The bytes of messages between nodes and managers, and of a topology on a node's disk."""

import zlib
from collections.abc import Mapping
from math import isfinite
from typing import Final, TypeAlias

import msgspec

from tenure.errors import MALFORMED, RemoteProtocolError, StoreDamaged, StoreTooNew
from tenure.protocol.balance.load import HIGHEST_RATE
from tenure.protocol.lease.messages import Standby
from tenure.protocol.topology.limits import FAMILIES, NODES, TOPOLOGY_BYTES
from tenure.protocol.topology.messages import (
    NodeRefused,
    NodeReport,
    NodeRequest,
    ToNode,
    TopologyTold,
)
from tenure.protocol.topology.records import Topology
from tenure.wire.frame import MessageWriter, Reader

FIRST_VERSION: Final = 2
"""The version that brought clusters."""
KEPT_FORMAT: Final = 1
_HEADER_BYTES: Final = 5

ManagerToNode: TypeAlias = ToNode | Standby

_TYPES: Final = (NodeRequest, TopologyTold, NodeRefused)
_SINCE: Final[Mapping[type[NodeRequest | ToNode], int]] = dict.fromkeys(_TYPES, FIRST_VERSION)
_LIMITS: Final[Mapping[type[NodeRequest | ToNode], int]] = dict.fromkeys(_TYPES, TOPOLOGY_BYTES)
encode_topology: MessageWriter[NodeRequest | ToNode] = MessageWriter(_SINCE, _LIMITS)
"""Encodes a message for a connection of a version."""


def check_topology(topology: Topology) -> None:
    """Raise ValueError if this is not a valid topology, or is too large."""
    counted = (
        ("nodes", len(topology.nodes) + len(topology.waiting), NODES),
        ("families", sum(len(each.families) for each in topology.tables.values()), FAMILIES),
    )
    for what, count, limit in counted:
        if count > limit:
            raise ValueError(f"{count} {what}; at most {limit} are allowed")
    try:
        topology.invariants()
    except AssertionError as error:
        raise ValueError(f"no topology: {error}") from error


def _check_version(version: int) -> None:
    if version < FIRST_VERSION:
        raise RemoteProtocolError(
            f"clusters are of protocol version {FIRST_VERSION}, and version {version} is spoken: "
            "upgrade tenure on the older side"
        )


def _check_request(message: NodeRequest, version: int) -> None:
    _check_version(version)
    position: bytes | None = b""
    for each in message.weights:
        is_empty = each.end is not None and each.end <= each.start
        if position is None or each.start < position or is_empty:
            raise ValueError("weights overlap, are empty, or are not in order")
        if not 0 <= each.requests <= HIGHEST_RATE:  # so that rates can be added up
            raise ValueError(f"weights of {each.requests} requests a second")
        position = each.end
    if message.topology is not None:
        check_topology(message.topology)
    _check_report(message.report)


def _check_report(report: NodeReport) -> None:
    ages = [of for each in report.tended for of in (each.compared_seconds, each.sealed_seconds)]
    if not all(isfinite(each) for each in (*ages, *(of.phi for of in report.seen)) if each):
        raise ValueError("a report has a value that is not a finite number")


def _check_to_node(message: ManagerToNode, version: int) -> None:
    _check_version(version)
    if isinstance(message, TopologyTold) and message.topology is not None:
        check_topology(message.topology)


_requests: msgspec.msgpack.Decoder[NodeRequest] = msgspec.msgpack.Decoder(NodeRequest)
_for_node: msgspec.msgpack.Decoder[ManagerToNode] = msgspec.msgpack.Decoder(ManagerToNode)
_topologies: msgspec.msgpack.Decoder[Topology] = msgspec.msgpack.Decoder(Topology)
_encoder = msgspec.msgpack.Encoder()

decode_node_request = Reader(_requests, TOPOLOGY_BYTES, _check_request)
"""Decodes what a manager received from a node."""
decode_to_node = Reader(_for_node, TOPOLOGY_BYTES, _check_to_node)
"""Decodes what a node received from a manager."""


def packed_topology(topology: Topology) -> bytes:
    """A topology as a node keeps it, and as nodes pass it to each other."""
    body = _encoder.encode(topology)
    return bytes([KEPT_FORMAT]) + zlib.crc32(body).to_bytes(4, "big") + body


def read_topology(data: bytes, where: str) -> Topology:
    """The topology that is packed in `data`. Raises StoreDamaged or StoreTooNew, saying `where`."""
    body = memoryview(data)[_HEADER_BYTES:]
    if data[1:_HEADER_BYTES] != zlib.crc32(body).to_bytes(4, "big"):
        raise StoreDamaged(f"the topology in {where} cannot be read: its checksum does not match")
    if data[0] != KEPT_FORMAT:
        raise StoreTooNew(
            f"the topology in {where} is of format {data[0]}, and this tenure reads {KEPT_FORMAT}: "
            "run the tenure that wrote it, or a later one"
        )
    try:
        topology = _topologies.decode(body)
        check_topology(topology)
    except MALFORMED as error:
        raise StoreDamaged(f"the topology in {where} cannot be read: {error}") from error
    return topology
