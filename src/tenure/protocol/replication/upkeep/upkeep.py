"""Upkeep: work that a node does unasked, round by round, so that replicas become and stay the same.

In each round it builds the sums of its ranges, sweeps what may go, and weighs what it has: see
`weighing`. Then it looks after the ranges of which it is the first replica that is up: see
`RangeUpkeep`. One range comes after the other, and one comparison runs at a time: requests come
first.
"""

from contextlib import suppress
from random import Random
from typing import TypeVar

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.ranges import KeyRange
from tenure.protocol.replication.conversation import Conversing, TopologyReplaced
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.tasks import (
    BuildSums,
    FollowRanges,
    RowsWeighed,
    SweepSome,
    Task,
    TaskDone,
    WeighRows,
)
from tenure.protocol.replication.upkeep.errand import DiskRefused, Errand, errand
from tenure.protocol.replication.upkeep.sealing import RangeUpkeep
from tenure.protocol.replication.upkeep.weighing import parts_of
from tenure.protocol.topology.messages import RangeWeight
from tenure.protocol.topology.records import Replicas

R = TypeVar("R")
S = TypeVar("S", TaskDone, RowsWeighed)
BUSY = 0.5
"""The share of the most requests above which a round waits."""


class Upkeep:
    def __init__(self, context: NodeContext, random: Random) -> None:
        self._context = context
        self._random = random
        self._round: Errand | None = None
        self._version = 0
        """The version of the topology by which the round runs."""
        self.wake_at = FAR_FUTURE
        self.tended: dict[KeyRange, RangeUpkeep] = {}
        self.weights: tuple[RangeWeight, ...] = ()
        self.weighed = 0
        """How often that was found out."""

    def start(self, now: Instant) -> None:
        """The first round comes soon, and not at once: nodes start together."""
        every_ns = self._context.config.repair_ns
        self._wake(Instant(now + round(every_ns * (0.1 + 0.4 * self._random.random()))))

    def begin_soon(self, now: Instant) -> None:
        """Begin a round now, if none is under way."""
        if not self._is_under_way:
            self._wake(now)

    @property
    def _is_under_way(self) -> bool:
        return self._round is not None and not self._round.is_over

    def _wake(self, at: Instant) -> None:
        self.wake_at = at
        self._context.wake(self, at)

    def advance(self, now: Instant) -> None:
        """Begin a round; or give up one that the ring has changed under."""
        context = self._context
        self._wake(Instant(now + context.config.repair_ns))
        if self._is_under_way and context.topology.version == self._version:
            return
        if self._round is not None:
            self._round.end()
        self._version = context.topology.version
        if context.room.places.taken < context.config.most_requests * BUSY:
            self._round = errand(context, self._run)

    # --- a round ---

    def _run(self, talk: Errand) -> Conversing[None]:
        """Do all of it, unless the ring changes, or the disk refuses: the next round comes soon."""
        context = self._context
        with suppress(TopologyReplaced, DiskRefused):
            # Rows count from when this node takes part in requests for them: before, it is filled.
            own = [each for each in self._own() if context.node in each.everyone]
            yield from self._step(FollowRanges(tuple(each.range for each in own)), talk)
            yield from self._all_of(BuildSums(), talk)
            yield from self._all_of(SweepSome(), talk)
            rows = yield from self._all_of(WeighRows(), talk)
            requests = context.requests.take(context.now)
            self.weights = parts_of([each.range for each in self._own()], rows.sizes, requests)
            self.weighed += 1
            yield from self._look_after_ranges(talk)

    def _own(self) -> list[Replicas]:
        return self._context.topology.kept_by(self._context.node)

    def _step(self, step: Task[R], talk: Errand) -> Conversing[R]:
        result = yield from talk.run(step)
        if self._context.topology.version != self._version:  # the sums are of other ranges now
            raise TopologyReplaced
        return result

    def _all_of(self, step: Task[S], talk: Errand) -> Conversing[S]:
        """Have it done some at a time, so that requests come in between; return the last result."""
        while not (result := (yield from self._step(step, talk))).is_all:
            pass
        return result

    def _look_after_ranges(self, talk: Errand) -> Conversing[None]:
        own = [each for each in self._own() if self._leads(each)]
        of_these = {each.range for each in own}
        self.tended = {at: each for at, each in self.tended.items() if at in of_these}
        for replicas in own:
            if self._context.topology.version != self._version:
                return
            work = RangeUpkeep(self._context, replicas, self.tended.get(replicas.range))
            yield from work.run(talk)
            self.tended[work.range] = work

    def _leads(self, replicas: Replicas) -> bool:
        up = (node for node in replicas.old if node not in self._context.down)
        return next(up, None) == self._context.node
