"""The numbers of a socket's frames, as the process that has the socket counts them.

The entity numbers what it sends, and this end takes each number once and in order, whichever owner
it came from. Where one is missing, the present owner is asked for what follows the last. If that
owner does not know, something is lost, and the socket is closed: it is never continued silently.
"""

from typing import Literal

from tenure.protocol.entity.envelope import Frame

Missing = Literal["missing"]


class SocketEnd:
    """One socket of this process."""

    def __init__(self) -> None:
        self.received = 0
        """The number of the last frame from the entity."""
        self.asked = 0
        """The number of the last frame from the client."""
        self.number = 0
        """The newest lease under which anything came."""

    def take(
        self, number: int, first: int, frames: tuple[Frame, ...]
    ) -> tuple[Frame, ...] | Missing:
        """What of these frames is new, where `first` is the number of the first of them."""
        if number < self.number:
            return ()  # an owner that has lost the key meanwhile
        if first > self.received + 1:
            return "missing"
        self.number = number
        new = frames[self.received + 1 - first :]
        self.received += len(new)
        return new

    def next(self) -> int:
        """The number of the next frame from the client."""
        self.asked += 1
        return self.asked
