"""The bounds on what waits at the connections between members.

A peer that asks much and reads nothing makes this process keep its calls and their answers. Beyond
the first bound, nothing more is read from it (back-pressure: it has to wait, too). Answers to calls
that were already begun still come; if they pass the second bound, or if the peer reads nothing of a
message for too long, its connection is ended. All connections from one address share a backlog, so
that opening more of them gains nothing.
"""

from typing import Protocol

import msgspec

MIB = 1 << 20


class LinkLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one process; those of an address hold for all its connections together."""

    asks: int = 4096
    """The calls of one connection that are being answered: more than a process has under way at a
    peer that keeps up.
    """
    read_bytes: int = 16 * MIB
    """With this much waiting, nothing more is read from the connection."""
    most_bytes: int = 128 * MIB
    """With this much waiting, the connection ends: the largest answers of a hundred calls."""
    asks_of_an_address: int = 16_384
    read_bytes_of_an_address: int = 64 * MIB
    most_bytes_of_an_address: int = 256 * MIB
    stuck_seconds: float = 30.0
    """How long a peer may take to read what it was sent at once: it has died, or means harm."""


LINK_LIMITS = LinkLimits()


class BoundedLink(Protocol):
    """A connection, as the backlog of its address sees it."""

    asks: int
    """The calls from it that are being answered."""
    waiting_bytes: int
    """The bytes of these calls, and of all that is to be sent."""

    def end(self, why: str) -> None: ...

    def look_for_room(self) -> None:
        """There may be room to read on."""
        ...


class Backlog:
    """What waits at all connections from one address."""

    def __init__(self, limits: LinkLimits) -> None:
        self.limits = limits
        self.links: set[BoundedLink] = set()
        self._asks = 0
        self.waiting_bytes = 0
        self._was_full = False

    def may_read(self, link: BoundedLink) -> bool:
        """Whether there is room for another message from the link."""
        limits = self.limits
        return (
            link.asks < limits.asks
            and link.waiting_bytes < limits.read_bytes
            and self._asks < limits.asks_of_an_address
            and self.waiting_bytes < limits.read_bytes_of_an_address
        )

    def add(self, link: BoundedLink, *, asks: int = 0, size: int = 0) -> None:
        """More waits at the link; or less, if the numbers are negative."""
        link.asks += asks
        link.waiting_bytes += size
        self._asks += asks
        self.waiting_bytes += size
        if size > 0:
            self._check(link)
        elif asks < 0 or size < 0:
            self._let_read(link)

    def close(self, link: BoundedLink) -> None:
        """The link is gone, with all that waits there."""
        self.links.discard(link)
        self.add(link, asks=-link.asks, size=-link.waiting_bytes)

    def _check(self, link: BoundedLink) -> None:
        limits = self.limits
        if link.waiting_bytes > limits.most_bytes:
            link.end(f"more than {limits.most_bytes} bytes wait there")
        elif self.waiting_bytes > limits.most_bytes_of_an_address:
            most = max(self.links, key=lambda each: each.waiting_bytes)
            most.end(f"more than {limits.most_bytes_of_an_address} bytes wait for its address")

    def _let_read(self, link: BoundedLink) -> None:
        limits = self.limits
        is_full = self._asks >= limits.asks_of_an_address or (
            self.waiting_bytes >= limits.read_bytes_of_an_address
        )
        others = self.links if self._was_full and not is_full else ()
        self._was_full = is_full
        for each in (link, *others):
            each.look_for_room()


class Backlogs:
    """The backlogs by address, each for as long as there are connections."""

    def __init__(self, limits: LinkLimits) -> None:
        self._limits = limits
        self._by_address: dict[str, Backlog] = {}

    @property
    def waiting_bytes(self) -> int:
        """What waits at all of them."""
        return sum(each.waiting_bytes for each in self._by_address.values())

    def of(self, address: str) -> Backlog:
        """The backlog of an address, for a new connection."""
        found = self._by_address.get(address)
        if found is None:
            there = self._by_address.items()
            self._by_address = {each: backlog for each, backlog in there if backlog.links}
            found = self._by_address[address] = Backlog(self._limits)
        return found
