"""The replica's part of a node: what it does for coordinators, of this node and of others.

Everything is decided in the step that does it, under the topology that holds then, so nothing can
come in between (R11). No answer says what a power failure could still undo: it leaves when all that
it changed, or has read, is durable.
"""

from collections.abc import Callable
from typing import Any

from tenure.base.keys import Key
from tenure.base.ranges import KeyRange
from tenure.protocol.replication.messages import (
    ApplyRow,
    AskDoomed,
    AskKeys,
    AskParts,
    AskPiece,
    AskPlaces,
    AskRows,
    AskState,
    AskSums,
    DoomedTold,
    HorizonPromised,
    KeysTold,
    MergeState,
    PartsTold,
    PieceTold,
    PromiseFence,
    PromiseHorizon,
    RowApplied,
    RowsTold,
    SealHorizon,
    StateMerged,
    StateTold,
    SumsTold,
)
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.sections import digest_of
from tenure.protocol.replication.steps import (
    ApplyMutation,
    DoomedFound,
    FindDoomed,
    HorizonRaised,
    KeysListed,
    ListKeys,
    ListPlaces,
    ListRows,
    MutationDone,
    PartsRead,
    PieceRead,
    RaisePromised,
    RaiseRowFence,
    RaiseSealed,
    ReadParts,
    ReadPiece,
    ReadState,
    ReadSums,
    RowsListed,
    StateRead,
    StateTaken,
    SumsRead,
    TakeState,
)
from tenure.protocol.replication.sums import digest_of_sums
from tenure.protocol.topology.records import NodeId

RANGE_REQUESTS = (AskSums, AskPlaces, AskDoomed, PromiseHorizon, SealHorizon)
ROW_REQUESTS = (ApplyRow, AskParts, AskState, MergeState, PromiseFence)


class ReplicaPart:
    """See above. The caller has checked that the asker acts by the same topology."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._answers: dict[type, Callable[[NodeId, Any], None]] = {
            ApplyRow: self._apply,
            AskParts: self._say_parts,
            AskState: self._say_state,
            MergeState: self._merge,
            PromiseFence: self._promise,
            AskRows: self._list,
            AskKeys: self._list_keys,
            AskPiece: self._say_piece,
            AskSums: self._say_sums,
            AskPlaces: self._list_places,
            AskDoomed: self._find_doomed,
            PromiseHorizon: self._promise_horizon,
            SealHorizon: self._seal,
        }

    def serve(self, sender: NodeId, body: object) -> bool:
        """Do what a node asks. Returns whether the request is for a replica at all."""
        answer = self._answers.get(type(body))
        if answer is None:
            return False
        if isinstance(body, ROW_REQUESTS):
            if not self._has(body.table, body.key):
                return True  # the node that asks counts the silence
            self._context.count_request(body.table, body.key)
        if isinstance(body, RANGE_REQUESTS) and not self._keeps(body.range):
            return True
        answer(sender, body)
        return True

    def _has(self, table: str, key: Key) -> bool:
        replicas = self._context.replicas(table, key)
        return replicas is not None and self._context.node in replicas.everyone

    def _keeps(self, key_range: KeyRange) -> bool:
        replicas = self._context.topology.at(key_range.start)
        return replicas.range == key_range and self._context.node in replicas.everyone

    # --- rows ---

    def _apply(self, sender: NodeId, body: ApplyRow) -> None:
        context = self._context

        def done(result: MutationDone) -> None:
            answer = RowApplied(ticket=body.ticket, refused=result.refused)
            if result.refused is None:
                context.row_changed(body.table, body.key)
                context.when_durable(lambda: context.tell(sender, answer))
            else:
                context.tell(sender, answer)

        context.run(ApplyMutation(body.table, body.key, body.edits, body.attempt), done)

    def _say_parts(self, sender: NodeId, body: AskParts) -> None:
        context = self._context

        def done(result: PartsRead) -> None:
            answer = PartsTold(
                ticket=body.ticket,
                digest=digest_of(result.parts),
                parts=() if body.digest_only else result.parts,
                sealed=result.sealed,
                adopted=result.adopted,
                attempt=result.attempt,
                newest=result.newest,
                promised=result.promised,
            )
            if body.questions:
                context.when_row_durable(body.table, body.key, lambda: context.tell(sender, answer))
            else:  # versions that a power failure takes back only make the next one greater
                context.tell(sender, answer)

        context.run(ReadParts(body.table, body.key, body.questions), done)

    def _say_state(self, sender: NodeId, body: AskState) -> None:
        context = self._context

        def done(result: StateRead) -> None:
            answer = StateTold(ticket=body.ticket, state=result.state)
            context.when_row_durable(body.table, body.key, lambda: context.tell(sender, answer))

        context.run(ReadState(body.table, body.key), done)

    def _merge(self, sender: NodeId, body: MergeState) -> None:
        context = self._context

        def done(result: StateTaken) -> None:
            context.row_changed(body.table, body.key)
            answer = StateMerged(ticket=body.ticket, wants_whole=result.wants_whole)
            context.when_durable(lambda: context.tell(sender, answer))

        context.run(TakeState(body.table, body.key, body.state), done)

    def _promise(self, sender: NodeId, body: PromiseFence) -> None:
        context = self._context

        def done(result: StateRead) -> None:
            context.row_changed(body.table, body.key)
            answer = StateTold(ticket=body.ticket, state=result.state, refused=result.refused)
            context.when_durable(lambda: context.tell(sender, answer))

        step = RaiseRowFence(body.table, body.key, body.number, body.journal, body.attempt)
        context.run(step, done)

    # --- ranges ---

    def _list(self, sender: NodeId, body: AskRows) -> None:
        def done(result: RowsListed) -> None:
            answer = RowsTold(
                ticket=body.ticket,
                rows=result.rows,
                is_all=result.is_all,
                horizons=result.horizons,
            )
            self._context.tell(sender, answer)

        self._context.run(ListRows(body.table, body.range, body.after), done)

    def _list_keys(self, sender: NodeId, body: AskKeys) -> None:
        def done(result: KeysListed) -> None:
            answer = KeysTold(ticket=body.ticket, positions=result.positions, is_all=result.is_all)
            self._context.tell(sender, answer)

        self._context.run(ListKeys(body.table, body.lower, body.upper, body.reverse), done)

    def _say_piece(self, sender: NodeId, body: AskPiece) -> None:
        context = self._context

        def done(result: PieceRead) -> None:
            answer = PieceTold(
                ticket=body.ticket,
                rows=result.rows,
                mark=result.mark,
                is_all=result.is_all,
                horizons=result.horizons,
            )
            context.when_durable(lambda: context.tell(sender, answer))

        context.run(ReadPiece(body.range, body.mark, body.most_bytes), done)

    def _say_sums(self, sender: NodeId, body: AskSums) -> None:
        context = self._context

        def done(result: SumsRead) -> None:
            sums = result.sums or b""
            is_same = digest_of_sums(sums) == body.digest
            answer = SumsTold(
                ticket=body.ticket,
                sums=b"" if is_same else sums,
                is_known=result.sums is not None,
            )
            context.when_durable(lambda: context.tell(sender, answer))

        context.run(ReadSums(body.table, body.range, body.place), done)

    def _list_places(self, sender: NodeId, body: AskPlaces) -> None:
        context = self._context

        def done(result: RowsListed) -> None:
            answer = RowsTold(ticket=body.ticket, rows=result.rows)
            context.when_durable(lambda: context.tell(sender, answer))

        context.run(ListPlaces(body.table, body.range, body.places), done)

    def _find_doomed(self, sender: NodeId, body: AskDoomed) -> None:
        def done(result: DoomedFound) -> None:
            self._context.tell(sender, DoomedTold(ticket=body.ticket, time=result.time))

        self._context.run(FindDoomed(body.range, self._context.config.lag_us), done)

    def _promise_horizon(self, sender: NodeId, body: PromiseHorizon) -> None:
        context = self._context

        def done(result: HorizonRaised) -> None:
            answer = HorizonPromised(ticket=body.ticket, time=result.time)
            context.when_durable(lambda: context.tell(sender, answer))

        context.run(RaisePromised(body.range, body.time), done)

    def _seal(self, sender: NodeId, body: SealHorizon) -> None:
        del sender
        self._context.run(RaiseSealed(body.range, body.time), _nothing)


def _nothing(_: object) -> None:
    """Do nothing: no caller waits for it."""
