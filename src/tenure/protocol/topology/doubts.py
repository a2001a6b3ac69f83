"""Who was refused, or not believed, for operators to see (R34).

Whoever has a token can come under any number of names, so this is bounded: some are listed and
written to the log, and the others are counted.
"""

from tenure.base.instants import SECOND_NS, Instant
from tenure.protocol.topology.records import NodeId

LISTED = 16
LISTED_NS = 3_600 * SECOND_NS
"""How long one is listed after it came last."""


class Doubts:
    """What one manager has refused or not believed lately."""

    def __init__(self) -> None:
        self._listed: dict[NodeId, tuple[Instant, str]] = {}
        self.more = 0
        """How often one came for which the list had no place, since this leader began."""

    def add(self, now: Instant, node: NodeId, why: str) -> bool:
        """Take note of one; whether to write that to the log, because it is news."""
        known = self._listed.get(node)
        if known is None and len(self.listed(now)) >= LISTED:
            self.more += 1
            return self.more == 1
        self._listed[node] = now, why
        return known is None or known[1] != why

    def listed(self, now: Instant) -> tuple[str, ...]:
        """All that came within the hour, each with the reason."""
        old = [node for node, (at, _) in self._listed.items() if now - at > LISTED_NS]
        for node in old:
            del self._listed[node]
        return tuple(why for _, why in self._listed.values())

    def said(self, now: Instant) -> tuple[str, ...]:
        """Sentences for people: all that are listed, and how many more came."""
        more = f"nodes of more ids came, {self.more} times, and were not believed or refused"
        return (*self.listed(now), *((more,) if self.more else ()))
