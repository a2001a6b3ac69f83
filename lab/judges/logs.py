"""Logs: what clients saw of texts that were added to the end of lists, each once.

The answer of a call says at which place its text is, so calls have one order, and nothing need be
searched: it must agree with real time, and with what everybody saw. At the end the whole of each
log is read, and everything is judged by that.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from lab.judges.operations import Complaint, Told


class LogCall(msgspec.Struct, frozen=True, tag_field="kind"):
    """One call of one client, as it remembers it."""

    client: str
    key: str
    began: int
    ended: int


class Added(LogCall, frozen=True, tag="added"):
    """A text was added to a log, or should have been."""

    text: str
    told: Told
    count: int = 0
    """How many texts the log had then; 0 if that was not said."""


class LookedAtLog(LogCall, frozen=True, tag="looked"):
    """The last texts of a log were read."""

    count: int
    last: tuple[str, ...]
    copied: bool = False
    """Whether that was read in a process that does not own the key, without asking its owner."""


class ReadWhole(LogCall, frozen=True, tag="whole"):
    """All of a log was read, at the end."""

    texts: tuple[str, ...]


AnyLogCall = Added | LookedAtLog | ReadWhole


class Seen(NamedTuple):
    """How long a log was known to be, by somebody."""

    ended: int
    length: int
    call: AnyLogCall


class LogJudge:
    """Judges all calls to one log."""

    def __init__(self, whole: ReadWhole, calls: Iterable[AnyLogCall]) -> None:
        self._texts = whole.texts
        self._place = {text: place for place, text in enumerate(whole.texts, 1)}
        self._calls = [each for each in calls if not isinstance(each, ReadWhole)]
        self._key = whole.key

    def judge(self) -> Iterator[Complaint]:
        """Whatever is wrong."""
        yield from self._twice()
        for each in self._calls:
            match each:
                case Added():
                    yield from self._of_added(each)
                case LookedAtLog():
                    yield from self._of_looked(each)
        yield from self._of_times()

    def _says(self, promise: str, what: str) -> Complaint:
        return Complaint(promise, f"{self._key}: {what}")

    def _twice(self) -> Iterator[Complaint]:
        for text, times in Counter(self._texts).items():
            if times > 1:
                yield self._says("a call takes effect once", f"{text} is there {times} times")

    def _of_added(self, call: Added) -> Iterator[Complaint]:
        place = self._place.get(call.text)
        if call.told == "written" and place is None:
            yield self._says("what was acknowledged is there", f"{call} is lost")
        elif call.told == "written" and place != call.count:
            yield self._says("what was acknowledged stays in its place", f"{call} is at {place}")
        elif call.told == "not written" and place is not None:
            yield self._says("what was not begun is not there", f"{call} is at {place}")

    def _of_looked(self, call: LookedAtLog) -> Iterator[Complaint]:
        first = call.count - len(call.last)
        if first < 0 or self._texts[first : call.count] != call.last:
            found = self._texts[max(first, 0) : call.count]
            yield self._says("what was seen stays", f"{call} is {found} at the end")

    def _of_times(self) -> Iterator[Complaint]:
        """Nobody may see less than was known before the call began, or more than was begun when it
        ended.
        """
        known = sorted(self._known(), key=lambda each: each.ended)
        ends = [each.ended for each in known]
        most: list[Seen] = []
        for each in known:
            most.append(each if not most or each.length > most[-1].length else most[-1])
        for _, length, call in known:
            before = bisect_left(ends, call.began)
            # A text that is added comes after all that others knew.
            least = most[before - 1].length + isinstance(call, Added) if before else 0
            if length < least:
                said = f"{call}, though before it began there was {most[before - 1].call}"
                yield self._says("nothing is older than an answer before", said)
        yield from self._of_beginnings()

    def _known(self) -> Iterator[Seen]:
        for call in self._calls:
            if isinstance(call, LookedAtLog) or (
                isinstance(call, Added) and call.told == "written"
            ):
                yield Seen(call.ended, call.count, call)

    def _of_beginnings(self) -> Iterator[Complaint]:
        began = {each.text: each.began for each in self._calls if isinstance(each, Added)}
        for call in self._calls:
            for text in call.last if isinstance(call, LookedAtLog) else ():
                if began.get(text, call.ended) > call.ended:
                    yield self._says("nothing is seen before it begins", f"{call} has {text}")


def complaints(calls: Iterable[AnyLogCall]) -> Iterator[Complaint]:
    """What is wrong with all calls of a run. A log of which the whole was not read is a complaint,
    because nothing was judged.
    """
    by_key: dict[str, list[AnyLogCall]] = {}
    for each in calls:
        by_key.setdefault(each.key, []).append(each)
    for key, found in by_key.items():
        whole = [each for each in found if isinstance(each, ReadWhole)]
        if not whole:
            yield Complaint("every log is read at the end", f"{key}: it was not")
        else:
            yield from LogJudge(whole[-1], found).judge()
