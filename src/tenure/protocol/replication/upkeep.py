"""Upkeep: work that a node does unasked, round by round, so that replicas become and stay the same.

In each round it builds the sums of its ranges, sweeps what may go, and weighs what it has: see
`weighing`. Then it looks after the ranges of which it is the first replica that is up: see
`RangeUpkeep`. One range comes after the other, and one comparison runs at a time: requests come
first.
"""

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from tenure.base.instants import FAR_FUTURE, Instant, in_seconds
from tenure.base.ranges import KeyRange
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.sealing import RangeUpkeep
from tenure.protocol.replication.tasks import (
    BuildSums,
    FollowRanges,
    RowsWeighed,
    SweepSome,
    TaskDone,
    WeighRows,
)
from tenure.protocol.replication.weighing import parts_of
from tenure.protocol.topology.messages import RangeTended, RangeWeight
from tenure.protocol.topology.records import NodeId, Replicas

BUSY = 0.5
"""The share of the most requests above which a round waits."""


class RangeReport(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a range that this node looks after: see `RangeTended`."""

    range: KeyRange
    compared_at: Instant | None = None
    sealed_at: Instant | None = None
    differing: int = 0
    bytes: int = 0
    held_back_by: tuple[NodeId, ...] = ()

    def told(self, now: Instant) -> RangeTended:
        """The upkeep of the range, as managers are told it."""
        return RangeTended(
            start=self.range.start,
            end=self.range.end,
            compared_seconds=_since(self.compared_at, now),
            sealed_seconds=_since(self.sealed_at, now),
            differing=self.differing,
            bytes=self.bytes,
            held_back_by=self.held_back_by,
        )


def _since(at: Instant | None, now: Instant) -> float | None:
    return None if at is None else in_seconds(now - at)


class Upkeep:
    """See above."""

    def __init__(self, context: NodeContext, random: Random) -> None:
        self._context = context
        self._random = random
        self._ranges: deque[Replicas] = deque()
        self._work: RangeUpkeep | None = None
        self._waits_for_step = False
        """Whether the round waits for what the store does."""
        self._version = 0
        """The version of the topology by which the round runs."""
        self._began = Instant(0)
        self.wake_at = FAR_FUTURE
        self.reports: dict[KeyRange, RangeReport] = {}
        self.weights: tuple[RangeWeight, ...] = ()
        """The weights of the ranges that this node replicates."""
        self.weighed = 0
        """How often that was found out."""

    def start(self, now: Instant) -> None:
        """The first round comes soon, and not at once: nodes start together."""
        every_ns = self._context.config.repair_ns
        self._wake(Instant(now + round(every_ns * (0.1 + 0.4 * self._random.random()))))

    def begin_soon(self, now: Instant) -> None:
        """Begin a round now, if none is under way."""
        if self._work is None and not self._waits_for_step:
            self._wake(now)

    def _wake(self, at: Instant) -> None:
        self.wake_at = at
        self._context.wake(self, at)

    def advance(self, now: Instant) -> None:
        """Begin a round; or give up one that the ring has changed under."""
        context = self._context
        is_under_way = self._work is not None or self._waits_for_step
        if is_under_way and context.topology.version == self._version:
            self._wake(Instant(now + context.config.repair_ns))
            return
        if self._work is not None:
            self._work.end(now)
            self._work = None
        self._began, self._version = now, context.topology.version
        self._wake(Instant(now + context.config.repair_ns))
        if context.under_way < context.config.most_requests * BUSY:
            own = [each for each in context.topology.kept_by(context.node) if self._has(each)]
            step = FollowRanges(tuple(each.range for each in own))
            self._run(step, lambda _: self._build())

    def _has(self, replicas: Replicas) -> bool:
        """Whether this node takes part in requests for the range, so that its rows are counted."""
        return self._context.node in replicas.everyone

    def _run(self, step: Any, then: Callable[[Any], None]) -> None:  # noqa: ANN401 - any step
        version = self._version
        self._waits_for_step = True

        def is_of_this_round() -> bool:
            return self._version == version

        def done(result: TaskDone | RowsWeighed) -> None:
            if is_of_this_round():
                self._waits_for_step = False
                if version == self._context.topology.version:
                    then(result)

        def failed() -> None:
            if is_of_this_round():
                self._waits_for_step = False

        self._context.run(step, done, failed)

    def _build(self) -> None:
        def built(result: TaskDone) -> None:
            if result.is_all:
                self._sweep()
            else:
                self._build()

        self._run(BuildSums(), built)

    def _sweep(self) -> None:
        def swept(result: TaskDone) -> None:
            if result.is_all:
                self._weigh()
            else:
                self._sweep()

        self._run(SweepSome(), swept)

    def _weigh(self) -> None:
        def weighed(result: RowsWeighed) -> None:
            if not result.is_all:
                self._weigh()
                return
            context = self._context
            own = [each.range for each in context.topology.kept_by(context.node)]
            self.weights = parts_of(own, result.sizes, context.requests.take(context.now))
            self.weighed += 1
            self._look_after()

        self._run(WeighRows(), weighed)

    # --- ranges ---

    def _look_after(self) -> None:
        context = self._context
        own = [each for each in context.topology.kept_by(context.node) if self._leads(each)]
        self._ranges = deque(own)
        of_these = {each.range for each in own}
        self.reports = {at: each for at, each in self.reports.items() if at in of_these}
        self._next(context.now)

    def _leads(self, replicas: Replicas) -> bool:
        up = (node for node in replicas.old if node not in self._context.down)
        return next(up, None) == self._context.node

    def _next(self, now: Instant) -> None:
        self._work = None
        if not self._ranges or self._context.topology.version != self._version:
            return
        replicas = self._ranges.popleft()
        self._work = RangeUpkeep(self._context, replicas, self._on_done)
        self._work.begin(now)

    def _on_done(self, now: Instant, work: RangeUpkeep) -> None:
        before = self.reports.get(work.range) or RangeReport(range=work.range)
        self.reports[work.range] = RangeReport(
            range=work.range,
            compared_at=now if work.is_compared else before.compared_at,
            sealed_at=now if work.is_sealed else before.sealed_at,
            differing=work.differing,
            bytes=work.bytes,
            held_back_by=work.held_back_by,
        )
        self._next(now)
