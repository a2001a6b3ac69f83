"""Giving: one range leaves this owner, copied while it is served; its last difference follows.

Each order is carried out by a machine of its own, which ends with it. It asks the application for
chunks, two ahead, and sends them as the taker takes them in. When a difference is small enough, or
there have been enough of them, the application settles: what has begun in the range, and must
finish before its keys move, finishes, up to a deadline. Then the owner machine is told, which ends
the belief; only then comes the last difference. Any failure ends it: only the owner machine decides
whether to begin anew.
"""

from collections import deque
from typing import Literal, TypeAlias, assert_never

import msgspec

from tenure.base.instants import FAR_FUTURE, MILLISECOND_NS, SECOND_NS, Instant, in_seconds
from tenure.protocol.lease.messages import Address, HandOff
from tenure.protocol.lease.owner.transfer import (
    CALL_NS,
    CHUNKS_UNDER_WAY,
    PROGRESS_NS,
    Accepted,
    CallFailed,
    ChannelMachine,
    Chunk,
    HangUp,
    Last,
    Listen,
    NotTaken,
    Offer,
    PeerErred,
    PeerLost,
    PeerMessage,
    PeerSaid,
    Say,
    Taken,
    Whole,
)

ROUNDS = 5
"""The rounds of differences while the range is served. More rounds would not catch up with an
application that changes state faster than it can be sent; the last difference is then as large as
it is.
"""
SMALL_BYTES = 64 * 1024
"""A small difference: it is sent, or put into the state, in a millisecond or so, for which nobody
may serve the range."""
SETTLE_NS = 10 * SECOND_NS
"""How long operations that have begun in the range may take to finish, unless the owner leaves
sooner: longer than a request takes, and a small part of the time for which an order stands.
"""
LONG_SETTLE_NS = 100 * MILLISECOND_NS
"""If settling takes longer than this, another difference is sent while the range is served: the
range was written to meanwhile, and nobody serves it during the last difference."""
CHUNKS_IN_HAND = 2
"""The chunks of the application that are made and not yet sent: it makes one while another waits.
"""


# --- events ---------------------------------------------------------------------------------------


class PeerReached(msgspec.Struct, frozen=True):
    """The channel to the taker is open."""


class ExportBegun(msgspec.Struct, frozen=True):
    """The application has begun to export: chunks can be asked for."""


class ChunkMade(msgspec.Struct, frozen=True):
    """The application's next chunk; None if there are no more."""

    data: bytes | None


class Settled(msgspec.Struct, frozen=True):
    """Everything that had begun in the range has finished, and nothing begins there that must
    finish.
    """


class Withdrawn(msgspec.Struct, frozen=True):
    """No cache can still hit any key of the range (V12)."""


class ServingEnded(msgspec.Struct, frozen=True):
    """The range is no longer served: the next difference is the last."""

    writes: tuple[bytes, ...] = ()
    """The knowledge of its writes, for a taker that gives read leases too (V15)."""


class GivingStopped(msgspec.Struct, frozen=True):
    """The owner machine no longer wants the hand-over."""


GivingEvent: TypeAlias = (
    PeerReached
    | PeerSaid
    | PeerErred
    | PeerLost
    | ExportBegun
    | ChunkMade
    | CallFailed
    | Settled
    | Withdrawn
    | ServingEnded
    | GivingStopped
)


# --- actions --------------------------------------------------------------------------------------


class Reach(msgspec.Struct, frozen=True):
    """Make a channel to a taker, and say PeerReached."""

    address: Address


class Export(msgspec.Struct, frozen=True):
    """Have the application export the range, from the last mark on, if any."""


class MakeChunk(msgspec.Struct, frozen=True):
    """Ask for the next chunk, and say ChunkMade."""

    is_urgent: bool


class Settle(msgspec.Struct, frozen=True):
    """Let operations that have begun in the range finish, and say Settled. Wait for them until the
    deadline; those that have not finished by then go on without their lease.
    """

    deadline: Instant


class Withdraw(msgspec.Struct, frozen=True):
    """Take back every read lease of the range, and say Withdrawn. However long that takes, the
    range is served here meanwhile (V12).
    """


class EndServing(msgspec.Struct, frozen=True):
    """All but the last difference was taken: tell the owner machine CopiedAhead."""


class HaveGiven(msgspec.Struct, frozen=True):
    """The taker has everything: tell the owner machine HandedOver. Nothing follows but HangUp."""


class FailGiving(msgspec.Struct, frozen=True):
    """Tell the owner machine HandOffFailed, and the log why. Nothing follows but HangUp."""

    why: str


GivingAction: TypeAlias = (
    Reach
    | Say
    | Listen
    | Export
    | MakeChunk
    | Settle
    | Withdraw
    | EndServing
    | HaveGiven
    | FailGiving
    | HangUp
)
Phase: TypeAlias = Literal[
    "new", "reaching", "offered", "copying", "settling", "copied", "ending", "all sent", "over"
]


class Giving(ChannelMachine[GivingEvent, GivingAction]):
    """An order that is being carried out."""

    def __init__(
        self,
        order: HandOff,
        offer: Offer,
        settle_ns: int = SETTLE_NS,
        *,
        gives_reads: bool = False,
    ) -> None:
        super().__init__()
        self.order = order
        self._gives_reads = gives_reads
        self._is_withdrawn = not gives_reads
        self._is_settled = False
        self._settle_ns = settle_ns
        self._settle_from = self._settle_by = FAR_FUTURE
        self._has_settled = False
        self._offer = offer
        self._phase: Phase = "new"
        self._rounds = 0
        self._bytes = 0
        """The bytes of this round."""
        self._in_hand: deque[bytes] = deque()
        self._wants_writes = False
        self._writes: deque[bytes] = deque()
        """The knowledge of writes that is not sent yet: a few chunks, which are there already."""
        self._is_exporting = self._is_making = False
        self._has_made_all = True
        self._under_way = 0
        self._heard_by = FAR_FUTURE
        """The time by which the taker must have said something."""
        self._called_by = FAR_FUTURE
        """The time by which the application must have answered: nobody serves the range
        meanwhile.
        """

    # --- the machine ---

    def invariants(self) -> None:
        """The bytes under way and in hand are bounded, and the taker is always waited for."""
        assert 0 <= self._under_way <= CHUNKS_UNDER_WAY
        assert len(self._in_hand) <= CHUNKS_IN_HAND
        assert not self._under_way or self._phase == "over" or self._heard_by < FAR_FUTURE
        assert self._phase == "settling" or self._settle_by == FAR_FUTURE
        waits = not (self._is_settled and self._is_withdrawn)
        assert self._phase != "settling" or waits
        is_called = self._phase == "ending" and self._is_called
        assert is_called == (self._called_by < FAR_FUTURE)

    def _advance(self, now: Instant) -> None:
        if self._phase == "new":
            self._phase = "reaching"
            self._actions.append(Reach(self.order.address))
            self._wait(now, has_heard=False)
        elif now >= self._heard_by:
            self._fail(f"nothing was heard of it for {in_seconds(PROGRESS_NS):g} s")
        elif now >= self._called_by:
            self._fail(
                f"the application has not given its last difference for {in_seconds(CALL_NS):g} s"
            )
        elif now >= self._settle_by:
            self._on_settled(now)

    def _wait(self, now: Instant, *, has_heard: bool) -> None:
        if self._phase != "ending" or not self._is_called:
            self._called_by = FAR_FUTURE
        elif self._called_by == FAR_FUTURE:
            self._called_by = Instant(now + CALL_NS)
        is_waiting = self._phase in ("reaching", "offered", "all sent") or self._under_way > 0
        if self._phase == "over" or not is_waiting:
            self._heard_by = FAR_FUTURE
        elif has_heard or self._heard_by == FAR_FUTURE:
            self._heard_by = Instant(now + PROGRESS_NS)

    @property
    def _wake_at(self) -> Instant:
        return min(self._heard_by, self._called_by, self._settle_by)

    def _take(self, now: Instant, event: GivingEvent) -> None:
        self._on_event(now, event)
        self._wait(now, has_heard=isinstance(event, PeerReached | PeerSaid))

    def _on_event(self, now: Instant, event: GivingEvent) -> None:
        match event:
            case PeerReached():
                self._phase = "offered"
                self._actions += [Say(self._offer), Listen()]
            case PeerSaid(message=message):
                self._hear(now, message)
            case PeerErred(why=why) | PeerLost(why=why) | CallFailed(why=why):
                self._fail(why)
            case ExportBegun():
                self._is_exporting, self._called_by = False, FAR_FUTURE
                self._make_more()
            case ChunkMade(data=data):
                self._on_made(now, data)
            case Settled():
                if self._phase == "settling":
                    self._on_settled(now)
            case Withdrawn():
                # Served here until now: the taker could not tell these caches of a write (V12).
                self._is_withdrawn = True
                self._end_settling(now)
            case ServingEnded(writes=writes):
                self._phase = "ending"
                if self._wants_writes:
                    self._writes.extend(writes)
                self._begin_round()
            case GivingStopped():
                self._end()
                self._actions.append(HangUp())
            case _:
                assert_never(event)

    def _end(self) -> None:
        self._phase = "over"
        self._heard_by = self._called_by = self._settle_by = FAR_FUTURE

    def _fail(self, why: str) -> None:
        self._end()
        self._actions += [FailGiving(why), HangUp()]

    # --- what the taker says ---

    def _hear(self, now: Instant, message: PeerMessage) -> None:
        match message:
            case NotTaken(why=why):
                self._fail(f"it refused: {why}")
                return
            case Accepted(wants_writes=wants_writes) if self._phase == "offered":
                self._phase, self._wants_writes = "copying", wants_writes
                self._begin_round()
            case Taken() if self._under_way > 0:
                self._under_way -= 1
                self._send_more(now)
            case Whole() if self._phase == "all sent" and self._under_way == 0:
                self._end()
                self._actions += [HaveGiven(), HangUp()]
                return
            case _:
                self._fail(f"it said {type(message).__name__}, which answers nothing")
                return
        self._actions.append(Listen())

    # --- what it is sent ---

    def _begin_round(self) -> None:
        self._rounds += 1
        self._bytes = 0
        self._has_made_all = False
        self._is_exporting = True
        self._actions.append(Export())

    @property
    def _is_called(self) -> bool:
        """Whether the application has been asked for something that it has not given yet."""
        return self._is_exporting or self._is_making

    def _make_more(self) -> None:
        if not (self._has_made_all or self._is_making) and len(self._in_hand) < CHUNKS_IN_HAND:
            self._is_making = True
            self._actions.append(MakeChunk(is_urgent=self._phase == "ending"))

    def _on_made(self, now: Instant, data: bytes | None) -> None:
        self._is_making, self._called_by = False, FAR_FUTURE
        self._has_made_all = data is None
        if data is not None:
            self._in_hand.append(data)
            self._bytes += len(data)
        self._send_more(now)

    def _send_more(self, now: Instant) -> None:
        is_last = self._phase == "ending"
        while (self._writes or self._in_hand) and self._under_way < CHUNKS_UNDER_WAY:
            self._under_way += 1
            tells_writes = bool(self._writes)
            data = (self._writes or self._in_hand).popleft()
            chunk = Chunk(data=data, is_urgent=is_last, tells_writes=tells_writes)
            self._actions.append(Say(chunk))
        self._make_more()
        if not self._has_made_all or self._in_hand or self._writes:
            return
        if is_last:
            # From here on the taker may have it: only its word or the manager's settles it (P13).
            self._phase = "all sent"
            self._actions.append(Say(Last()))
        elif self._phase == "copying" and self._under_way == 0:
            self._end_round(now)

    def _end_round(self, now: Instant) -> None:
        is_little = self._rounds > 1 and self._bytes <= SMALL_BYTES
        if not (is_little or self._rounds > ROUNDS):
            self._begin_round()
        elif not self._has_settled:  # operations that have begun in the range end first (P13)
            self._phase, self._settle_from = "settling", now
            self._settle_by = Instant(now + self._settle_ns)
            self._actions.append(Settle(self._settle_by))
            # Without a deadline: a cache that hit past it would be stale (V12).
            if self._gives_reads:
                self._actions.append(Withdraw())
        else:
            self._end_serving()

    def _on_settled(self, now: Instant) -> None:
        """Go on after the range has settled, or was waited for long enough."""
        self._is_settled, self._settle_by = True, FAR_FUTURE
        self._end_settling(now)

    def _end_settling(self, now: Instant) -> None:
        if self._phase != "settling" or not (self._is_settled and self._is_withdrawn):
            return
        self._has_settled = True
        # Much was written meanwhile, and the last difference is to be small: nobody serves it.
        if now - self._settle_from >= LONG_SETTLE_NS:
            self._phase = "copying"
            self._begin_round()
        else:
            self._end_serving()

    def _end_serving(self) -> None:
        self._phase = "copied"
        self._actions.append(EndServing())
