"""Drawing the version of a write: the first round of an ordered write (R4).

The version must be above all that was acknowledged before the write began, wherever its clocks
were. So a quorum is asked for the newest version that the row ever had there, and for the horizon
that it has promised. Two quorums share a replica; that replica had the acknowledged write, so the
version that is drawn lies above it.

The client gets the version before any replica has the write. From then on it says the same at each
repetition, to whichever node: so one write never has two versions, and cannot take effect twice.

Two writes must not share a version either, or each of them could win some of the columns. A node
draws times that only it draws: of `SLOTS` times in a row each node has one.
"""

from contextlib import suppress
from zlib import crc32

from tenure.base.keys import Key
from tenure.protocol.replication.conversation import (
    Conversation,
    Conversing,
    RequestFailed,
    TooFewReplicas,
    TopologyReplaced,
    Until,
)
from tenure.protocol.replication.levels import Level
from tenure.protocol.replication.messages import DrawVersion, VersionDrawn, WriteRow
from tenure.protocol.replication.operations import ReadParts, ReadState
from tenure.protocol.replication.row.limits import AHEAD_US, LAST_US
from tenure.protocol.replication.row.versions import Version, version_of
from tenure.protocol.topology.records import NodeId, Topology

SLOTS = 512
"""Microseconds: two for each of 256 nodes. The times of a row that is written more than some 2,000
times a second run ahead of the clock, which only shows in pages in the order of time.
"""
ROWS = 4_096
"""Rows are told apart by a hash: two that share a place draw different times for no need. That
harms nobody, as no drawn time is far ahead of the clock and of what the row has.
"""
DRAWN_AHEAD_US = AHEAD_US // 2
"""How far drawn times may run ahead of this node's clock: other replicas' clocks may be behind it
by as much again, and they must take the write.
"""


class DrawnTimes:
    """The times that this node has drawn, so that it draws none twice."""

    def __init__(self) -> None:
        self._last: dict[int, int] = {}

    def draw(self, key: Key, above: int, slot: int, most: int) -> int:
        """The first time of the slot that is above `above`, and above all drawn for the row.
        Raises RequestFailed if it is above `most`: versions of the row were drawn so quickly
        that it would be refused as ahead.
        """
        row = crc32(key) % ROWS
        first = max(above, self._last.get(row, 0)) + 1
        time = first + (slot - first) % SLOTS
        if time > most:
            raise RequestFailed(f"the next time for it, {time}, is above {most}", "overloaded")
        self._last[row] = time
        return time


def slot_of(node: NodeId, topology: Topology) -> int:
    """The slot of a node. Nodes of one topology have different ones; so have those of two that
    follow each other, since a write may be under way while a node's place in the order changes.
    Raises TooFewReplicas if the node is no longer on the ring, and so has none.
    """
    place = topology.place(node)
    if place is None:
        raise TooFewReplicas
    return (2 * place + topology.version % 2) % SLOTS


def draw_version(
    talk: Conversation, drawn: DrawnTimes, asked: DrawVersion
) -> Conversing[VersionDrawn]:
    """Ask a quorum, and draw."""
    told = yield from _newest(talk, asked)
    context = talk.context
    newest = max(time for time, _ in told)
    known = max(newest, *(promised for _, promised in told))
    # A floor ahead of this clock would be drawn above for every later write (R33).
    above = max(known, min(asked.floor - 1, context.wall_us))
    most = min(max(known, context.wall_us) + DRAWN_AHEAD_US, LAST_US)
    slot = slot_of(context.node, context.topology)
    time = drawn.draw(asked.key, above, slot, most)
    return VersionDrawn(request=asked.request, version=Version(0, time), newest=newest)


def newest_of(talk: Conversation, asked: WriteRow) -> Conversing[int]:
    """Ask a quorum for the newest time of the row, where the client has not, or is not believed."""
    told = yield from _newest(talk, asked)
    return max(time for time, _ in told)


def _newest(talk: Conversation, asked: DrawVersion | WriteRow) -> Conversing[list[tuple[int, int]]]:
    """The newest time of the row, and the horizon, that each replica of a quorum tells. Nothing is
    written yet, so another topology only begins it anew.
    """
    question = ReadParts(table=asked.table, key=asked.key, questions=(), digest_only=True)
    while True:
        with suppress(TopologyReplaced):
            replicas, needs = talk.replicas(asked.table, asked.key, first_level(asked.level))
            nearest = talk.context.in_order(replicas.everyone)
            told = yield from talk.ask_fewest(needs, nearest, question)
            found = [
                (version_of(each.newest).time, each.promised)
                for each in told.values()
                if each.newest
            ]
            old = [node for node, each in told.items() if not each.newest]
            return found + (yield from _told_by_old(talk, asked, old)) if old else found


def _told_by_old(
    talk: Conversation, asked: DrawVersion | WriteRow, old: list[NodeId]
) -> Conversing[list[tuple[int, int]]]:
    """The same of nodes of an older release, which tell it only with all that a row has there."""
    states = talk.ask(dict.fromkeys(old, ReadState(table=asked.table, key=asked.key)))
    yield Until(lambda: len(states) == len(old))
    return [(version_of(each.state.newest).time, each.state.sealed) for each in states.values()]


def first_level(level: Level) -> Level:
    """The level of the first round: what shares a replica with everybody who is to be seen."""
    return level if level in ("local_quorum", "each_quorum") else "quorum"
