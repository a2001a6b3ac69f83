"""Copying: the first step of a change, in which a node gets the existing rows (R17, R28).

What the node has in these ranges is wiped first: it may come from an earlier attempt, and lack what
was settled since. Then the ranges are copied in parts, several at once and from any replicas of the
old lists. None of these needs to have everything, because the second step asks a majority.

The copy goes no faster than allowed, because requests need the same disks. A replica that does not
answer in time is no longer asked for this piece; another one goes on behind the same mark.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import msgspec

from tenure.base.instants import FAR_FUTURE, MILLISECOND_NS, SECOND_NS, Instant
from tenure.base.ranges import KeyRange
from tenure.protocol.replication.copies import FillingPart, FillingRecord
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.operations import PieceRead, ReadPiece
from tenure.protocol.replication.tasks import BeginFilling, TakePiece, TaskDone, WipeRange
from tenure.protocol.topology.records import NodeId

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


class Lane(msgspec.Struct):
    """A piece on its way."""

    number: int
    """The number of its part."""
    source: NodeId
    deadline: Instant
    piece: TakePiece | None = None
    """The piece that has arrived and is to be written."""
    pause_ns: int = BUSY_NS
    """The pause until it is written again, if the disk refuses it."""


class Copying:
    """See above."""

    def __init__(
        self,
        context: NodeContext,
        version: int,
        gained: Sequence[KeyRange],
        on_through: Callable[[], None],
    ) -> None:
        self.version = version
        self.wake_at = FAR_FUTURE
        self._context = context
        self._gained = gained
        self._on_through = on_through
        """All is copied, and durable."""
        self._lanes: dict[int, Lane] = {}
        self._silent: set[NodeId] = set()
        """The replicas that did not answer last: others are asked first."""
        self._free_at = Instant(0)
        """When the next piece may be asked for."""
        self._later: Callable[[], None] | None = None
        self._is_over = False

    # --- from the beginning ---

    def begin(self, now: Instant) -> None:
        """Wipe, unless that was done; then copy."""
        if self._context.filling.began == self.version:
            self._go_on(now)
        else:
            self.wipe(list(self._gained))

    def wipe(self, ranges: list[KeyRange]) -> None:
        """Forget what was there, range by range."""

        def done(result: TaskDone) -> None:
            rest = ranges[1:] if result.is_all else ranges
            if rest:
                self._do_later(lambda: self.wipe(rest), TURN_NS)
            else:
                self.keep_record()

        self._context.run(
            WipeRange(ranges[0]), done, lambda: self._do_later(lambda: self.wipe(ranges), AGAIN_NS)
        )

    def keep_record(self) -> None:
        """Keep the record: from here on it is a copy of this change."""
        count = max(1, self._context.config.copy_parts // len(self._gained))
        parts = [part for each in self._gained for part in split(each, count)]
        record = FillingRecord(self.version, tuple(map(FillingPart, parts)))

        def done(result: TaskDone) -> None:
            del result
            self._context.filling = record
            self._go_on(self._context.now)

        self._context.run(
            BeginFilling(record), done, lambda: self._do_later(self.keep_record, AGAIN_NS)
        )

    def _do_later(self, what: Callable[[], None], after_ns: int) -> None:
        self._later = what
        self._wake(Instant(self._context.now + after_ns))

    # --- pieces ---

    def _go_on(self, now: Instant) -> None:
        """Ask for as many pieces as there may be at once."""
        if self._is_over:
            return
        parts = self._context.filling.parts
        missing = [number for number, part in enumerate(parts) if not part.is_done]
        if not missing:
            self._is_over = True
            self._context.when_durable(self._on_through)
            return
        busy = {lane.number for lane in self._lanes.values()}
        for number in missing:
            if number not in busy and self._free_at <= now + BURST_NS:
                self._ask(now, number, parts[number])
        self._wake_for_next(now)

    def _ask(self, now: Instant, number: int, part: FillingPart) -> None:
        context = self._context
        counts: dict[NodeId, int] = {}
        for lane in self._lanes.values():
            counts[lane.source] = counts.get(lane.source, 0) + 1
        sources = context.in_order(context.topology.at(part.range.start).old)
        free = [each for each in sources if counts.get(each, 0) < PIECES_AT_ONCE]
        if not free:
            return
        source = min(free, key=lambda each: (each in self._silent, counts.get(each, 0)))
        body = ReadPiece(
            ticket=context.draw_ticket(),
            range=part.range,
            mark=part.mark,
            most_bytes=context.config.piece_bytes,
        )
        deadline = Instant(now + context.config.patience_ns)
        self._lanes[body.ticket] = Lane(number, source, deadline)
        context.ask(self, source, body)

    def on_told(self, now: Instant, node: NodeId, body: PieceRead) -> None:
        """A piece is here."""
        self._silent.discard(node)
        lane, context = self._lanes.get(body.ticket), self._context
        context.forget(body.ticket)
        if lane is None:
            return
        size = len(body.rows)
        cost_ns = size * SECOND_NS // context.config.copy_bytes_a_second
        self._free_at = Instant(max(self._free_at, now) + cost_ns)
        before = context.filling.parts[lane.number]
        part = FillingPart(before.range, body.mark, before.bytes + size, is_done=body.is_all)
        horizons = body.horizons if body.is_all else ()
        lane.piece = TakePiece(body.rows, horizons, lane.number, part)
        self._take(body.ticket, lane, lane.piece)

    def _take(self, ticket: int, lane: Lane, piece: TakePiece) -> None:
        context = self._context
        lane.deadline = FAR_FUTURE  # the disk says what became of it

        def done(result: TaskDone) -> None:
            del result
            if context.filling.began == self.version:
                context.filling = context.filling.with_part(piece.number, piece.part)
            self._lanes.pop(ticket, None)
            self._go_on(context.now)

        def refused() -> None:
            """The lane waits, and asks for nothing meanwhile: that is back-pressure."""
            lane.deadline = Instant(context.now + lane.pause_ns)
            lane.pause_ns = min(2 * lane.pause_ns, AGAIN_NS)
            self._wake_for_next(context.now)

        context.run(piece, done, refused)

    def on_outdated(self, now: Instant) -> None:
        """The replica acts by a later topology, which is on its way."""
        del now

    # --- time, and other topologies ---

    def on_topology(self, now: Instant) -> None:
        """Take a new topology in which this step goes on: pieces are asked for in its version."""
        self._forget()
        if self._context.filling.began == self.version:
            self._go_on(now)

    def advance(self, now: Instant) -> None:
        """Try again what was not answered."""
        self.wake_at = FAR_FUTURE
        if self._later is not None:
            what, self._later = self._later, None
            what()
            return
        for ticket, lane in list(self._lanes.items()):
            if lane.deadline <= now and lane.piece is not None:
                self._take(ticket, lane, lane.piece)
            elif lane.deadline <= now:
                self._context.forget(ticket)
                del self._lanes[ticket]
                self._silent.add(lane.source)
        self._go_on(now)

    def _wake_for_next(self, now: Instant) -> None:
        deadlines = [lane.deadline for lane in self._lanes.values()]
        deadlines.append(Instant(max(self._free_at - BURST_NS, now + 1)))
        if self._free_at <= now + BURST_NS:  # nobody can be asked
            deadlines[-1] = Instant(now + AGAIN_NS)
        self._wake(min(deadlines))

    def _wake(self, at: Instant) -> None:
        if at != self.wake_at:
            self.wake_at = at
            self._context.wake(self, at)

    def _forget(self) -> None:
        for ticket in self._lanes:
            self._context.forget(ticket)
        self._lanes.clear()

    def end(self) -> None:
        """The step is over, or was taken back."""
        self._is_over = True
        self._later = None
        self.wake_at = FAR_FUTURE
        self._forget()


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
