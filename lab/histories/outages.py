"""Outages: how long a handle got no answer, though every row had a quorum that was up.

Each client notes its *stretches*: from a call on, until the next one that was answered. The trouble
notes its *spells*: from when a node gets into trouble until it takes part again. A range has three
replicas, so a quorum is up as long as no more than one node is in trouble, also while the range
changes its replicas. What counts of a stretch is its longest part outside of the times when two
were. It may be as long as a node's patience: so long a node that is cut off itself waits for others
in vain. It may be `SLACK_NS` longer, as answers take time, too. What processes waited for a
processor meanwhile does not count (see `starvation`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from tenure.base.instants import SECOND_NS, seconds

PATIENCE_SECONDS = 1.5
"""The nodes' patience."""
SLACK_NS = SECOND_NS
SHORT_NS = SECOND_NS // 4
"""Stretches that are shorter are not noted."""


class Stretch(msgspec.Struct, frozen=True):
    """A time in which a client asked, and no call was answered."""

    client: str
    began: int
    ended: int
    said: str = ""
    """What the last error said."""


class Spell(NamedTuple):
    """The trouble of one node, from its beginning until the node takes part again."""

    node: str
    began: int
    ended: int


class Outage(NamedTuple):
    """A stretch, as far as a quorum was up."""

    stretch: Stretch
    began: int
    ended: int
    starved_ns: int = 0
    """How long it may have been because processes waited for a processor."""

    @property
    def length_ns(self) -> int:
        """How long it was."""
        return self.ended - self.began

    @property
    def counts_ns(self) -> int:
        """How long it was for other reasons than a busy machine."""
        return max(0, self.length_ns - self.starved_ns)

    @property
    def is_too_long(self) -> bool:
        """Whether the handle had no answer for longer than may be."""
        return self.counts_ns > seconds(PATIENCE_SECONDS) + SLACK_NS

    def __str__(self) -> str:
        took, why = self.length_ns / SECOND_NS, self.stretch.said or "a call took so long"
        starved = f", {self.starved_ns / SECOND_NS:.1f} s without processors" * bool(
            self.starved_ns
        )
        return f"{self.stretch.client} had no answer for {took:.1f} s{starved}: {why}"


class CallWatch:
    """Watches the calls of one client, which makes one at a time."""

    def __init__(self, client: str) -> None:
        self._client = client
        self._said = ""
        self._since: int | None = None
        """When the first call began that was not followed by an answer."""

    def asks(self, now: int) -> None:
        """A call begins."""
        if self._since is None:
            self._since = now

    def fails(self, error: Exception) -> None:
        """A call has failed."""
        self._said = str(error)

    def answered(self, now: int) -> Stretch | None:
        """A call was answered, or there are no more; returns a stretch that is worth noting."""
        since, said = self._since, self._said
        self._since, self._said = None, ""
        if since is None or now - since < SHORT_NS:
            return None
        return Stretch(self._client, since, now, said)


def without_quorum(spells: Iterable[Spell]) -> Iterator[tuple[int, int]]:
    """The times in which two nodes or more were in trouble, in order."""
    changes = sorted(change for each in spells for change in ((each.began, 1), (each.ended, -1)))
    among = 0
    for (at, change), (following, _) in pairwise(changes):
        among += change
        if among > 1 and at < following:
            yield at, following


def outage_of(stretch: Stretch, unwell: Sequence[tuple[int, int]]) -> Outage:
    """The longest part of a stretch that lies outside of these times, which are in order."""
    found, began = Outage(stretch, stretch.began, stretch.began), stretch.began
    for start, end in (*unwell, (stretch.ended, stretch.ended)):
        until = min(start, stretch.ended)
        if until - began > found.length_ns:
            found = Outage(stretch, began, until)
        began = max(began, end)
    return found


def outages(
    stretches: Iterable[Stretch],
    spells: Iterable[Spell],
    starved: Callable[[int, int], int] = lambda _began, _ended: 0,
) -> list[Outage]:
    """The outages of all stretches, the longest first; `starved` tells for how long processes had
    no processor.
    """
    unwell = list(without_quorum(spells))
    found = (outage_of(each, unwell) for each in stretches)
    counted = (each._replace(starved_ns=starved(each.began, each.ended)) for each in found)
    return sorted(counted, key=lambda each: -each.counts_ns)
