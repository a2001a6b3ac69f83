"""The costs of an algorithm: messages, server state, stale reads.

A message counts at the server, whichever way it goes (4.1). State is counted in records of 16
bytes: an object lease, a volume lease, a callback, or an invalidation that waits (5.2). It is kept
as an area, records times seconds, so that its average needs no sampling.
"""

from collections import Counter

RECORD_BYTES = 16


class Tally:
    """The costs of one replay."""

    def __init__(self, volumes: int, watched: int = -1) -> None:
        self.messages = [0] * volumes
        """Sent or received by each server."""
        self.record_seconds = [0.0] * volumes
        self.stale_reads = 0
        self.watched = watched
        """The server whose load is counted by the second; -1 for none."""
        self.load: Counter[int] = Counter()
        """The messages of the watched server in each second that has any."""

    def say(self, now: float, volume: int, messages: int) -> None:
        """A server sends or receives messages."""
        self.messages[volume] += messages
        if messages and volume == self.watched:
            self.load[int(now)] += messages

    @property
    def all_messages(self) -> int:
        """The messages of all servers."""
        return sum(self.messages)

    def state_bytes(self, volume: int, seconds: float) -> float:
        """The bytes that a server remembers, on average over so many seconds."""
        return RECORD_BYTES * self.record_seconds[volume] / seconds

    def periods(self) -> list[tuple[int, int]]:
        """For each load, in how many seconds the watched server's was at least so high."""
        at_least: list[tuple[int, int]] = []
        seconds = 0
        by_load = Counter(self.load.values())
        for load in sorted(by_load, reverse=True):
            seconds += by_load[load]
            at_least.append((load, seconds))
        return at_least[::-1]
