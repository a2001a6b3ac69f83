"""Copying: the first step of a change, in which a node gets the existing rows (R17, R28).

What the node has in these ranges is wiped first: it may come from an earlier attempt, and lack what
was settled since. Then the ranges are copied in parts, several at once and from any replicas of the
old lists. None of these needs to have everything, because the second step asks a majority.

The copy goes no faster than allowed, because requests need the same disks. A replica that does not
answer in time is no longer asked for this piece; another one goes on behind the same mark.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import TypeVar

from tenure.base.instants import MILLISECOND_NS, SECOND_NS, Instant
from tenure.base.ranges import KeyRange
from tenure.protocol.replication.conversation import Conversing, Silent, TopologyReplaced, Until
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.operations import ReadPiece
from tenure.protocol.replication.row.copies import FillingPart, FillingRecord
from tenure.protocol.replication.tasks import BeginFilling, TakePiece, Task, WipeRange
from tenure.protocol.replication.upkeep.errand import DiskRefused, Errand, SendingRate
from tenure.protocol.topology.records import NodeId

R = TypeVar("R")
PIECES_AT_ONCE = 2
"""The pieces that are asked of one replica at once: while one is written here, the next is read
there.
"""
AGAIN_NS = SECOND_NS
"""The pause after which something is tried again."""
BUSY_NS = 20 * MILLISECOND_NS
"""The pause after which a piece that the disk has refused is first written again: a busy disk
refuses for as long as it takes to write some megabytes. Each further pause is twice as long, up to
`AGAIN_NS`: a full disk refuses for longer.
"""
TURN_NS = MILLISECOND_NS
"""The pause between two steps of a wipe, in which requests have their turn."""
BURST_NS = 50 * MILLISECOND_NS
"""How far a copy may be ahead of its rate."""
CUT_BYTES = 8
"""The length at which a range is cut: so many bytes behind what all of its positions begin with."""


class Copying:
    def __init__(self, context: NodeContext, version: int, gained: Sequence[KeyRange]) -> None:
        assert gained, "a node that gains nothing has nothing to copy"
        self._context = context
        self._version = version
        self._gained = gained
        self._lanes: Counter[NodeId] = Counter()
        """The pieces that are asked of each replica, or are written here."""
        self._silent: set[NodeId] = set()
        """The replicas that did not answer last: others are asked first."""
        self._rate = SendingRate(context.config.copy_bytes_a_second, ahead_ns=BURST_NS)

    def run(self, talk: Errand) -> Conversing[None]:
        """Wipe, unless that was done; then copy all parts, until they are durable."""
        if self._context.filling.began != self._version:  # of another change nothing counts (R17)
            yield from self._wipe(talk)
            yield from self._keep_record(talk)
        numbers = range(len(self._context.filling.parts))
        parts = (partial(self._copy_part, number) for number in numbers)
        yield from talk.together(parts, at_once=len(numbers))
        assert all(part.is_done for part in self._context.filling.parts)
        # The managers go on when this node says that it is through: it must not forget this (R15).
        yield from talk.durable()

    def _wipe(self, talk: Errand) -> Conversing[None]:
        """Forget what was there, range by range."""
        for key_range in self._gained:
            is_all = False
            while not is_all:
                wiped = yield from self._do(talk, WipeRange(key_range))
                is_all = wiped.is_all
                yield from talk.pause(TURN_NS)

    def _keep_record(self, talk: Errand) -> Conversing[None]:
        """From here on it is a copy of this change."""
        count = max(1, self._context.config.copy_parts // len(self._gained))
        parts = [part for each in self._gained for part in split(each, count)]
        record = FillingRecord(self._version, tuple(map(FillingPart, parts)))
        yield from self._do(talk, BeginFilling(record))
        self._context.filling = record

    def _do(self, talk: Errand, step: Task[R], pause_ns: int = AGAIN_NS) -> Conversing[R]:
        """Have the disk do it, again and again while it refuses."""
        while True:
            try:
                return (yield from talk.run(step))
            except DiskRefused:
                yield from talk.pause(pause_ns)
                pause_ns = min(2 * pause_ns, AGAIN_NS)

    # --- pieces ---

    def _copy_part(self, number: int, talk: Errand) -> Conversing[None]:
        """Copy piece after piece, each behind the mark of the one before."""
        while not (part := self._context.filling.parts[number]).is_done:
            source = yield from self._lane(part)
            self._lanes[source] += 1
            try:
                yield from self._copy_piece(number, source, talk)
            finally:
                self._lanes[source] -= 1

    def _lane(self, part: FillingPart) -> Conversing[NodeId]:
        """Wait until another piece may be on its way; return the replica that it comes from."""
        while (source := self._free_source(part)) is None:
            look_at = Instant(self._context.now + AGAIN_NS)  # nothing says who is up again
            yield Until(lambda: self._free_source(part) is not None, at=look_at)
        return source

    def _free_source(self, part: FillingPart) -> NodeId | None:
        """The replica of the old list to ask next, if any may be asked."""
        context = self._context
        sources = context.in_order(context.topology.at(part.range.start).old)
        free = [each for each in sources if self._lanes[each] < PIECES_AT_ONCE]
        return min(free, key=lambda each: (each in self._silent, self._lanes[each]), default=None)

    def _copy_piece(self, number: int, source: NodeId, talk: Errand) -> Conversing[None]:
        context = self._context
        yield from talk.turn(self._rate)
        before = context.filling.parts[number]
        most_bytes = context.config.piece_bytes
        question = ReadPiece(range=before.range, mark=before.mark, most_bytes=most_bytes)
        try:
            told = yield from talk.ask_one(source, question)
        except Silent:
            self._silent.add(source)
            return
        except TopologyReplaced:
            return  # it is asked for again, under the topology that counts now (R16)
        self._silent.discard(source)
        size = len(told.rows)
        self._rate.spend(context.now, size)
        part = FillingPart(before.range, told.mark, before.bytes + size, is_done=told.is_all)
        # With the last rows come the promises and seals of their range: writes that the source
        # would refuse must be refused here, too (R25).
        horizons = told.horizons if told.is_all else ()
        # While the disk refuses it, the lane asks for nothing: that is back-pressure.
        yield from self._do(talk, TakePiece(told.rows, horizons, number, part), BUSY_NS)
        context.filling = context.filling.with_part(number, part)


def split(whole: KeyRange, count: int) -> Iterator[KeyRange]:
    """A range in so many parts, or fewer, that are as long as each other on the ring.

    Positions of an ordered table are keys, which often begin alike. So what the ends of the range
    have in common is left as it is, and the bytes behind it are divided.
    """
    size = 0 if whole.end is None else _alike(whole.start, whole.end)
    common = whole.start[:size]
    start = _number(whole.start[size:])
    end = 1 << 8 * CUT_BYTES if whole.end is None else _number(whole.end[size:])
    cuts = [
        common + (start + (end - start) * place // count).to_bytes(CUT_BYTES)
        for place in range(1, count)
        if end - start >= count
    ]
    inner = [cut for cut in cuts if cut > whole.start and (whole.end is None or cut < whole.end)]
    bounds: list[bytes | None] = [whole.start, *inner, whole.end]
    for lower, upper in pairwise(bounds):
        assert lower is not None
        yield KeyRange(lower, upper)


def _number(position: bytes) -> int:
    return int.from_bytes(position[:CUT_BYTES].ljust(CUT_BYTES, b"\0"))


def _alike(one: bytes, other: bytes) -> int:
    """How many bytes they have in common at their beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    shorter = min(len(one), len(other))
    return next((at for at, (this, that) in pairs if this != that), shorter)
