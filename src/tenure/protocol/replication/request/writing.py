"""Writing one row: to all replicas, until as many have it as the level requires (R4, R6).

The version is the client's: it has drawn it, or a first round has: see `drawing`. Each replica
merges the write wherever it lies, or refuses it whole: because of a fence, a horizon, or its clock.
So the same write may come again, in any order and to any node.

What the client is told is true of *all* replicas. The write is not written if all of them have
refused it; if only too many have, some replica may have it, and the outcome is unknown (R9).

A replica that says nothing until the deadline gets a hint, and so does one that was down from the
beginning.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import msgspec

from tenure.protocol.replication.conversation import (
    Conversation,
    Conversing,
    RequestFailed,
    Silent,
    TopologyReplaced,
    Until,
)
from tenure.protocol.replication.levels import Need, are_met, may_be_met
from tenure.protocol.replication.messages import (
    ClientAnswer,
    Failed,
    NotWritten,
    RowWritten,
    WriteRow,
)
from tenure.protocol.replication.operations import ApplyRow, RowApplied
from tenure.protocol.replication.request.drawing import newest_of
from tenure.protocol.replication.request.numbering import wait_until_given
from tenure.protocol.replication.row.admission import Ahead, Late, Outranked, Refused
from tenure.protocol.replication.row.limits import AHEAD_US
from tenure.protocol.replication.upkeep.hints import Hints
from tenure.protocol.topology.records import NodeId


class _Round(NamedTuple):
    """The write at the replicas of one topology."""

    everyone: tuple[NodeId, ...]
    needs: list[Need]
    asked: list[NodeId]
    told: dict[NodeId, RowApplied]

    @property
    def applied(self) -> set[NodeId]:
        """The replicas that have it, durably."""
        return {node for node, told in self.told.items() if told.refused is None}

    @property
    def refused(self) -> dict[NodeId, Refused]:
        return {node: told.refused for node, told in self.told.items() if told.refused is not None}

    def known(self) -> Conversing[None]:
        """Wait until the outcome is known: written; refused by all; or refused by too many, and
        those that are silent cannot change what the client is told.
        """
        yield Until(
            lambda: (
                self.is_written
                or self.is_all
                or (self.is_refused and (bool(self.applied) or self.is_outranked))
            )
        )

    def all_told(self) -> Conversing[None]:
        yield Until(lambda: self.is_all)

    @property
    def is_outranked(self) -> bool:
        return any(isinstance(each, Outranked) for each in self.refused.values())

    @property
    def is_written(self) -> bool:
        return are_met(self.needs, self.applied)

    @property
    def is_refused(self) -> bool:
        """Whether the level cannot be met."""
        return not may_be_met(self.needs, self.refused)

    @property
    def is_all(self) -> bool:
        """Whether everybody who was asked has answered."""
        return len(self.told) == len(self.asked)

    @property
    def silent(self) -> list[NodeId]:
        """Those that have not answered, or were down."""
        return [node for node in self.everyone if node not in self.told]


def write_row(
    talk: Conversation, asked: WriteRow, hints: Hints, answer: Callable[[ClientAnswer], None]
) -> Conversing[None]:
    """Write it, and say what became of it; then wait for the rest, who may need hints.

    Raises RequestFailed if nothing was sent.
    """
    was_sent, attempt = False, asked.attempt
    if attempt.version.number:
        yield from wait_until_given(talk, asked.table, attempt.version.number)
    time = attempt.version.time
    if attempt.kind == "first" or time > talk.context.wall_us + AHEAD_US:
        newest = yield from newest_of(talk, asked)
        if attempt.kind == "first" and time <= newest:
            answer(NotWritten(request=asked.request, refused=Late(newest)))
            return
        # Whoever says that the row has a time far ahead is not believed (R33).
        attempt = msgspec.structs.replace(attempt, above=newest)
    # Every repeat has the same version, and so changes nothing twice (R4).
    attempt = msgspec.structs.replace(attempt, kind="merge")
    asked = msgspec.structs.replace(asked, attempt=attempt)
    while True:
        try:
            replicas, needs = talk.replicas(asked.table, asked.key, asked.level)
        except RequestFailed as failed:
            if not was_sent:
                raise
            answer(Failed(request=asked.request, why="unknown", detail=failed.detail))
            return
        apply = ApplyRow(table=asked.table, key=asked.key, edits=asked.edits, attempt=attempt)
        # All, not as few as are needed: each one left out would have to be mended (R6).
        up = talk.context.in_order(replicas.everyone)
        this = _Round(replicas.everyone, needs, up, talk.ask(dict.fromkeys(up, apply)))
        try:
            yield from this.known()
        except TopologyReplaced:
            # Some replica may have it: from here on "not written" cannot be said (R9).
            was_sent = True
            continue
        except Silent:
            # Silence says neither yes nor no (R9).
            answer(Failed(request=asked.request, why="unknown"))
            _hint(this, hints, asked)
            return
        answer(_outcome(asked, this, was_sent=was_sent))
        if this.is_written:
            with suppress(Silent, TopologyReplaced):
                yield from this.all_told()
            _hint(this, hints, asked)
        return


def _hint(this: _Round, hints: Hints, asked: WriteRow) -> None:
    for node in this.silent:
        hints.keep(node, asked)


def _outcome(asked: WriteRow, this: _Round, *, was_sent: bool) -> ClientAnswer:
    if this.is_written:
        return RowWritten(request=asked.request)
    refused = max(this.refused.values(), key=_gravity)
    # Only here is it certain that no replica has it.
    if this.is_all and not this.applied and not was_sent:
        return NotWritten(request=asked.request, refused=refused)
    if isinstance(refused, Outranked):  # whatever became of it, the lease is gone
        lost = msgspec.structs.replace(refused, is_partial=True)
        return NotWritten(request=asked.request, refused=lost)
    return Failed(
        request=asked.request, why="unknown", detail=f"some replicas refuse it: {refused}"
    )


def _gravity(refused: Refused) -> tuple[int, int]:
    """The rank of a refusal: of several, the client is told the one that it can do least about."""
    match refused:
        case Ahead(bound):
            return 1, bound
        case Late(horizon):
            return 2, horizon
        case Outranked(fence):
            return 3, fence
