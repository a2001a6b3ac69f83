"""A request on its way through its coordinator: the paper's five states (5).

It *identifies* the replicas, *routes* to them and waits, *fails* at its deadline, *resolves* their
answers, and *repairs* replicas that lack something. Each kind of request is a machine of its own.
"""

from abc import abstractmethod
from typing import Any

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.protocol.replication.levels import Level, Need, may_be_met, needs_of
from tenure.protocol.replication.messages import ClientAnswer, Failed, FailedWhy, NodeBody
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.topology.records import NodeId, Replicas


class ReplicaRequest:
    """One request; a part of a request may be one, too."""

    def __init__(self, context: NodeContext, now: Instant, level: Level) -> None:
        self.context = context
        self.level = level
        self.deadline = Instant(now + context.config.patience_ns)
        self._wake_at = FAR_FUTURE
        self.wake_at = self.deadline
        self.version = 0
        """The version of the topology by which its replicas were found."""
        self.is_over = False
        self._tickets: dict[int, NodeId] = {}
        self._waits_for_topology = False

    @property
    def wake_at(self) -> Instant:
        """When the next thing is due."""
        return self._wake_at

    @wake_at.setter
    def wake_at(self, at: Instant) -> None:
        if at != self._wake_at:
            self._wake_at = at
            self.context.wake(self, at)

    # --- what a kind says ---

    @abstractmethod
    def begin(self, now: Instant) -> None:
        """Find the replicas and ask them; again under another topology."""

    @abstractmethod
    def on_told(self, now: Instant, node: NodeId, body: Any) -> None:  # noqa: ANN401 - what it asked
        """A replica has answered."""

    @abstractmethod
    def on_deadline(self, now: Instant) -> None:
        """Fail, because not enough replicas answered in time."""

    def on_time(self, now: Instant) -> None:
        """It is time to look again; the deadline is still to come."""

    # --- for kinds ---

    def needs(self, replicas: Replicas) -> list[Need] | None:
        """The nodes that the level needs; None if the replicas that are up cannot meet it (R5)."""
        context = self.context
        self.version = context.topology.version
        here = context.datacentre_of(context.node)
        needs = needs_of(replicas.lists, self.level, context.datacentre_of, here)
        down = context.down - {context.node}
        return needs if replicas.old and may_be_met(needs, down) else None

    def ask(self, node: NodeId, body: NodeBody) -> None:
        """Ask a replica."""
        self._tickets[body.ticket] = node
        self.context.ask(self, node, body)

    def forget(self) -> None:
        """Answers no longer count."""
        for ticket in self._tickets:
            self.context.forget(ticket)
        self._tickets.clear()

    def end(self) -> None:
        """End the request, for everybody."""
        self.is_over = True
        self.wake_at = FAR_FUTURE
        self.forget()
        self._wait_no_more()

    # --- topology ---

    def on_outdated(self, now: Instant) -> None:
        """A replica acts by a later topology: what was heard does not count (R16)."""
        self.forget()
        if not self._waits_for_topology:
            self._waits_for_topology = True
            self.context.waiting.append(self)
        self.on_topology(now)

    def on_topology(self, now: Instant) -> None:
        """Take a new topology: begin anew, if the request waited for one."""
        if self.is_over or self.context.topology.version == self.version:
            return
        self._wait_no_more()
        self.begin(now)

    def _wait_no_more(self) -> None:
        if self._waits_for_topology:
            self._waits_for_topology = False
            self.context.waiting.remove(self)

    def advance(self, now: Instant) -> None:
        """Do what is due."""
        if self.is_over:
            return
        if now >= self.deadline:
            self.on_deadline(now)
        elif now >= self.wake_at:
            self.on_time(now)


class ClientRequestUnderWay(ReplicaRequest):
    """A request that a client waits for."""

    def __init__(
        self, context: NodeContext, now: Instant, level: Level, client: int, request: int
    ) -> None:
        super().__init__(context, now, level)
        self._client = client
        self.request = request
        self.is_answered = False

    def answer(self, message: ClientAnswer) -> None:
        """Tell the client, once."""
        if not self.is_answered:
            self.is_answered = True
            self.context.answer(self._client, message)

    def fail(self, why: FailedWhy, detail: str = "") -> None:
        """Tell the client that the request failed, and end."""
        self.answer(Failed(request=self.request, why=why, detail=detail))
        self.end()
