"""The numbers of a socket's frames, as the process that has the socket counts them.

The entity numbers what it sends, and this end takes each number once and in order, whichever owner
it came from. If one is missing, this end asks the present owner for the frames after the last. If
that owner does not have them, frames are lost, and the socket is closed: it never continues
silently.

An owner may have found less than its predecessor has sent: the socket opened anew, because the
entity was lost before the edge had its answer, or frames that left early, before they were stored.
Then it gives the same numbers to other frames, and the socket is closed, too.
"""

from typing import Annotated, Literal, NamedTuple

import msgspec

from tenure.base.numbers import Number
from tenure.protocol.entity.socket_entry import Frame

Lacking = Literal["missing", "forked"]
MOST_PAST = 1024
"""The most journals that a socket has outlived and which are told its next edge."""


class PassedEnd(msgspec.Struct, frozen=True, array_like=True):
    """The numbers of a socket that is passed to another process. See `SocketEnd`."""

    received: Number
    asked: Number
    lease: tuple[Number, Number]
    past: Annotated[tuple[Number, ...], msgspec.Meta(max_length=MOST_PAST)]
    begun: Number = 0


class Numbering(NamedTuple):
    """Who gives frames their numbers: an owner, since it has found what was kept of the entity."""

    journal: int = 0
    lease: int = 0
    begun: int = 0
    """The owner finds it again if it could not tell what it has stored; this number rises then."""


class NumberedFrames(NamedTuple):
    """Frames of the entity that have come to an edge."""

    by: Numbering
    found: int | None
    """The number of the last frame that the entity knew of when it was found; None from an owner of
    an earlier release, which does not say it."""
    first: int
    frames: tuple[Frame, ...]


class SocketEnd:
    """One socket of this process."""

    def __init__(self) -> None:
        self.received = 0
        """The number of the last frame from the entity."""
        self.asked = 0
        """The number of the last frame from the client."""
        self.by = Numbering()
        """The newest under which anything came."""
        self._past: set[int] = set()
        """Journals that a later one has followed. Numbers of two of them cannot be compared, and no
        lease of the earlier is left when the first of the later is given."""

    def take(self, came: NumberedFrames) -> tuple[Frame, ...] | Lacking:
        """The frames among these that are new."""
        by, found, first, frames = came
        if by.journal in self._past or (by.journal == self.by.journal and by < self.by):
            return ()  # an owner that has lost the key meanwhile
        if by != self.by and found is not None and found < self.received:
            return "forked"  # it does not know of frames that are here
        if first > self.received + 1:
            return "missing"
        if by.journal != self.by.journal:
            self._past.add(self.by.journal)
        self.by = by
        new = frames[self.received + 1 - first :]
        self.received += len(new)
        return new

    @classmethod
    def of(cls, passed: PassedEnd) -> "SocketEnd":
        """Go on counting where another process has stopped."""
        made = cls()
        made.received, made.asked = passed.received, passed.asked
        made.by = Numbering(*passed.lease, passed.begun)
        made._past = set(passed.past)
        return made

    def passed(self, *, unanswered: int) -> PassedEnd:
        """The numbers for another process, to which the frames go along that the entity has not
        answered: they get the same numbers there.
        """
        past = tuple(sorted(self._past)[-MOST_PAST:])
        asked = self.asked - unanswered
        return PassedEnd(self.received, asked, self.by[:2], past, self.by.begun)

    def next(self) -> int:
        """The number of the next frame from the client."""
        self.asked += 1
        return self.asked
