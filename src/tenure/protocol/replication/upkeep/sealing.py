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

from typing import TypeVar

from tenure.base.instants import Instant, in_seconds
from tenure.protocol.replication.conversation import (
    Conversing,
    Interrupted,
    Silent,
    TopologyReplaced,
    Until,
)
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.operations import (
    FindDoomed,
    PromiseHorizon,
    ReplicaOperation,
    SealHorizon,
)
from tenure.protocol.replication.upkeep.comparing import Comparing
from tenure.protocol.replication.upkeep.errand import Errand
from tenure.protocol.topology.messages import RangeTended
from tenure.protocol.topology.records import NodeId, Replicas

R = TypeVar("R")


class RangeUpkeep:
    """The upkeep of one range, in one round; `before` is that of the round before."""

    def __init__(
        self, context: NodeContext, replicas: Replicas, before: "RangeUpkeep | None" = None
    ) -> None:
        assert context.node in replicas.everyone, "only replicas look after a range"
        self._context = context
        self._replicas = replicas
        self.range = replicas.range
        self._version = context.topology.version
        self.is_compared = True
        self.compared_at: Instant | None = before.compared_at if before else None
        self.sealed_at: Instant | None = before.sealed_at if before else None
        self.differing = 0
        self.bytes = 0
        self.held_back_by: tuple[NodeId, ...] = ()

    def run(self, talk: Errand) -> Conversing[None]:
        """Compare the range, and seal it if something was deleted."""
        try:
            time = yield from self._promised(talk)
            for other in self._others(time):
                for table in sorted(self._context.topology.tables):
                    self._check_version()
                    yield from self._compare(other, table, talk)
            self._check_version()
        except TopologyReplaced:
            return
        if self.is_compared:
            self.compared_at = self._context.now
            if time:
                self._seal(time)

    def told(self, now: Instant) -> RangeTended:
        return RangeTended(
            start=self.range.start,
            end=self.range.end,
            compared_seconds=_since(self.compared_at, now),
            sealed_seconds=_since(self.sealed_at, now),
            differing=self.differing,
            bytes=self.bytes,
            held_back_by=self.held_back_by,
        )

    def _check_version(self) -> None:
        # Under another topology another node may be a replica, which has promised nothing (R25).
        if self._context.topology.version != self._version:
            raise TopologyReplaced

    # --- promising ---

    def _promised(self, talk: Errand) -> Conversing[int]:
        """The time up to which all replicas have promised to take no more; 0 without a seal."""
        if self._replicas.phase != "settled":  # somebody fills, or catches up (R25)
            return 0
        self.held_back_by = tuple(node for node in self.needed() if node in self._context.down)
        if self.held_back_by:  # it would come back with what the others have deleted (R23)
            return 0
        doomed = yield from self._asked(FindDoomed(range=self.range), talk)
        time = self.time_to_seal([each.time for each in doomed])
        if time:
            # Before the comparison: what it has not found must not arrive after it (R23, R24).
            promised = yield from self._asked(PromiseHorizon(range=self.range, time=time), talk)
            time = time if promised else 0
        return time

    def needed(self) -> tuple[NodeId, ...]:
        """The nodes that must promise, and then have all that any of them has (R23)."""
        return self._replicas.old

    @staticmethod
    def time_to_seal(told: list[int]) -> int:
        """The newest of what was deleted long enough ago; 0 where there is nothing."""
        return max(told, default=0)

    def _asked(self, question: ReplicaOperation[R], talk: Errand) -> Conversing[list[R]]:
        """The answers of all that are needed; none if somebody is silent, who is named."""
        asked = dict.fromkeys(self.needed(), question)
        answers = talk.ask(asked)
        try:
            yield Until(lambda: len(answers) == len(asked))
        except Silent:
            self.held_back_by = tuple(node for node in asked if node not in answers)
            return []
        return list(answers.values())

    # --- comparing ---

    def _others(self, time: int) -> list[NodeId]:
        """Those to compare with: this replica gets what all have, and then gives it to all."""
        context = self._context
        if not time:
            away = context.down | {context.node}
            return [node for node in self._replicas.everyone if node not in away]
        others = [node for node in self.needed() if node != context.node]
        return others + others[:-1]  # all of them, also who is convicted since (R23)

    def _compare(self, other: NodeId, table: str, talk: Errand) -> Conversing[None]:
        comparing = Comparing(self._context, other, table, self.range)
        try:
            yield from comparing.run(talk)
        except TopologyReplaced:
            raise
        except Interrupted:  # the rest of the range can be compared all the same
            self.is_compared = False
        self.differing += comparing.differing
        self.bytes += comparing.bytes

    # --- sealing ---

    def _seal(self, time: int) -> None:
        """Tell all: each has whatever lies below this time, and nothing more of it will come."""
        assert not self.held_back_by, "a seal needs all replicas"
        self.sealed_at = self._context.now
        for node in self._replicas.old:
            ticket = self._context.draw_ticket()
            # Unanswered: a replica that misses it keeps its tombstones, which harms nobody (R24).
            self._context.tell(node, SealHorizon(ticket=ticket, range=self.range, time=time))


def _since(at: Instant | None, now: Instant) -> float | None:
    return None if at is None else in_seconds(now - at)
