"""Looking after one range: its replicas are compared, and what was deleted is sealed (R23 to R27).

A tombstone may go when all replicas have it, and nothing that it hides can still arrive. So if
something was deleted some time ago, all replicas first *promise*, durably, to take no write of that
time or an earlier one. So no more such writes come. The replicas are then compared, until each has
what all have. Then they are told so: the range is *sealed* up to that time, and each replica sweeps
on its own.

All replicas must take part: one that is down holds seals back. The whole exchange is in one version
of the topology, and a range that gains a replica is not sealed meanwhile (R25).

If there is nothing to seal, the replicas that are up are compared all the same.
"""

from collections.abc import Callable

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.protocol.replication.comparing import Comparing
from tenure.protocol.replication.messages import NodeBody
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.operations import (
    BetweenNodes,
    DoomedFound,
    FindDoomed,
    HorizonPromised,
    PromiseHorizon,
    SealHorizon,
)
from tenure.protocol.topology.records import NodeId, Replicas


class RangeUpkeep:
    """See above. `then` is called once."""

    def __init__(
        self,
        context: NodeContext,
        replicas: Replicas,
        then: Callable[[Instant, "RangeUpkeep"], None],
    ) -> None:
        self._context = context
        self._replicas = replicas
        self.range = replicas.range
        self._then = then
        self._version = context.topology.version
        self._asked: dict[int, NodeId] = {}
        self._heard: dict[NodeId, int] = {}
        self._on_all: Callable[[Instant], None] = self._promise
        self._time = 0
        """The time that is being sealed; 0 if none is."""
        self._comparing: Comparing | None = None
        self._to_compare: list[tuple[NodeId, str]] = []
        self.wake_at = FAR_FUTURE
        self.is_over = False
        self.is_compared = True
        self.is_sealed = False
        self.differing = 0
        self.bytes = 0
        self.held_back_by: tuple[NodeId, ...] = ()

    def begin(self, now: Instant) -> None:
        """Find out whether there is anything to be sealed."""
        if self._replicas.phase != "settled":  # somebody fills, or catches up (R25)
            self._compare(now)
            return
        self.held_back_by = tuple(node for node in self.needed() if node in self._context.down)
        if self.held_back_by:
            self._compare(now)
            return
        self._ask_all(now, lambda ticket: FindDoomed(ticket=ticket, range=self.range))

    def needed(self) -> tuple[NodeId, ...]:
        """The nodes that must promise, and then have all that any of them has (R23)."""
        return self._replicas.old

    # --- all replicas ---

    def _ask_all(self, now: Instant, body: Callable[[int], NodeBody]) -> None:
        self._heard.clear()
        for node in self.needed():
            asked = body(self._context.draw_ticket())
            self._asked[asked.ticket] = node
            self._context.ask(self, node, asked)
        self.wake_at = Instant(now + self._context.config.patience_ns)
        self._context.wake(self, self.wake_at)

    def on_told(self, now: Instant, node: NodeId, body: BetweenNodes) -> None:
        """Go on when all have answered."""
        self._context.forget(body.ticket)
        if self._asked.pop(body.ticket, None) is None or self.is_over:
            return
        assert isinstance(body, DoomedFound | HorizonPromised)
        self._heard[node] = body.time
        if not self._asked:
            self.wake_at = FAR_FUTURE
            self._on_all(now)

    def advance(self, now: Instant) -> None:
        """Go on without a seal where somebody is silent."""
        if self.is_over:
            return
        self.held_back_by = tuple(self._asked.values())
        self._forget()
        self._time = 0
        self._compare(now)

    def on_outdated(self, now: Instant) -> None:
        """The ring has changed."""
        self.is_compared = False
        self._finish(now)

    def _forget(self) -> None:
        self.wake_at = FAR_FUTURE
        for ticket in self._asked:
            self._context.forget(ticket)
        self._asked.clear()

    # --- steps ---

    def _promise(self, now: Instant) -> None:
        self._time = self.time_to_seal(list(self._heard.values()))
        if not self._time:
            self._compare(now)
            return
        self._on_all = self._compare
        self._ask_all(
            now,
            lambda ticket: PromiseHorizon(ticket=ticket, range=self.range, time=self._time),
        )

    @staticmethod
    def time_to_seal(told: list[int]) -> int:
        """The newest of what was deleted long enough ago; 0 where there is nothing."""
        return max(told)

    def _compare(self, now: Instant) -> None:
        """Have this replica get what all others have, and then all others what it has."""
        context = self._context
        if self._time:  # all of them, also who is convicted since
            others = [node for node in self.needed() if node != context.node]
            others += others[:-1]
        else:
            away = context.down | {context.node}
            others = [node for node in self._replicas.everyone if node not in away]
        tables = sorted(context.topology.tables)
        self._to_compare = [(node, table) for node in others for table in tables]
        self._compare_next(now)

    def _compare_next(self, now: Instant) -> None:
        if self.is_over:
            return
        if self._context.topology.version != self._version:  # this began under another (R25)
            self.on_outdated(now)
        elif self._to_compare:
            other, table = self._to_compare.pop(0)
            self._comparing = Comparing(self._context, other, table, self.range, self._on_compared)
            self._comparing.begin(now)
        else:
            if self._time and self.is_compared:
                self._seal()
            self._finish(now)

    def _on_compared(self, now: Instant, is_whole: bool) -> None:  # noqa: FBT001 - what it is told
        compared = self._comparing
        if compared is None:
            return
        self.is_compared &= is_whole
        self.differing += compared.differing
        self.bytes += compared.bytes
        self._compare_next(now)

    def _seal(self) -> None:
        self.is_sealed = True
        for node in self._replicas.old:
            body = SealHorizon(
                ticket=self._context.draw_ticket(), range=self.range, time=self._time
            )
            self._context.tell(node, body)

    # --- end ---

    def _finish(self, now: Instant) -> None:
        if not self.is_over:
            self.is_over = True
            self._forget()
            self._then(now, self)

    def end(self, now: Instant) -> None:
        """End the sealing: nothing more comes of it."""
        self.is_over = True
        self._forget()
        if self._comparing is not None:
            comparing, self._comparing = self._comparing, None
            comparing.end(now, is_whole=False)
