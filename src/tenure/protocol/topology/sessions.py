"""The leader's knowledge of each node beyond the journal: its last request, and when that came.

Requests are complete, so the leader keeps only the last one of each node, and a new leader knows as
much once each node has asked.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import TypeAlias

from tenure.base.instants import Instant
from tenure.protocol.topology.messages import NodeRequest, RangeWeight
from tenure.protocol.topology.records import NodeId
from tenure.protocol.topology.restoring import Telling

Connection: TypeAlias = int


class NodeSession:
    def __init__(self, now: Instant, connection: Connection, request: NodeRequest, by: str) -> None:
        self.heard_at = now
        self.connection: Connection | None = connection
        self.by = by
        """The token that it has shown; empty if tokens are not asked for."""
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

    def hear(self, now: Instant, connection: Connection, request: NodeRequest, by: str) -> None:
        """Take a request of the node."""
        self.heard_at, self.connection, self.request = now, connection, request
        self.by = by
        self.counter = max(self.counter, request.counter)
        self.weights = request.weights or self.weights
        self.convicts = _convicted(request)


def _convicted(request: NodeRequest) -> tuple[NodeId, ...]:
    return tuple(each.node for each in request.report.seen if each.is_convicted)


class NodeSessions:
    """The sessions of one cluster."""

    def __init__(self, now: Instant) -> None:
        self._began = now
        self._of: dict[NodeId, NodeSession] = {}

    def get(self, node: NodeId) -> NodeSession | None:
        """The session of a node, if it was heard."""
        return self._of.get(node)

    def hear(self, now: Instant, connection: Connection, request: NodeRequest, by: str) -> None:
        """Take what a node has told that has shown the token `by`."""
        session = self._of.get(request.node.id)
        if session is None:
            self._of[request.node.id] = NodeSession(now, connection, request, by)
        else:
            session.hear(now, connection, request, by)

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

    def is_connected(self, node: NodeId) -> bool:
        """Whether a node is connected here."""
        session = self._of.get(node)
        return session is not None and session.connection is not None

    def silent_ns(self, now: Instant, node: NodeId) -> int:
        """How long a node has been silent, as far as this leader can know."""
        session = self._of.get(node)
        return now - (session.heard_at if session else self._began)

    def shown(self, nodes: Collection[NodeId]) -> Counter[str]:
        """The tokens that these nodes have shown, counted."""
        return Counter(self.shown_by(node) for node in nodes)

    def shown_by(self, node: NodeId) -> str:
        """The token that a node has shown; empty for one that was not heard."""
        session = self._of.get(node)
        return session.by if session else ""

    def heard_besides(self, nodes: Collection[NodeId]) -> list[NodeId]:
        """All that were heard and are none of these."""
        return [node for node in self._of if node not in nodes]

    def taken_down(self, members: Collection[NodeId]) -> list[NodeId]:
        """The nodes that count as down for any of these that is connected here, in order."""
        heard = (self._of[each] for each in members if self.is_connected(each))
        return sorted(dict.fromkeys(node for each in heard for node in each.convicts))

    def weights(self) -> dict[NodeId, Sequence[RangeWeight]]:
        """The weights that each node tells."""
        return {node: session.weights for node, session in self._of.items()}

    def told(self) -> list[Telling]:
        """The topologies that nodes told when they were asked."""
        said = ((node, each.request) for node, each in self._of.items())
        return [
            Telling(node, request.proof, request.topology)
            for node, request in said
            if request.topology is not None
        ]

    def versions(self, of: Collection[NodeId]) -> Iterator[int]:
        """The versions of the topologies that these nodes have."""
        heard = (self._of.get(node) for node in of)
        return (session.request.version for session in heard if session)
