"""The leader's knowledge of each node beyond the journal: its last request, and when that came.

Requests are complete, so the leader keeps only the last one of each node, and a new leader knows as
much once each node has asked.
"""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from tenure.base.instants import Instant
from tenure.protocol.topology.messages import NodeRequest, RangeWeight
from tenure.protocol.topology.records import NodeId, Topology

Connection: TypeAlias = int


class NodeSession:
    def __init__(self, now: Instant, connection: Connection, request: NodeRequest) -> None:
        self.heard_at = now
        self.connection: Connection | None = connection
        self.request = request
        self.counter = request.counter
        """The highest counter that the node has told."""
        self.weights = request.weights
        """The weights that the node told last."""
        self.convicts = _convicted(request)

    def is_late(self, request: NodeRequest) -> bool:
        """Whether the node has sent a later request since."""
        mine = self.request
        return request.life == mine.life and request.sequence < mine.sequence

    def is_past(self, request: NodeRequest) -> bool:
        """Whether a later life of the node was heard, so that its disk must have been put back."""
        has_fewer = request.counter < self.counter and not self.is_late(request)
        return request.life < self.request.life or has_fewer

    def hear(self, now: Instant, connection: Connection, request: NodeRequest) -> None:
        """Take a request of the node."""
        self.heard_at, self.connection, self.request = now, connection, request
        self.counter = max(self.counter, request.counter)
        self.weights = request.weights or self.weights
        self.convicts = _convicted(request)


def _convicted(request: NodeRequest) -> tuple[NodeId, ...]:
    """The nodes that this node takes to be down."""
    return tuple(each.node for each in request.report.seen if each.is_convicted)


class NodeSessions:
    """The sessions of one cluster."""

    def __init__(self) -> None:
        self._of: dict[NodeId, NodeSession] = {}

    def get(self, node: NodeId) -> NodeSession | None:
        """The session of a node, if it was heard."""
        return self._of.get(node)

    def hear(self, now: Instant, connection: Connection, request: NodeRequest) -> None:
        """Take what a node has told."""
        session = self._of.get(request.node.id)
        if session is None:
            self._of[request.node.id] = NodeSession(now, connection, request)
        else:
            session.hear(now, connection, request)

    def lose(self, connection: Connection) -> None:
        """Take note that a connection is gone, which says nothing about its node."""
        for session in self._of.values():
            if session.connection == connection:
                session.connection = None

    def forget(self, node: NodeId) -> None:
        """Forget a node that was taken out."""
        self._of.pop(node, None)

    def connections(self) -> tuple[Connection, ...]:
        """The connections of nodes."""
        return tuple(each.connection for each in self._of.values() if each.connection is not None)

    def taken_down(self) -> list[NodeId]:
        """The nodes that count as down for any node that is connected here, in order."""
        connected = (each for each in self._of.values() if each.connection is not None)
        return sorted(dict.fromkeys(node for each in connected for node in each.convicts))

    def weights(self) -> dict[NodeId, Sequence[RangeWeight]]:
        """The weights that each node tells."""
        return {node: session.weights for node, session in self._of.items()}

    def topologies(self) -> Iterator[Topology]:
        """The topologies that nodes told when they were asked."""
        for session in self._of.values():
            if session.request.topology is not None:
                yield session.request.topology

    def versions(self) -> Iterator[int]:
        """The versions of the topologies that nodes have."""
        return (session.request.version for session in self._of.values())

    def told(self) -> list[NodeId]:
        """The nodes that have said which topology they have."""
        return [node for node, each in self._of.items() if each.request.topology is not None]
