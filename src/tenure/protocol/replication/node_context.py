"""The context that the parts of a node's machine share: its identity, the topology, the store, and
the other nodes.
"""

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Protocol

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.keys import Key
from tenure.protocol.replication.given_numbers import GivenNumbers
from tenure.protocol.replication.messages import (
    ClientAnswer,
    DrawVersion,
    Failed,
    NodeBody,
    NodeMessage,
    WriteRow,
)
from tenure.protocol.replication.node_events import (
    AnswerClient,
    NodeAction,
    NodeConfig,
    RunStep,
    StoreAsked,
    SyncUpTo,
    TellNode,
)
from tenure.protocol.replication.operations import BetweenNodes, OfRow, is_changed
from tenure.protocol.replication.request_room import Portion, RequestRoom
from tenure.protocol.replication.tasks import Step
from tenure.protocol.replication.upkeep.weighing import RequestSample
from tenure.protocol.topology.records import NodeId, Replicas, Topology
from tenure.protocol.topology.ring import position

TICKET_BITS = 52


def _nothing(_: object = None) -> None:
    """Do nothing: nobody waits for it."""


class Asker(Protocol):
    """A part of the node that has asked another node something."""

    def on_told(self, now: Instant, node: NodeId, body: Any) -> None:  # noqa: ANN401 - what it asked
        ...

    def on_outdated(self, now: Instant) -> None:
        """A node does not answer: it acts by a later topology."""
        ...

    def on_topology(self, now: Instant) -> None: ...


class Wakes(Protocol):
    """The parts that have something to do at some time."""

    @property
    def wake_at(self) -> Instant: ...

    def advance(self, now: Instant) -> None: ...


class NodeContext:
    """See above. Tickets begin at a random number, so that no answer to an earlier life counts."""

    def __init__(self, config: NodeConfig, random: Random) -> None:
        self.config = config
        self.node = config.node
        self.now = Instant(0)
        """The time of the event that is handled."""
        self.wall_us = 0
        """The wall clock when a client last asked."""
        self.topology: Topology = config.topology
        self.down: frozenset[NodeId] = frozenset()
        self.nearest: tuple[NodeId, ...] = ()
        self._nearness: dict[NodeId, int] = {self.node: 0}
        """The places of these nodes in their order."""
        self.actions: list[NodeAction] = []
        self.to_itself: deque[NodeMessage] = deque()
        self.filling = config.filling
        self.waiting: list[Asker] = []
        """The requests that wait for another topology."""
        self.room = RequestRoom(config.most_requests, config.most_large_reads)
        self.given = GivenNumbers(are_told=config.has_managers)
        self.requests = RequestSample()
        """The sample of where this node is asked as a replica."""
        self.changes_durable = 0
        self._alarms: list[tuple[Instant, int, Wakes]] = []
        self._changes = 0
        self._ticket = random.getrandbits(TICKET_BITS)
        self._askers: dict[int, Asker] = {}
        self._steps: dict[int, tuple[Step, Callable[[Any], None], Callable[[], None]]] = {}
        self._held: deque[tuple[int, Callable[[], None]]] = deque()
        self._changed: dict[tuple[str, Key], int] = {}
        """The change by which a row is as it is now, while that is not durable."""

    def draw_ticket(self) -> int:
        """A number that nobody had."""
        self._ticket += 1
        return self._ticket

    # --- time ---

    def wake(self, who: Wakes, at: Instant) -> None:
        """Have it do what is due then, if that is still when it wants to be woken."""
        if at < FAR_FUTURE:
            heapq.heappush(self._alarms, (at, self.draw_ticket(), who))

    def advance(self, now: Instant) -> None:
        self.now = now
        while self._alarms and self._alarms[0][0] <= now:
            at, _, who = heapq.heappop(self._alarms)
            if who.wake_at == at:
                who.advance(now)

    @property
    def wake_at(self) -> Instant:
        alarms = self._alarms
        while alarms and alarms[0][2].wake_at != alarms[0][0]:
            heapq.heappop(alarms)
        return min(alarms[0][0] if alarms else FAR_FUTURE, self.room.due_at)

    # --- the ring ---

    def replicas(self, table: str, key: Key) -> Replicas | None:
        """The replicas of a row; None without the table."""
        record = self.topology.tables.get(table)
        if record is None:
            return None
        return self.topology.at(position(key, record.kind))

    def is_replica_of(self, table: str, key: Key) -> bool:
        """Whether this node is a replica of a row for which it is asked; it counts the request."""
        record = self.topology.tables.get(table)
        if record is None:
            return False
        at = position(key, record.kind)
        if self.node not in self.topology.at(at).everyone:
            return False
        self.requests.add(at)
        return True

    def datacentre_of(self, node: NodeId) -> str:
        found = self.topology.node(node)
        return found.datacentre if found else ""

    def in_order(self, nodes: Sequence[NodeId]) -> list[NodeId]:
        """The nodes that are up, the nearest first; the node itself is the nearest of all (5.7)."""
        up = [node for node in nodes if node not in self.down or node == self.node]
        return sorted(up, key=self._nearness_of)

    def set_nearest(self, nearest: Sequence[NodeId]) -> None:
        """These are the other nodes, the nearest first."""
        self.nearest = tuple(nearest)
        self._nearness = {node: place for place, node in enumerate((self.node, *nearest))}

    def _nearness_of(self, node: NodeId) -> int:
        return self._nearness.get(node, len(self._nearness))

    # --- others ---

    def ask(self, asker: Asker, node: NodeId, body: NodeBody) -> None:
        """Say it, and have the answer brought to `asker`, until it forgets the ticket."""
        self._askers[body.ticket] = asker
        self.tell(node, body)

    def tell(self, node: NodeId, body: NodeBody) -> None:
        """Say it to a node, which may be this one."""
        message = NodeMessage(
            cluster=self.topology.cluster,
            id=self.topology.id,
            sender=self.node,
            receiver=node,
            version=self.topology.version,
            body=body,
        )
        if node == self.node:
            self.to_itself.append(message)
        else:
            self.actions.append(TellNode(node, message))

    def admit(self, asked: StoreAsked) -> Portion | None:
        """The portion of a request; without one, its client is told that it was not begun."""
        self.wall_us = asked.wall_us
        reads = not isinstance(asked.request, WriteRow | DrawVersion)
        portion = self.room.admit(asked.by, asked.places, reads=reads)
        if portion is None:
            failed = Failed(request=asked.request.request, why="overloaded")
            self.actions.append(AnswerClient(asked.client, failed))
        return portion

    def answer(self, asked: StoreAsked, portion: Portion, message: ClientAnswer) -> None:
        """Answer a request that was admitted: once."""
        portion.give_back()
        self.actions.append(AnswerClient(asked.client, message))

    def forget(self, ticket: int) -> None:
        """Answers to this no longer count."""
        self._askers.pop(ticket, None)

    def asker_of(self, body: BetweenNodes) -> Asker | None:
        """The request that waits for this answer."""
        return self._askers.get(body.ticket)

    # --- the store ---

    def run(
        self,
        step: Step,
        then: Callable[[Any], None] = _nothing,
        failed: Callable[[], None] = _nothing,
    ) -> None:
        """Have the store do it, and go on with what came of it; or with `failed`, where it could
        not. By default whoever asked counts the silence.
        """
        ticket = self.draw_ticket()
        self._steps[ticket] = step, then, failed
        self.actions.append(RunStep(ticket, step))

    def on_step_done(self, ticket: int, result: Any, changes: int) -> None:  # noqa: ANN401 - of any step
        self._changes = changes
        step, then, _ = self._steps.pop(ticket)
        # Also if nobody waits any longer: readers of the row must, until it is durable.
        if isinstance(step, OfRow) and is_changed(step, result):
            self._changed[step.table, step.key] = changes
        then(result)

    def on_step_failed(self, ticket: int) -> None:
        _, _, failed = self._steps.pop(ticket)
        failed()

    def when_durable(self, then: Callable[[], None]) -> None:
        """Go on when all that was changed so far is durable."""
        self._hold(self._changes, then)

    def when_row_durable(self, table: str, key: Key, then: Callable[[], None]) -> None:
        """Go on when the row is durable as it is now: what is read must not be lost again."""
        self._hold(self._changed.get((table, key), 0), then)

    def _hold(self, changes: int, then: Callable[[], None]) -> None:
        if changes <= self.changes_durable:
            then()
            return
        self._held.append((changes, then))
        self.actions.append(SyncUpTo(changes))

    def on_synced(self, changes: int) -> None:
        self.changes_durable = max(self.changes_durable, changes)
        held, self._held = self._held, deque()
        for upto, then in held:
            if upto <= self.changes_durable:
                then()
            else:
                self._held.append((upto, then))
        durable = self.changes_durable
        self._changed = {row: at for row, at in self._changed.items() if at > durable}
