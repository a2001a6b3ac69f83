"""A leader's context, as its clusters use it: the same journal, the same order, the same proof."""

from collections.abc import Iterable

from tenure.base.noted import NotedKind
from tenure.protocol.lease.answers import Connection
from tenure.protocol.lease.leader.context import LeaderContext
from tenure.protocol.lease.leader.events import TellNodes, Ticket
from tenure.protocol.topology.answers import ClusterAnswer
from tenure.protocol.topology.history import AnyClusterRecord
from tenure.protocol.topology.messages import ToNode


class LeaderClusters:
    """A `TopologyDesk` over a leader's context."""

    def __init__(self, context: LeaderContext) -> None:
        self._context = context

    @property
    def journal(self) -> int:
        """The identity of the journal in which it leads."""
        return self._context.seal.journal

    @property
    def leadership(self) -> int:
        """The number of the leadership."""
        return self._context.seal.leadership

    @property
    def next_lsn(self) -> int:
        """The LSN that the next record will have."""
        return self._context.history.lsn + 1

    def next_numbers(self, pools: Iterable[str]) -> dict[str, int]:
        """The number that the next lease of each of these pools will have that is here."""
        tables = self._context.history.tables
        return {pool: tables[pool].next_number for pool in sorted(pools) if pool in tables}

    def write(self, record: AnyClusterRecord) -> int:
        """Decide `record`, and return its LSN."""
        return self._context.write(record)

    def send(self, connection: Connection | None, message: ToNode) -> None:
        """Send `message` to one node, once all that is decided is durable."""
        if connection is not None:
            self.push((connection,), message)

    def push(self, connections: tuple[Connection, ...], message: ToNode) -> None:
        """Send `message` to many."""
        if connections:
            self._context.say(TellNodes(connections, message))

    def reply(self, ticket: Ticket, answer: ClusterAnswer) -> None:
        """Answer a question, once all that is decided is durable."""
        self._context.reply(ticket, answer)

    def note(self, kind: NotedKind, pool: str = "", detail: str = "") -> None:
        """Tell observers."""
        self._context.note(kind, pool, detail)
