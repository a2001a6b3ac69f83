"""Reading parts of a row at a level (R7, R8).

The nearest replica says what it has; the others that are needed say a digest of it. If the digests
are the same, that is the answer. Otherwise all say what they have, and it is merged.

A result that was returned must not be lost again: the next reader may ask other replicas. So
replicas that lack a part of it are mended, and it is returned *when as many have it as the level
needs* (D2).

If replicas know of different adoptions of the row, they must agree on that first: the whole row is
mended, and read again.
"""

from collections.abc import Callable, Sequence

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.protocol.replication.layout import FamilyShape
from tenure.protocol.replication.levels import Level, Need, are_met, fewest
from tenure.protocol.replication.messages import FailedWhy
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.operations import MergeState, PartsRead, ReadParts, StateMerged
from tenure.protocol.replication.request import ReplicaRequest
from tenure.protocol.replication.resolving import Resolution, Resolved, agreed
from tenure.protocol.replication.sections import SectionPart, SectionQuestion
from tenure.protocol.replication.settling import RowMend
from tenure.protocol.replication.states import RowState
from tenure.protocol.topology.records import NodeId

Found = list[Resolved] | FailedWhy
"""The outcome of each question, or why there is no answer."""


class Reading(ReplicaRequest):
    """See above. `then` is called once, with the result."""

    def __init__(
        self,
        context: NodeContext,
        now: Instant,
        level: Level,
        row: tuple[str, Key],
        questions: Sequence[SectionQuestion],
        then: Callable[[Instant, Found], None],
    ) -> None:
        super().__init__(context, now, level)
        self._row = row
        self._table, self._key = row
        self._questions = tuple(questions)
        self._then = then
        self._needs: list[Need] = []
        self._everyone: tuple[NodeId, ...] = ()
        self._told: dict[NodeId, PartsRead] = {}
        self._asked_for_data: set[NodeId] = set()
        self._resolved: list[Resolved] = []
        self._have: set[NodeId] = set()
        """The replicas that have the result, once that is known."""
        self._mend: RowMend | None = None

    # --- identify and route ---

    def begin(self, now: Instant) -> None:
        """Ask the nearest for what it has, and as few others as are needed for a digest."""
        context = self.context
        self.forget()
        self._told.clear()
        self._asked_for_data.clear()
        self._have.clear()
        self._resolved = []
        self._mend = None
        replicas = context.replicas(self._table, self._key)
        needs = None if replicas is None else self.needs(replicas)
        if replicas is None or needs is None:
            self._end_with(now, "no such table" if replicas is None else "too few replicas")
            return
        self._needs, self._everyone = needs, replicas.everyone
        first, *others = fewest(needs, context.in_order(replicas.everyone))
        self._ask(first)
        for node in others:
            self._ask(node, digest_only=True)
        self.wake_at = min(Instant(now + context.config.spare_ns), self.deadline)

    def _ask(self, node: NodeId, *, digest_only: bool = False) -> None:
        if not digest_only:
            self._asked_for_data.add(node)
        body = ReadParts(
            ticket=self.context.draw_ticket(),
            table=self._table,
            key=self._key,
            questions=self._questions,
            digest_only=digest_only,
        )
        self.ask(node, body)

    def on_time(self, now: Instant) -> None:
        """A replica is silent: ask the others, too."""
        self.wake_at = self.deadline
        if self._mend is None and not self._resolved:
            for node in self.context.in_order(self._everyone):
                if node not in self._asked_for_data:
                    self._ask(node)

    # --- resolve ---

    def on_told(self, now: Instant, node: NodeId, body: PartsRead | StateMerged) -> None:
        """See who agrees; or who has been mended."""
        if isinstance(body, StateMerged):
            self._on_mended(now, node, body)
        elif not self._resolved and self._mend is None:
            if body.parts or node not in self._told:
                self._told[node] = body
            self._look(now)

    def _look(self, now: Instant) -> None:
        told = self._told
        by_digest: dict[tuple[bytes, int, int, int], list[NodeId]] = {}
        for node, each in told.items():
            sameness = each.digest, each.sealed, each.adopted, each.attempt
            by_digest.setdefault(sameness, []).append(node)
        for nodes in by_digest.values():
            whole = next((told[node] for node in nodes if told[node].parts), None)
            if whole is not None and are_met(self._needs, set(nodes)):
                self.agree(now, whole.parts)
                return
        if not are_met(self._needs, told):
            return
        with_parts = {node: each for node, each in told.items() if each.parts}
        if are_met(self._needs, with_parts):
            self.resolve(now, with_parts)
            return
        for node in told:
            if node not in self._asked_for_data:
                self._ask(node)

    def agree(self, now: Instant, parts: Sequence[SectionPart]) -> None:
        """As many replicas as are needed have these parts."""
        self._end_with(now, [agreed(part) for part in parts])

    def resolve(self, now: Instant, told: dict[NodeId, PartsRead]) -> None:
        """They differ: merge what they have, and mend those that lack something."""
        # Only what is of one adoption can be merged part by part (R21).
        if len({(each.adopted, each.attempt) for each in told.values()}) > 1:
            self.mend_whole(now)
            return
        resolution = Resolution(self._questions, self._shapes(), told)
        self._resolved = resolution.resolved
        for node in told:
            state = resolution.mend_for(node)
            if state is None:
                self._have.add(node)
            else:
                body = MergeState(
                    ticket=self.context.draw_ticket(),
                    table=self._table,
                    key=self._key,
                    state=state,
                )
                self.ask(node, body)
        self._return_if_kept(now)

    def _shapes(self) -> list[FamilyShape]:
        families = self.context.topology.tables[self._table].families
        return [
            FamilyShape(
                each.family, bool(families[each.family].supers), families[each.family].order
            )
            for each in self._questions
        ]

    # --- repair ---

    def _on_mended(self, now: Instant, node: NodeId, body: StateMerged) -> None:
        if body.wants_whole:
            self.mend_whole(now)
            return
        self._have.add(node)
        self._return_if_kept(now)

    def _return_if_kept(self, now: Instant) -> None:
        if self._resolved and are_met(self._needs, self._have):
            self._end_with(now, self._resolved)

    def mend_whole(self, now: Instant) -> None:
        """Settle the whole row first."""
        self.forget()

        def mended(at: Instant, state: RowState) -> None:
            if not self.is_over:
                self.on_whole_mended(at, state)

        self._mend = RowMend(self.context, now, self._row, self.level, mended)
        self._mend.begin(now)

    def on_whole_mended(self, now: Instant, state: RowState) -> None:
        """As many as are needed have this state of the whole row."""
        del state
        self.begin(now)

    # --- end ---

    def on_deadline(self, now: Instant) -> None:
        """Fail, because no quorum has answered."""
        self._end_with(now, "unavailable")

    def _end_with(self, now: Instant, found: Found) -> None:
        if not self.is_over:
            self.end()
            self._then(now, found)

    def end(self) -> None:
        """End it, and the mend that it waits for."""
        super().end()
        if self._mend is not None:
            self._mend.end()
