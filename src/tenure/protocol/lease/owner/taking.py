"""Taking: one range comes to this owner; each chunk is imported before the next one comes.

Each channel that is opened to this owner has a machine of its own, which ends with it. The owner
machine says whether an offer is accepted, and whether the state that came may stay: it may only if
the range is granted with it. In every other case, such as a channel that breaks, a source that
sends nonsense, or an application that fails, the state is discarded.

The state of a range has a bound, which the owner may set. A source that sends more is refused, and
told so, as if the application had failed.

A source that was accepted may be silent for as long as its order stands: the owner machine forgets
ranges that it no longer expects. An application may not be silent: if it does not return from a
call, the source is told, and the range goes to others.
"""

from typing import Literal, TypeAlias, assert_never

import msgspec

from tenure.base.instants import FAR_FUTURE, Instant, in_seconds
from tenure.protocol.lease.limits import STATE_BYTES
from tenure.protocol.lease.owner.transfer import (
    CALL_NS,
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

SHOWN_CHARACTERS = 500


# --- events ---------------------------------------------------------------------------------------


class Admitted(msgspec.Struct, frozen=True):
    """The owner machine has admitted the offer."""


class TurnedAway(msgspec.Struct, frozen=True):
    """The owner machine does not want it, or no longer."""

    why: str


class Cleared(msgspec.Struct, frozen=True):
    """Nothing that a late task may have left behind is there."""


class TookIn(msgspec.Struct, frozen=True):
    """The chunk is in the application's state."""


class Kept(msgspec.Struct, frozen=True):
    """The owner machine counts on what came from here on."""


TakingEvent: TypeAlias = (
    PeerSaid | PeerErred | PeerLost | CallFailed | Admitted | TurnedAway | Cleared | TookIn | Kept
)


# --- actions --------------------------------------------------------------------------------------


class AskToAdmit(msgspec.Struct, frozen=True):
    """Tell the owner machine OfferMade."""

    offer: Offer


class Clear(msgspec.Struct, frozen=True):
    """Have the application drop what is in the range, and say Cleared."""


class TakeIn(msgspec.Struct, frozen=True):
    """Have the application import a chunk, and say TookIn."""

    chunk: Chunk


class TakeWrites(msgspec.Struct, frozen=True):
    """Tell the giver of read leases here what is known of the range's writes."""

    data: bytes


class AskToKeep(msgspec.Struct, frozen=True):
    """Tell the owner machine Imported."""


class EndTaking(msgspec.Struct, frozen=True):
    """Tell the owner machine ArrivalEnded, and the log why. Nothing follows but HangUp."""

    why: str
    is_too_large: bool = False
    """Whether more has come than this owner takes."""


TakingAction: TypeAlias = (
    Say | Listen | HangUp | AskToAdmit | Clear | TakeIn | TakeWrites | AskToKeep | EndTaking
)
TakingPhase: TypeAlias = Literal[
    "new", "silent", "asking", "clearing", "arriving", "importing", "whole", "over"
]


class Taking(ChannelMachine[TakingEvent, TakingAction]):
    """A channel on which a range may come."""

    def __init__(self, *, gives_reads: bool = False, most_bytes: int = STATE_BYTES) -> None:
        super().__init__()
        self._gives_reads = gives_reads
        self._most_bytes = most_bytes
        self._arrived = 0
        """The bytes that have come."""
        self._phase: TakingPhase = "new"
        self._due_at = FAR_FUTURE
        """When the source must have said something, or the application have come back."""

    def invariants(self) -> None:
        """The application is never waited for without end."""
        waits = self._phase in ("silent", "clearing", "importing")
        assert waits == (self._due_at < FAR_FUTURE)

    @property
    def _wake_at(self) -> Instant:
        return self._due_at

    def _advance(self, now: Instant) -> None:
        if self._phase == "new":
            self._become("silent", Instant(now + PROGRESS_NS))
            self._actions.append(Listen())
        elif now >= self._due_at:
            if self._phase == "silent":
                self._end(f"nothing was offered within {in_seconds(PROGRESS_NS):g} s")
            else:
                method = "discard_range" if self._phase == "clearing" else "import_chunk"
                self._refuse(f"{method} has not returned for {in_seconds(CALL_NS):g} s")

    def _become(self, phase: TakingPhase, due_at: Instant = FAR_FUTURE) -> None:
        self._phase, self._due_at = phase, due_at

    def _take(self, now: Instant, event: TakingEvent) -> None:
        match event:
            case PeerSaid(message=message):
                self._hear(now, message)
            case PeerLost(why=why):
                self._end(why)
            case PeerErred(why=why) | CallFailed(why=why) | TurnedAway(why=why):
                self._refuse(why)
            case Admitted():
                # What an earlier attempt left here must not mix with this one's state (P13).
                self._become("clearing", Instant(now + CALL_NS))
                self._actions.append(Clear())
            case Cleared():
                self._become("arriving")
                self._actions += [Say(Accepted(wants_writes=self._gives_reads)), Listen()]
            case TookIn():
                self._become("arriving")
                self._actions += [Say(Taken()), Listen()]
            case Kept():
                self._become("over")
                self._actions += [Say(Whole()), HangUp()]
            case _:
                assert_never(event)

    def _hear(self, now: Instant, message: PeerMessage) -> None:
        match message:
            case Offer() if self._phase == "silent":
                self._become("asking")
                self._actions.append(AskToAdmit(message))
            case Chunk(data=data) if self._phase == "arriving" and not self._has_room(len(data)):
                self._refuse(
                    f"its state has more than {self._most_bytes:,} bytes, the most that this owner "
                    "takes: if that is right, give all owners of the pool a larger hand_off_bytes",
                    is_too_large=True,
                )
            case Chunk(tells_writes=True, data=data) if self._phase == "arriving":
                # Nobody asked for it, and here it would be taken for state.
                if not self._gives_reads:
                    self._refuse("what is known of writes, where no read leases are given")
                    return
                self._actions += [TakeWrites(data), Say(Taken()), Listen()]
            case Chunk() if self._phase == "arriving":
                self._become("importing", Instant(now + CALL_NS))
                self._actions.append(TakeIn(message))
            case Last() if self._phase == "arriving":
                self._become("whole")
                # Counted only when whole: the source then stops listing the range (P13).
                self._actions.append(AskToKeep())
            case _:
                what = "before any offer" if self._phase == "silent" else "among the chunks"
                self._refuse(f"a {type(message).__name__} {what}")

    def _has_room(self, size: int) -> bool:
        self._arrived += size
        return self._arrived <= self._most_bytes

    def _refuse(self, why: str, *, is_too_large: bool = False) -> None:
        self._actions.append(Say(NotTaken(why=why[:SHOWN_CHARACTERS])))
        self._end(why, is_too_large=is_too_large)

    def _end(self, why: str, *, is_too_large: bool = False) -> None:
        self._become("over")
        self._actions += [EndTaking(why, is_too_large), HangUp()]
