"""The numbers of a socket's frames, as the process that has the socket counts them.

The entity numbers what it sends, and this end takes each number once and in order, whichever owner
it came from. If one is missing, this end asks the present owner for the frames after the last. If
that owner does not have them, frames are lost, and the socket is closed: it never continues
silently.
"""

from typing import Literal

from tenure.protocol.entity.socket_entry import Frame

Missing = Literal["missing"]


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

    def next(self) -> int:
        """The number of the next frame from the client."""
        self.asked += 1
        return self.asked
