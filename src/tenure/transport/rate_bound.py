"""How often something may happen: so many times at once, and so many a second after that.

A peer that is cut off for asking too often can connect again at once, and would have its whole
allowance again. So an address from which a flood came is remembered for a while, and connections
from there have a smaller allowance. They are not refused: honest clients may share the address.
"""

from tenure.base.instants import SECOND_NS, Instant, seconds

REMEMBERED_NS = seconds(60)
"""How long an address from which a flood came is remembered."""
FLOODED_PART = 20
"""Connections from there may make this part of the requests that others may make at once."""
MOST_REMEMBERED = 10_000
"""The most addresses that are remembered: they take a megabyte. The one whose last flood is longest
ago is forgotten first.
"""
BYTES_OF_ONE = 8 << 10
"""A larger message counts as several, since it takes as much longer to handle. The largest request,
of an owner of as many ranges as there may be, has 5 MiB and counts as 640; such an owner sends one
every few seconds.
"""


TIMES_OF_NOTHING = 20
"""A frame that carries nothing (a ping, an empty piece of a message) counts as so many messages. An
honest peer sends one every few seconds, and a frame of six bytes costs as much as one with a
message.
"""


def times(message: bytes) -> int:
    """How many times a message counts."""
    return 1 + len(message) // BYTES_OF_ONE


class RateBound:
    """Counts for one bounded peer."""

    __slots__ = ("_at", "_at_once", "_each_ns", "_left_ns")

    def __init__(self, a_second: float, at_once: int) -> None:
        self._each_ns = SECOND_NS / a_second
        self._at_once = at_once
        self._left_ns = at_once * self._each_ns
        self._at: Instant | None = None

    def allows(self, now: Instant, times: int = 1) -> bool:
        """Whether another message may come now; if so, count it `times` times. After a long quiet
        time a peer may send as much at once as `at_once` says.
        """
        self._recover(now)
        cost_ns = min(times, self._at_once) * self._each_ns
        if self._left_ns < cost_ns:
            return False
        self._left_ns -= cost_ns
        return True

    def rest_ns(self, now: Instant, times: int = 1) -> int:
        """Count a message that has come, and return how long no other may follow it."""
        self._recover(now)
        self._left_ns -= times * self._each_ns
        return max(0, round(-self._left_ns))

    def _recover(self, now: Instant) -> None:
        if self._at is not None:
            most = self._at_once * self._each_ns
            self._left_ns = min(most, self._left_ns + (now - self._at))
        self._at = now


class RecentFloods:
    """The addresses from which floods came recently."""

    def __init__(self) -> None:
        self._at: dict[str, Instant] = {}
        """When the last flood came from each address, the earliest first."""

    def add(self, peer: str, now: Instant) -> None:
        """A flood came from `peer`."""
        self._at.pop(peer, None)
        self._at[peer] = now
        if len(self._at) > MOST_REMEMBERED:
            del self._at[next(iter(self._at))]

    def at_once(self, peer: str, most: int, now: Instant) -> int:
        """How much a new connection from `peer` may ask at once, if others may ask `most`."""
        at = self._at.get(peer)
        if at is None or now - at >= REMEMBERED_NS:
            return most
        return max(1, most // FLOODED_PART)
