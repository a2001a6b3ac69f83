"""Settling a whole row: what a quorum has of it is merged, and replicas are given what they lack.

A mend of some columns is not enough if replicas know of different adoptions (R21): some of them
still have writes of a former owner that the adoption did not find. `mend_row` brings them to the
latest. It does the same where replicas differ in a whole row that is read (R7). An adoption makes
what it finds the latest: see `adoption`.
"""

from contextlib import suppress
from typing import NamedTuple

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.protocol.replication.conversation import (
    Conversation,
    Conversing,
    TopologyReplaced,
    Until,
)
from tenure.protocol.replication.levels import Level, Need, are_met
from tenure.protocol.replication.operations import MergeState, OfRow, ReadState, StateRead
from tenure.protocol.replication.row.states import RowState, lacks, merged
from tenure.protocol.topology.records import NodeId, Replicas


class RowAsked(NamedTuple):
    """A row, and how many of its replicas must answer."""

    table: str
    key: Key
    level: Level = "quorum"


class ToldStates(NamedTuple):
    replicas: Replicas
    needs: list[Need]
    told: dict[NodeId, StateRead]

    @property
    def states(self) -> dict[NodeId, RowState]:
        return {node: each.state for node, each in self.told.items()}

    @property
    def refused(self) -> list[StateRead]:
        """The answers of replicas that do not promise."""
        return [each for each in self.told.values() if each.refused is not None]


def mend_row(talk: Conversation, row: RowAsked) -> Conversing[RowState]:
    """Bring a quorum to what the latest adoption and all writes since say; returns that."""
    while True:
        with suppress(TopologyReplaced):
            found = yield from told_states(talk, row, ReadState(table=row.table, key=row.key))
            state = merged(list(found.states.values()))
            yield from give(talk, row, found, state)
            return state


def told_states(
    talk: Conversation, row: RowAsked, question: OfRow[StateRead]
) -> Conversing[ToldStates]:
    """What all replicas have that are up; those that do not answer soon are not waited for, if
    there are enough others. If one does not promise, nobody is waited for.
    """
    context = talk.context
    replicas, needs = talk.replicas(*row)
    up = context.in_order(replicas.everyone)
    found = ToldStates(replicas, needs, talk.ask(dict.fromkeys(up, question)))
    # Each more that tells is one less to mend, but one that is down must cost no deadline.
    soon = Instant(context.now + context.config.spare_ns)
    yield Until(lambda: bool(found.refused) or len(found.told) == len(up), at=soon)
    yield Until(lambda: bool(found.refused) or are_met(needs, found.told))
    return found


def give(talk: Conversation, row: RowAsked, found: ToldStates, state: RowState) -> Conversing[None]:
    """Give the state to the replicas that lack some of it, until enough have all of it."""
    states = found.states
    have = {node for node, each in states.items() if not lacks(each, state)}
    needy = [node for node in talk.context.in_order(found.replicas.everyone) if node not in have]
    mend = MergeState(table=row.table, key=row.key, state=state)
    taken = talk.ask(dict.fromkeys(needy, mend))
    # One that wants more has heard of a later adoption; whoever made that settles the row itself.
    yield Until(
        lambda: are_met(
            found.needs, have | {node for node, each in taken.items() if not each.wants_whole}
        )
    )
