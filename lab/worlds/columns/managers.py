"""The manager of a simulated cluster: the very leader that managers run, over a simulated journal.

One life leads at a time, and a later one begins with what the journal has. A write that a life had
begun when it was killed may be there or not.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import msgspec

from lab.worlds.columns.processes import StoreProcess, StoreSite
from tenure.base.instants import FAR_FUTURE, MILLISECOND_NS, Instant
from tenure.base.machine import Output
from tenure.base.noted import NotedKind
from tenure.protocol.replication.given_numbers import HIGHEST
from tenure.protocol.topology.answers import ClusterAnswer
from tenure.protocol.topology.history import AnyClusterRecord, Clusters
from tenure.protocol.topology.leader import TopologyLeader
from tenure.protocol.topology.messages import NodeRequest, ToNode
from tenure.protocol.topology.questions import ClusterQuestion
from tenure.protocol.topology.records import Topology
from tenure.sim.kernel.clocks import SimClock

COMMIT_NS = 20 * MILLISECOND_NS
JOURNAL = 77


class NodeAsked(msgspec.Struct, frozen=True):
    """A node asks; `connection` is its process."""

    connection: int
    request: NodeRequest


class NodeGone(msgspec.Struct, frozen=True):
    """The process that had this connection has ended."""

    connection: int


class OperatorAsked(msgspec.Struct, frozen=True):
    """The operator asks for a change."""

    question: ClusterQuestion


class RecordsKept(msgspec.Struct, frozen=True):
    """The journal now has so many records."""

    count: int


ManagerEvent: TypeAlias = NodeAsked | NodeGone | OperatorAsked | RecordsKept


class CommitRecords(msgspec.Struct, frozen=True):
    """Append these to the journal."""

    records: tuple[AnyClusterRecord, ...]


class SayToNode(msgspec.Struct, frozen=True):
    """Send a message to the node that has this connection."""

    connection: int
    message: ToNode


class LeadingManager:
    """A machine: a leader of clusters that is its own desk."""

    def __init__(self, now: Instant, records: list[AnyClusterRecord], leadership: int) -> None:
        self.journal = JOURNAL
        self.leadership = leadership
        self.answers: list[ClusterAnswer] = []
        self._count = len(records)
        self._committed = self._count
        self._written: list[AnyClusterRecord] = []
        self._held: list[tuple[int, Callable[[], None]]] = []
        self._actions: list[Any] = []
        self._asserted: Topology | None = None
        self.clusters = Clusters((), 0)
        for record in records:
            self.clusters.apply(record)
        self.leader = TopologyLeader(now, self, self.clusters, is_kept=True)

    # --- the machine ---

    def handle(self, now: Instant, event: ManagerEvent) -> Output[Any]:
        """Handle an event."""
        match event:
            case NodeAsked(connection, request):
                self.leader.on_request(now, connection, request)
            case NodeGone(connection):
                self.leader.on_lost(connection)
            case OperatorAsked(question):
                self.reply(0, self.leader.answer(now, question))
            case RecordsKept(count):
                self._committed = count
                held, self._held = self._held, []
                for lsn, say in held:
                    self._when_committed(lsn, say)
        return self.advance(now)

    def advance(self, now: Instant) -> Output[Any]:
        """Do nothing: nothing is due by itself."""
        actions, self._actions = self._actions, []
        if self._written:
            actions.append(CommitRecords(tuple(self._written)))
            self._written = []
        return Output(actions, FAR_FUTURE)

    def invariants(self) -> None:
        """Assert what must always hold: of a topology once, because it never changes."""
        [state] = self.clusters.states.values()
        if state.topology is not self._asserted:
            self._asserted = state.topology
            self.clusters.invariants()

    # --- the leader's desk ---

    @property
    def next_lsn(self) -> int:
        return self._count + 1

    def next_numbers(self, pools: Iterable[str]) -> dict[str, int]:
        """Owners of the simulated store draw their numbers themselves, all of them below."""
        return dict.fromkeys(pools, HIGHEST)

    def write(self, record: AnyClusterRecord) -> int:
        self._count += 1
        self._written.append(record)
        self.clusters.apply(record)
        return self._count

    def send(self, connection: int | None, message: ToNode) -> None:
        """See `ClusterDesk`."""
        if connection is not None:
            say = SayToNode(connection, message)
            self._when_committed(self._count, lambda: self._actions.append(say))

    def push(self, connections: tuple[int, ...], message: ToNode) -> None:
        for each in connections:
            self.send(each, message)

    def reply(self, ticket: int, answer: ClusterAnswer) -> None:
        self.answers.append(answer)

    def note(self, kind: NotedKind, pool: str = "", detail: str = "") -> None: ...

    def _when_committed(self, lsn: int, say: Callable[[], None]) -> None:
        if lsn <= self._committed:
            say()
        else:
            self._held.append((lsn, say))


class LeadingProcess(StoreProcess):
    """One life of the manager."""

    machine: LeadingManager
    stops_before = (CommitRecords, SayToNode)

    def __init__(
        self,
        site: StoreSite,
        slot: str,
        clock: SimClock,
        machine: LeadingManager,
        journal: list[AnyClusterRecord],
    ) -> None:
        super().__init__(site, slot, clock, machine)
        self._journal = journal
        self._under_way: list[AnyClusterRecord] = []
        self._connected: set[int] = set()

    def on_message(self, sender: Any, message: NodeRequest) -> None:
        """A node asks."""
        gone = sorted(self._connected - self.site.present.keys())
        for uid in gone:
            self._connected.discard(uid)
            self.post(NodeGone(uid))
        self._connected.add(sender.uid)
        self.post(NodeAsked(sender.uid, message))

    def perform(self, action: Any) -> None:
        """Carry out one action."""
        match action:
            case CommitRecords(records=records):
                is_first = not self._under_way
                self._under_way.extend(records)
                if is_first:
                    self.site.at(self.site.now + COMMIT_NS, self._commit, None)
            case SayToNode(connection=connection, message=message):
                node = self.site.present.get(connection)
                if node is not None:
                    self.site.network.to_process(self, node, message)

    def _commit(self, _: object) -> None:
        if self.alive:
            self._journal.extend(self._under_way)
            self._under_way.clear()
            self.post(RecordsKept(len(self._journal)))

    def kill(self) -> None:
        """End the process. The record that was being written may be kept whole, in part, or not at
        all.
        """
        if self.alive:
            self._journal.extend(self._under_way[: self.site.random.randint(0, 2)])
        super().kill()
