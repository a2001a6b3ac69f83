"""Adopting a row: what an owner does before it counts on what the row says (R19 to R22).

First the fence is raised on all replicas: from then on they refuse what former owners write, and
say what they have. If all have answered, and all have the same, the row is settled: this is the
short way, and the usual one. Otherwise what a quorum has is merged, and a quorum keeps it *as the
state of this adoption*. Anything else that a former owner wrote, at a replica that was not reached,
then belongs to an earlier adoption, and never counts again.

The short way is for the first try only. A second try cannot know whether the first one settled
something at a replica that no longer answers. Nor is there a short way while a node fills: that
node has made no promise, and late writes of a former owner could reach it.
"""

import msgspec

from tenure.protocol.replication.conversation import (
    Conversation,
    Conversing,
    NoRoom,
    Silent,
    TooFewReplicas,
    TopologyReplaced,
)
from tenure.protocol.replication.messages import Adopted, AdoptRow
from tenure.protocol.replication.operations import PromiseFence
from tenure.protocol.replication.request.numbering import check_try, wait_until_given
from tenure.protocol.replication.request.settling import RowAsked, ToldStates, give, told_states
from tenure.protocol.replication.row.states import RowState, merged
from tenure.protocol.replication.row.versions import version_of

FIRST_TRY = 1
"""The number of an owner's first try under a lease. Replicas accept it once, and after no other."""


def adopt_row(talk: Conversation, asked: AdoptRow) -> Conversing[Adopted]:
    """The row is this owner's, or a later one's. Raises Silent if the owner must try again, and
    another RequestFailed for what no owner says.
    """
    check_try(talk, asked)
    yield from wait_until_given(talk, asked.table, asked.number)
    try:
        return (yield from _adopt(talk, asked))
    except NoRoom:
        raise Silent("the node has too many large reads under way") from None
    except (TooFewReplicas, TopologyReplaced):
        # Under another topology this is another try, whose number the owner draws.
        raise Silent from None


def _adopt(talk: Conversation, asked: AdoptRow) -> Conversing[Adopted]:
    row = RowAsked(asked.table, asked.key)
    promise = PromiseFence(
        table=asked.table,
        key=asked.key,
        number=asked.number,
        journal=asked.journal,
        attempt=asked.attempt,
    )
    # Raised before the row is read: no write of a past owner comes after this (R21).
    found = yield from told_states(talk, row, promise)
    for each in found.refused:
        refused = each.refused
        assert refused is not None
        if (refused.fence, refused.journal) == (asked.number, asked.journal):
            raise Silent  # this very try has been made: by a request that came twice
        return Adopted(request=asked.request, refused=refused)
    if not is_settled_already(asked, found):
        # Until a quorum has the same, the next reader might see what this owner did not.
        state = merged(list(found.states.values()))
        yield from give(talk, row, found, _settled_by(asked, state))
    newest = max(version_of(state.newest) for state in found.states.values())
    return Adopted(request=asked.request, newest=newest)


def is_settled_already(asked: AdoptRow, found: ToldStates) -> bool:
    """Whether the short way can be taken."""
    # Otherwise what is the same at all replicas may not stay so.
    if asked.attempt != FIRST_TRY or found.replicas.phase == "filling":
        return False
    if any(node not in found.states for node in found.replicas.everyone):
        return False
    states = [_content(state) for state in found.states.values()]
    return all(state == states[0] for state in states)


def _settled_by(asked: AdoptRow, state: RowState) -> RowState:
    return msgspec.structs.replace(
        state,
        fence=asked.number,
        journal=asked.journal,
        adopted=asked.number,
        attempt=asked.attempt,
    )


def _content(state: RowState) -> tuple[object, ...]:
    return state.entries, state.marker, state.newest, state.adoption
