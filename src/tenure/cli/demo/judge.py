"""Whether two owners ever served one key at once, judged from the record alone.

An *ownership* of a key is a lease number in the hands of one process. The number changes exactly
when the continuity of ownership is broken; so from the first operation served under it to the last,
the process had the key to itself, or claims that it had. That time is the ownership's *span*, and
all follows from two rules about the spans of one key:

1. They are apart. Two that share an instant, be it their ends only, were two owners at once.
2. They follow each other in the order of their numbers. An owner that serves under number 5 after
   another has served under 9 is an owner that acts after its successor began, though at that moment
   nobody else may have been at work on the key.

Together: of two ownerships, the one with the lower number has ended before the other begins. Where
the numbers are equal, one lease was given to two processes, and no order excuses that.

Spans only grow, and what once was wrong stays wrong, whatever else comes to light. So entries may
come in any order, and the judgement is the same.
"""

from typing import NamedTuple

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.cli.demo.record import Served


class Span(NamedTuple):
    """The time from the first to the last operation served in one ownership."""

    owner: str
    number: int
    began: Instant
    ended: Instant

    def and_also(self, served: Served) -> "Span":
        """The span with one more operation."""
        return self._replace(
            began=min(self.began, served.began), ended=max(self.ended, served.ended)
        )


class AtOnce(NamedTuple):
    """Two owners served one key at once."""

    key: Key
    older: tuple[int, str]
    """Lease number and process."""
    newer: tuple[int, str]

    def __str__(self) -> str:
        (old_number, old_owner), (new_number, new_owner) = self.older, self.newer
        return (
            f"key {self.key.hex()}: {old_owner} under lease number {old_number}, "
            f"{new_owner} under {new_number}"
        )


def are_at_once(a: Span, b: Span) -> bool:
    """Whether two ownerships of one key break the rules."""
    older, newer = sorted((a, b), key=lambda span: span.number)
    return older.number == newer.number or older.ended >= newer.began


class RecordJudge:
    """Judges a record, as it comes in."""

    def __init__(self) -> None:
        self.entries = 0
        self.found: dict[AtOnce, None] = {}
        """Each pair of ownerships of one key once, in the order in which they were found."""
        self._spans: dict[Key, dict[tuple[int, str], Span]] = {}

    def add(self, served: Served) -> None:
        """Take an entry into account."""
        assert served.began <= served.ended, served
        self.entries += 1
        spans = self._spans.setdefault(served.key, {})
        which = served.number, served.owner
        before = spans.get(which, Span(served.owner, served.number, served.began, served.ended))
        span = spans[which] = before.and_also(served)
        for other_which, other in spans.items():
            if other_which != which and are_at_once(span, other):
                older, newer = sorted((which, other_which))
                self.found[AtOnce(served.key, older, newer)] = None

    def spans(self, key: Key) -> list[Span]:
        """The ownerships of a key, by number."""
        return [span for _, span in sorted(self._spans.get(key, {}).items())]
