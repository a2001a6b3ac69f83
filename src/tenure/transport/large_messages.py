"""Large messages: how many of them are taken from one peer, whoever else may send.

A valid list of all ranges of a table takes a third of a second to decode, and in that time nobody
is renewed. So the large messages of one name, a token or an address, share an allowance, on however
many connections they come. One that is beyond it waits, and so does its connection.

What a peer may own is what it was told: an honest one lists no more. Whoever lists more than was
ever told on its connection uses up its allowance several times as fast. It is not refused, because
it may come from an earlier leader.
"""

import asyncio
from collections.abc import Hashable

from tenure.base.instants import Instant, in_seconds
from tenure.runtime.clock import boot_clock
from tenure.transport.frame_socket import FrameSocket
from tenure.transport.rate_bound import MOST_REMEMBERED, RateBound

LARGE_BYTES = 16 << 10
"""A smaller message takes a millisecond or two, and has only its own connection's bounds. An owner
of 200 ranges says as much.
"""
KIB_A_SECOND = 4 << 10
"""A hundred owners of 64 KiB each may list all that they hold in every second or two. To read as
much from somebody who lists more than it was told, at a quarter of this, takes 8 % of the time.
"""
KIB_AT_ONCE = 16 << 10
"""A message counts as so much at most: after a table that it was never told, a peer waits for four
seconds, well within a term.
"""
TIMES_IF_UNTOLD = 4


class LargeMessages:
    """All of one port."""

    def __init__(self) -> None:
        self._allowances: dict[Hashable, RateBound] = {}
        """By the names of peers; the one that has sent nothing for longest is the first."""

    def rest_ns(self, name: Hashable, size: int, now: Instant, *, is_told: bool) -> int:
        """How long a message has to wait; 0 if it is taken now, and counted."""
        allowance = self._allowances.pop(name, None) or RateBound(KIB_A_SECOND, KIB_AT_ONCE)
        self._allowances[name] = allowance
        if len(self._allowances) > MOST_REMEMBERED:
            del self._allowances[next(iter(self._allowances))]
        rest = allowance.rest_ns(now, 0)
        if not rest:
            kib = size >> 10
            allowance.rest_ns(now, min(kib if is_told else TIMES_IF_UNTOLD * kib, KIB_AT_ONCE))
        return rest


class PatientSocket(FrameSocket):
    """A socket whose large messages wait for the allowance of its peer, which has a `name`."""

    __slots__ = ("_all_large", "_held", "_name", "_told")

    def bound_large(self, all_of_port: LargeMessages, name: Hashable) -> None:
        """Set the name with which its messages are counted, before the first comes."""
        self._all_large, self._name = all_of_port, name
        self._held: bytes | None = None
        """A message that waits. Nothing is read meanwhile."""
        self._told = 0
        """The size of the largest frame that was ever sent there."""

    def send_frame(self, data: bytes) -> bool:
        """Send a frame, and remember how much the peer was told."""
        self._told = max(self._told, len(data))
        return super().send_frame(data)

    def must_wait(self, data: bytes, weight: int | None = None) -> bool:
        """Whether a message waits. It comes to `on_message` again, which asks this again. If a
        `weight` is given, that counts, and not how long it is and what the peer was told.
        """
        size = len(data) if weight is None else weight
        if size <= LARGE_BYTES:
            return False
        is_told = weight is not None or size <= self._told + LARGE_BYTES
        rest = self._all_large.rest_ns(self._name, size, boot_clock(), is_told=is_told)
        if rest:
            self._held = data
            self.hold()
            asyncio.get_running_loop().call_later(in_seconds(rest), self.read_on)
        return rest > 0

    def _take(self, now: Instant) -> bool:
        held, self._held = self._held, None
        if held is None:
            return super()._take(now)
        if self._ending is None:
            self.on_message(held)
        return self._held is None

    def _kept_bytes(self) -> int:
        return super()._kept_bytes() + len(self._held or b"")

    def is_there(self, now: Instant, silent_ns: int) -> None:
        """Ask a silent peer whether it is there, unless it is this side that does not read."""
        if self._held is None:
            super().is_there(now, silent_ns)
