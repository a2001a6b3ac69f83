"""Nodes of a cluster that are a socket each, and do at once whatever they are to do."""

import aiohttp

from tenure.protocol.lease.messages import Standby
from tenure.protocol.topology.messages import (
    NodeRefused,
    NodeReport,
    NodeRequest,
    RangeWeight,
    TopologyTold,
)
from tenure.protocol.topology.records import Node, Topology
from tenure.wire.topology import decode_to_node, encode_topology
from tenure.wire.versions import NEWEST, SUBPROTOCOLS


class SocketNode:
    """A node that does at once whatever it is to do."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, node: Node) -> None:
        self.socket, self.node = socket, node
        self.topology: Topology | None = None
        self.sequence, self.life = 0, 1
        self.weights: tuple[RangeWeight, ...] = ()
        self.report = NodeReport()

    def _request(self, cluster: str) -> NodeRequest:
        self.sequence += 1
        change = self.topology.change if self.topology else None
        return NodeRequest(
            cluster=cluster,
            node=self.node,
            life=self.life,
            sequence=self.sequence,
            version=self.topology.version if self.topology else 0,
            weights=self.weights,
            report=self.report,
            through=(change.joint or change.began) if change else 0,
        )

    async def standby(self) -> Standby:
        """Return what a manager says that does not lead."""
        await self.socket.send_bytes(encode_topology(self._request("chat"), NEWEST))
        told = decode_to_node(await self.socket.receive_bytes(), NEWEST)
        assert isinstance(told, Standby)
        return told

    async def ask(self, cluster: str = "chat") -> TopologyTold | NodeRefused:
        await self.socket.send_bytes(encode_topology(self._request(cluster), NEWEST))
        while True:
            told = decode_to_node(await self.socket.receive_bytes(), NEWEST)
            assert isinstance(told, TopologyTold | NodeRefused)
            if isinstance(told, TopologyTold) and told.topology is not None:
                self.topology = told.topology
            if told.sequence == self.sequence:
                return told


async def connected(
    url: str, session: aiohttp.ClientSession, number: int, name: str = "", **headers: str
) -> SocketNode:
    """A node that speaks to the manager at `url`."""
    socket = await session.ws_connect(f"{url}/v1/node", protocols=SUBPROTOCOLS, headers=headers)
    node = Node(
        id=number,
        name=name or f"n{number}",
        address=f"http://10.0.0.{number}:7500",
        token=bytes([number * 16]),
    )
    return SocketNode(socket, node)
