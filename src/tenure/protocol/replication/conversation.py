"""Conversations: how a node asks others and waits, written from top to bottom (5).

A conversation is a generator. It asks replicas, yields what it waits for, and goes on when that is
there. So each reads like its rule, and all that waiting takes stands here, once: tickets, the
deadline, replicas that are silent, and topologies that are replaced meanwhile.

    answers = talk.ask(dict.fromkeys(nodes, question))
    yield Until(lambda: are_met(needs, answers))
    ...

What cannot be waited for is raised where the conversation waits. It is state of a machine: nothing
happens between two events, and whoever holds it may drop it.
"""

from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.keys import Key
from tenure.protocol.replication.levels import Level, Need, may_be_met, needs_of
from tenure.protocol.replication.messages import FailedWhy, NodeBody
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.topology.records import NodeId, Replicas

R = TypeVar("R")


class Until(NamedTuple):
    """What a conversation waits for."""

    is_there: Callable[[], bool]
    or_else: Callable[[], object] | None = None
    """Done once if it is not there after a while, long before the deadline: to ask others, too."""


Conversing: TypeAlias = Generator[Until, None, R]


class Replies(dict[NodeId, Any]):
    """The answers so far to one question, by the node that gave them."""


class RequestFailed(Exception):
    """The conversation cannot have what it needs."""

    why: FailedWhy = "unavailable"

    def __init__(self, detail: str = "") -> None:
        super().__init__(detail)
        self.detail = detail


class Silent(RequestFailed):
    """The deadline has come, and too few have answered."""


class TooFewReplicas(RequestFailed):
    """The replicas that are up cannot meet the level (R5)."""

    why = "too few replicas"


class NoSuchTable(RequestFailed):
    """This node has not heard of the table."""

    why = "no such table"


class TopologyReplaced(Exception):
    """A replica acts by a later topology, which this node has now: what was heard does not count
    (R16).
    """


class Conversation:
    """One conversation, while it runs; generators are given it to ask by."""

    def __init__(self, context: NodeContext, now: Instant) -> None:
        self.context = context
        self.deadline = Instant(now + context.config.patience_ns)
        self.wake_at = FAR_FUTURE
        self._tickets: dict[int, tuple[Replies, NodeId]] = {}
        self._until = Until(lambda: True)
        self._version = 0
        """The version of the topology by which the replicas were found."""
        self._waits_for_topology = False
        self._steps: Conversing[None]

    def begin(self, steps: Conversing[None]) -> None:
        """Run it from its beginning to where it waits."""
        self._steps = steps
        self._wake(self.deadline)
        self._go_on(lambda: next(steps))

    # --- for generators ---

    def replicas(self, table: str, key: Key, level: Level) -> tuple[Replicas, list[Need]]:
        """The replicas of a row, and what the level needs of them."""
        context = self.context
        self._version = context.topology.version
        replicas = context.replicas(table, key)
        if replicas is None:
            raise NoSuchTable(table)
        here = context.datacentre_of(context.node)
        needs = needs_of(replicas.lists, level, context.datacentre_of, here)
        down = context.down - {context.node}
        if not replicas.old or not may_be_met(needs, down):
            raise TooFewReplicas
        return replicas, needs

    def ask(self, asked: Mapping[NodeId, NodeBody], answers: Replies | None = None) -> Replies:
        """Ask each of these nodes. Their answers come into what is returned, or into `answers`."""
        into = Replies() if answers is None else answers
        for node, body in asked.items():
            ticket = self.context.draw_ticket()
            self._tickets[ticket] = into, node
            self.context.ask(self, node, msgspec.structs.replace(body, ticket=ticket))
        return into

    # --- events ---

    def on_told(self, now: Instant, node: NodeId, body: Any) -> None:  # noqa: ANN401 - what was asked
        """A node has answered."""
        del now
        answers, asked = self._tickets.pop(body.ticket, (None, node))
        self.context.forget(body.ticket)
        if answers is not None and asked == node:
            answers[node] = body
            self._look()

    def on_outdated(self, now: Instant) -> None:
        """A replica acts by a later topology: wait until this node has it, too."""
        self._forget()
        if not self._waits_for_topology:
            self._waits_for_topology = True
            self.context.waiting.append(self)
        self.on_topology(now)

    def on_topology(self, now: Instant) -> None:
        """This node has another topology."""
        del now
        if self._waits_for_topology and self.context.topology.version != self._version:
            self._wait_no_more()
            self._throw(TopologyReplaced())

    def advance(self, now: Instant) -> None:
        """Do what is due."""
        or_else, self._until = self._until.or_else, Until(self._until.is_there)
        self._wake(self.deadline)
        if now >= self.deadline:
            self._forget()
            self._wait_no_more()
            self.deadline = FAR_FUTURE  # what is still to be done waits for nobody
            self._throw(Silent())
        elif or_else is not None:
            or_else()

    # --- inside ---

    def _look(self) -> None:
        if not self._waits_for_topology and self._until.is_there():
            self._go_on(lambda: next(self._steps))

    def _throw(self, error: Exception) -> None:
        self._go_on(lambda: self._steps.throw(error))

    def _go_on(self, resume: Callable[[], Until]) -> None:
        try:
            self._until = resume()
            while self._until.is_there():
                self._until = next(self._steps)
        except StopIteration:
            self._forget()
            self._wake(FAR_FUTURE)
            return
        spare_at = Instant(self.context.now + self.context.config.spare_ns)
        self._wake(self.deadline if self._until.or_else is None else min(spare_at, self.deadline))

    def _wake(self, at: Instant) -> None:
        if at != self.wake_at:
            self.wake_at = at
            self.context.wake(self, at)

    def _forget(self) -> None:
        for ticket in self._tickets:
            self.context.forget(ticket)
        self._tickets.clear()

    def _wait_no_more(self) -> None:
        if self._waits_for_topology:
            self._waits_for_topology = False
            self.context.waiting.remove(self)
