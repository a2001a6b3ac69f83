"""How long to wait for an answer before asking again.

Owners and lookups take only the answer to their newest message (P2, P15). Were a message repeated
at a fixed pace, whoever's answers take longer than that (a slow disk, a far manager) would never be
told anything. So patience is learned: a repetition waits for as long again as was waited for
already, and once an answer has come, the next message waits for twice the time that it took.
"""

from tenure.base.instants import MILLISECOND_NS, Instant

LONGEST_NS = 2_000 * MILLISECOND_NS
"""Between two questions to all managers, however slow answers were: one that was held up for a
minute says nothing of the next."""


class Patience:
    """What one asker has learned about how long answers take."""

    def __init__(self) -> None:
        self._asking_since: Instant | None = None
        """When the first was sent of the messages that were repeated since anything was heard."""
        self._learned_ns = 0

    def asked(self, now: Instant, shortest_ns: int, longest_ns: int) -> int:
        """A message was sent: how long to wait before it is repeated."""
        if self._asking_since is None:
            self._asking_since = now
        waited_ns = now - self._asking_since
        return min(max(shortest_ns, waited_ns, self._learned_ns), longest_ns)

    def answered(self, round_trip_ns: int) -> None:
        """The newest message was answered, after so long."""
        self._asking_since = None
        self._learned_ns = 2 * round_trip_ns

    def heard(self) -> None:
        """Somebody is there, though the message at hand is not answered yet."""
        self._asking_since = None

    def at_least(self, pause_ns: int) -> int:
        """`pause_ns`, or longer where that would be too hasty to hear an answer."""
        return max(pause_ns, min(self._learned_ns, LONGEST_NS))
