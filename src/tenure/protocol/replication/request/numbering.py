"""Lease numbers in requests: each is looked at before it comes to a replica (R36)."""

from tenure.base.instants import Instant, seconds
from tenure.protocol.replication.conversation import Conversation, Conversing, RequestFailed, Until
from tenure.protocol.replication.messages import AdoptRow
from tenure.protocol.replication.node_events import AskManagers
from tenure.protocol.replication.row.limits import AHEAD_US

WAIT_NS = seconds(1)
"""How long a request waits for managers, who answer within milliseconds."""


def check_try(talk: Conversation, asked: AdoptRow) -> None:
    """Raise RequestFailed for a try, which is a time, that is far ahead of this node's clock: no
    other handle of the owner would draw one above it.
    """
    if asked.attempt > talk.context.wall_us + AHEAD_US:
        raise RequestFailed(
            f"the try {asked.attempt} is more than a minute ahead of the node's clock, which says "
            f"{talk.context.wall_us}: set the clocks"
        )


def wait_until_given(talk: Conversation, table: str, number: int) -> Conversing[None]:
    """Wait until it is known whether managers have given a lease of this number, of the pool that
    fences the table. Raises RequestFailed if they have not.
    """
    record = talk.context.topology.tables.get(table)
    pool = record.fenced_by if record else ""
    given, since = talk.context.given, talk.context.now
    if not given.is_given(pool, number):
        talk.context.actions.append(AskManagers())
        with given.told_to(talk.on_numbers):
            yield Until(
                lambda: given.is_given(pool, number) or given.is_true_since(since),
                at=Instant(since + WAIT_NS),
            )
    if given.is_given(pool, number):
        return
    if given.is_true_since(since) or not given.may_be_given(pool, number):
        raise RequestFailed(
            f"managers have given no lease of the pool {pool!r} with the number {number}. If they "
            "have, this node has not heard of it: ask again later",
            why="too few replicas",  # a client asks other nodes then, which may have heard of it
        )
