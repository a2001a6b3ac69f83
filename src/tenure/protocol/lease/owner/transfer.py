"""The messages between two owners when one hands a range to the other (P13).

One channel carries one range, straight from its present owner to its next. The source says what it
has, for which incarnation, and the secret of its order; the taker accepts, and acknowledges each
chunk once it has taken it in. Only a few unacknowledged chunks are under way, so that neither side
has more than these in memory, and each knows that the other goes on.
"""

from abc import ABC, abstractmethod
from typing import Annotated, Generic, TypeAlias, TypeVar

import msgspec

from tenure.base.instants import SECOND_NS, Instant
from tenure.base.keys import RangeKey
from tenure.base.machine import Output
from tenure.base.numbers import JournalId, Nonce, Number
from tenure.base.ranges import KeyRange
from tenure.protocol.lease.limits import CHUNK_BYTES
from tenure.protocol.lease.messages import Name, Text
from tenure.protocol.lease.range_item import EndKey

E = TypeVar("E")
A = TypeVar("A")

CHUNKS_UNDER_WAY = 4
"""Sent and not yet taken: enough to hide the way there and back, and little to keep in memory."""
PROGRESS_NS = 5 * SECOND_NS
"""Without a word of the other owner: it imports a chunk in milliseconds, and pings are answered in
half of this. From the last difference on nobody serves the range meanwhile."""
CALL_NS = 10 * SECOND_NS
"""How long a call of the application may take while nobody serves the range: twice as long as any
source waits for the other owner's answer.
"""


class PeerMessage(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The base of the messages between two owners: compact arrays, distinguished by their tag."""


class Offer(PeerMessage, frozen=True, kw_only=True):
    """The state of a range, as the lease of that number leaves it, for one incarnation."""

    pool: Name
    journal: JournalId
    start: RangeKey
    end: EndKey
    number: Number
    source: Number
    """The incarnation that has it."""
    taker: Number
    secret: Nonce = 0
    """The secret of the order that it carries out."""

    @property
    def range(self) -> KeyRange:
        return KeyRange(self.start, self.end)


class Chunk(PeerMessage, frozen=True, kw_only=True):
    """Some of the state, as the application encodes it."""

    data: Annotated[bytes, msgspec.Meta(max_length=CHUNK_BYTES)]
    is_urgent: bool = False
    """Whether it is of the last difference: nobody serves the range until it is taken."""
    tells_writes: bool = False
    """Whether it is no state, but tells what is known of the range's writes (V15), in the words of
    the server that gives read leases there.
    """


class Last(PeerMessage, frozen=True, kw_only=True):
    """The range is no longer served, and all of its state has been sent."""


class Accepted(PeerMessage, frozen=True, kw_only=True):
    """Send it."""

    wants_writes: bool = False
    """Also what is known of its writes. A taker from before there were caches does not say so."""


class Taken(PeerMessage, frozen=True, kw_only=True):
    """One more chunk has been taken in."""


class Whole(PeerMessage, frozen=True, kw_only=True):
    """All of it is here, and the taker's own machine knows."""


class NotTaken(PeerMessage, frozen=True, tag="Refused", kw_only=True):
    """The range is not taken, or no longer; the state that came is dropped."""

    why: Text


ToTaker: TypeAlias = Offer | Chunk | Last
ToSource: TypeAlias = Accepted | Taken | Whole | NotTaken


# --- what happens at either end -------------------------------------------------------------------


class PeerSaid(msgspec.Struct, frozen=True):
    """A message came, as Listen asked for."""

    message: ToTaker | ToSource


class PeerErred(msgspec.Struct, frozen=True):
    """Bytes came that are not a message."""

    why: str


class PeerLost(msgspec.Struct, frozen=True):
    """The channel could not be made, or broke."""

    why: str


class CallFailed(msgspec.Struct, frozen=True):
    """The application failed in a call."""

    why: str


# --- what either end wants done -------------------------------------------------------------------


class Say(msgspec.Struct, frozen=True):
    """Send a message, after those before it."""

    message: ToTaker | ToSource


class Listen(msgspec.Struct, frozen=True):
    """Receive one message, and say PeerSaid."""


class HangUp(msgspec.Struct, frozen=True):
    """Close the channel when all is sent that was said: nothing follows."""


# --- the shape of either end ----------------------------------------------------------------------


class ChannelMachine(ABC, Generic[E, A]):
    """A machine that gives or takes on a channel. It does due work first, and nothing once it is
    over.
    """

    _phase: str
    """"over", when nothing follows."""

    def __init__(self) -> None:
        self._actions: list[A] = []

    def handle(self, now: Instant, event: E) -> Output[A]:
        """Do what is due at `now`, then take `event`."""
        self._advance(now)
        if self._phase != "over":
            self._take(now, event)
        return self._output()

    def advance(self, now: Instant) -> Output[A]:
        """Do what is due at `now`."""
        self._advance(now)
        return self._output()

    def _output(self) -> Output[A]:
        actions, self._actions = self._actions, []
        return Output(actions, self._wake_at)

    @property
    @abstractmethod
    def _wake_at(self) -> Instant: ...

    @abstractmethod
    def _advance(self, now: Instant) -> None: ...

    @abstractmethod
    def _take(self, now: Instant, event: E) -> None: ...
