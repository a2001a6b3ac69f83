"""The numbers of a socket's frames, as the process that has the socket counts them.

The entity numbers what it sends, and this end takes each number once and in order, whichever owner
it came from. If one is missing, this end asks the present owner for the frames after the last. If
that owner does not have them, frames are lost, and the socket is closed: it never continues
silently.
"""

from typing import Annotated, Literal

import msgspec

from tenure.base.numbers import Number
from tenure.protocol.entity.socket_entry import Frame

Missing = Literal["missing"]
MOST_PAST = 1024
"""The most journals that a socket has outlived and which are told its next edge."""


class PassedEnd(msgspec.Struct, frozen=True, array_like=True):
    """The numbers of a socket that is passed to another process. See `SocketEnd`."""

    received: Number
    asked: Number
    lease: tuple[Number, Number]
    past: Annotated[tuple[Number, ...], msgspec.Meta(max_length=MOST_PAST)]


class SocketEnd:
    """One socket of this process."""

    def __init__(self) -> None:
        self.received = 0
        """The number of the last frame from the entity."""
        self.asked = 0
        """The number of the last frame from the client."""
        self.lease = 0, 0
        """The newest lease under which anything came: its journal and its number."""
        self._past: set[int] = set()
        """Journals that a later one has followed. Numbers of two of them cannot be compared, and no
        lease of the earlier is left when the first of the later is given."""

    def take(
        self, lease: tuple[int, int], first: int, frames: tuple[Frame, ...]
    ) -> tuple[Frame, ...] | Missing:
        """The frames among these that are new; `first` is the number of the first of them."""
        journal, number = lease
        if journal in self._past or (journal == self.lease[0] and number < self.lease[1]):
            return ()  # an owner that has lost the key meanwhile
        if first > self.received + 1:
            return "missing"
        if journal != self.lease[0]:
            self._past.add(self.lease[0])
        self.lease = lease
        new = frames[self.received + 1 - first :]
        self.received += len(new)
        return new

    @classmethod
    def of(cls, passed: PassedEnd) -> "SocketEnd":
        """Go on counting where another process has stopped."""
        made = cls()
        made.received, made.asked, made.lease = passed.received, passed.asked, passed.lease
        made._past = set(passed.past)
        return made

    def passed(self, *, unanswered: int) -> PassedEnd:
        """The numbers for another process, to which the frames go along that the entity has not
        answered: they get the same numbers there.
        """
        past = tuple(sorted(self._past)[-MOST_PAST:])
        return PassedEnd(self.received, self.asked - unanswered, self.lease, past)

    def next(self) -> int:
        """The number of the next frame from the client."""
        self.asked += 1
        return self.asked
