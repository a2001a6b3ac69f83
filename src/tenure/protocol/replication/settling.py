"""Settling a whole row: what a quorum has of it is merged, and replicas are given what they lack.

A mend of some columns is not enough if replicas know of different adoptions (R21): some of them
still have writes of a former owner that the adoption did not find. `RowMend` brings them to the
latest. It does the same where replicas differ in a whole row that is read (R7). An adoption makes
what it finds the latest: see `adoption`.
"""

from abc import abstractmethod
from collections.abc import Callable

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.protocol.replication.levels import Level, Need, are_met
from tenure.protocol.replication.messages import NodeBody
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.operations import MergeState, ReadState, StateMerged, StateRead
from tenure.protocol.replication.request import ReplicaRequest
from tenure.protocol.replication.states import RowState, lacks, merged
from tenure.protocol.topology.records import NodeId, Replicas


class Settling(ReplicaRequest):
    """Ask all, merge what a quorum says, and give it to those that need it."""

    def __init__(
        self, context: NodeContext, now: Instant, row: tuple[str, Key], level: Level = "quorum"
    ) -> None:
        super().__init__(context, now, level)
        self.table, self.key = row
        self.replicas: Replicas
        self._needs: list[Need] = []
        self.states: dict[NodeId, RowState] = {}
        self._have: set[NodeId] = set()
        self._is_merged = False
        self._waits_for_all = True
        self._questioned: list[NodeId] = []

    @abstractmethod
    def question(self) -> NodeBody:
        """The question for each replica, which answers with its state."""

    @abstractmethod
    def settled(self, state: RowState) -> RowState:
        """The state that is given to the replicas that lack it."""

    @abstractmethod
    def finish(self, now: Instant) -> None:
        """A quorum has it."""

    def begin(self, now: Instant) -> None:
        """Ask everybody who is up."""
        context = self.context
        self.forget()
        self.states.clear()
        self._have.clear()
        self._is_merged = False
        self._waits_for_all = True
        replicas = context.replicas(self.table, self.key)
        needs = None if replicas is None else self.needs(replicas)
        if replicas is None or needs is None:
            self.on_deadline(now)
            return
        self.replicas, self._needs = replicas, needs
        self._questioned = context.in_order(replicas.everyone)
        for node in self._questioned:
            self.ask(node, self.question())
        self.wake_at = min(Instant(now + context.config.spare_ns), self.deadline)

    def on_told(self, now: Instant, node: NodeId, body: StateRead | StateMerged) -> None:
        """Merge when all who are up have answered, or soon after a quorum has."""
        if isinstance(body, StateMerged):
            if not body.wants_whole:
                self._have.add(node)
                self._finish_if_kept(now)
        elif not self._is_merged:
            self.states[node] = body.state
            if len(self.states) == len(self._questioned) or not self._waits_for_all:
                self._merge(now)

    def on_time(self, now: Instant) -> None:
        """Replicas that have not answered by now are not waited for."""
        self._waits_for_all = False
        self.wake_at = self.deadline
        if not self._is_merged:
            self._merge(now)

    def is_settled_already(self) -> bool:
        """Whether nothing needs to be given to anybody."""
        return False

    def _merge(self, now: Instant) -> None:
        if not are_met(self._needs, self.states):
            return
        self._is_merged = True
        self.wake_at = self.deadline
        if self.is_settled_already():
            self.end()
            self.finish(now)
            return
        state = self.settled(merged(list(self.states.values())))
        for node in self.context.in_order(self.replicas.everyone):
            if node in self.states and not lacks(self.states[node], state):
                self._have.add(node)
            else:
                body = MergeState(
                    ticket=self.context.draw_ticket(), table=self.table, key=self.key, state=state
                )
                self.ask(node, body)
        self._finish_if_kept(now)

    def _finish_if_kept(self, now: Instant) -> None:
        if not self.is_over and are_met(self._needs, self._have):
            self.end()
            self.finish(now)


class RowMend(Settling):
    """Bring a quorum to what the latest adoption and all writes since say."""

    def __init__(
        self,
        context: NodeContext,
        now: Instant,
        row: tuple[str, Key],
        level: Level,
        then: Callable[[Instant, RowState], None],
    ) -> None:
        super().__init__(context, now, row, level)
        self._then = then
        self._state = RowState()

    def question(self) -> NodeBody:
        """All that a replica has."""
        return ReadState(ticket=self.context.draw_ticket(), table=self.table, key=self.key)

    def settled(self, state: RowState) -> RowState:
        """The state as it is."""
        self._state = state
        return state

    def finish(self, now: Instant) -> None:
        """Go on, with the state that they have."""
        self._then(now, self._state)

    def on_deadline(self, now: Instant) -> None:
        """End quietly: the request that waits for this has the same deadline, and fails by it."""
        del now
        self.end()
