"""The watch over a pool's load: when the pool is planned because of it, and with what picture.

While there is load, a policy is asked once per renewal interval. A picture with gaps is useless: if
an owner has not yet reported its load, because this leader is new or the owner's library is older,
its ranges would look idle. So loads count as known once every range that has an owner was reported,
and the first reports have had time to be blended in.

An owner may only report the ranges that the table gives it, or parts of them, which count for the
whole: so the picture has no more bounds than tables have had. No report is journaled, and no belief
depends on one: a wrong picture costs moves, not promises.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from heapq import nlargest
from typing import NamedTuple

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.keys import HASHED_KEY_BYTES, Key, key_function
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.protocol.balance.load import HIGHEST_RATE, SMOOTHING_NS, Loads
from tenure.protocol.balance.picture import LoadPicture, Measurement, RangeRate
from tenure.protocol.balance.pieces import carried
from tenure.protocol.lease.limits import LEVELS_PER_REPORT, PINNED_KEY_BYTES, RANGES_PER_TABLE
from tenure.protocol.lease.load_report import LevelLoad, LoadReport, RangeLoad
from tenure.protocol.lease.messages import Held
from tenure.protocol.lease.table import NOBODY, LeaseTable

BLENDING_NS = 2 * SMOOTHING_NS
"""How long after the last owner's first report a rate that was told once less is near the truth."""
LEAST = 0.01
"""The least load of the whole pool: less than this counts as none."""
MOST_NAMES = 256
"""Beyond so many, names of keys that are no longer hot are forgotten."""
MOST_KNOWN = 2 * RANGES_PER_TABLE
"""The most ranges and hot keys in a picture: those of a full table, and as many again. Beyond that
it begins anew: it has what one owner after another left there.
"""


class HotKey(NamedTuple):
    """A key that is asked for often."""

    key: Key
    rate: float
    name: str
    """Empty if nobody told it."""


class LoadWatch:
    """One pool's picture of its load, under one leader."""

    def __init__(self, table: LeaseTable, every_ns: int) -> None:
        self.at = FAR_FUTURE
        """When to ask the policy again because of the load."""
        self.picture = LoadPicture()
        self._levels: dict[str, LoadPicture] = {}
        """The pictures of other metrics than requests."""
        self._levels_from: dict[str, Instant] = {}
        """When enough has been told of each for it to be known."""
        self._table = table
        self._every_ns = every_ns
        """The time between rounds."""
        self._names: dict[Key, str] = {}
        """What owners call the hottest keys."""
        self._told: RangeMap[bool] = RangeMap(value=False)
        self._known_from = FAR_FUTURE

    def take(self, now: Instant, load: LoadReport, given: tuple[Held, ...]) -> bool:
        """Take the report of an owner that has `given` by the table. Returns whether it is the
        first load, so that rounds begin. A report without ranges says that no range had a request.
        """
        begins = self._take_levels(load, given)
        if load.ranges:
            ranges = _summed(load.ranges, given)
            begins = begins or any(each.rate > 0 for each in ranges)
            self.picture = self._blended(self.picture, load.span_ns, load, ranges)
            self._take_names(load)
            self._note_told(now, ranges)
        else:
            self._rest(now, load.span_ns, given)
        if self.at < FAR_FUTURE or not begins:
            return False
        self.at = self._next(now)
        return True

    def _take_levels(self, load: LoadReport, given: tuple[Held, ...]) -> bool:
        """Take what is told of other metrics. Returns whether it is anything."""
        is_any = False
        for level in load.levels:
            # A picture for each name that an owner invents would have no bound.
            picture = self._levels.get(level.metric)
            if picture is None or not (level.ranges or not picture.is_at_rest):
                continue
            is_any = is_any or bool(level.ranges)
            ranges = _summed(level.ranges, given) if level.ranges else _nothing_in(given)
            self._levels[level.metric] = self._blended(picture, load.span_ns, level, ranges)
        return is_any

    def _blended(
        self,
        picture: LoadPicture,
        span_ns: int,
        told: LoadReport | LevelLoad,
        ranges: list[RangeRate],
    ) -> LoadPicture:
        """The picture with what an owner told of one metric; a new one if it has become too
        large.
        """
        hottest = [
            (each.key, each.rate)
            for each in told.hottest
            if self._is_key(each.key)
            and 0 <= each.rate <= HIGHEST_RATE
            and _is_in(each.key, ranges)
        ]
        sample = self._sampled(told.sample, ranges)
        picture.take(Measurement(span_ns, ranges, hottest, sample))
        return LoadPicture() if picture.size > MOST_KNOWN else picture

    def _is_key(self, key: Key) -> bool:
        """Whether it can be a key of the pool, and bound a range. What owners report may be
        anything.
        """
        if self._table.kind == "hashed":
            return len(key) == HASHED_KEY_BYTES
        return len(key) <= PINNED_KEY_BYTES

    def _sampled(self, told: Sequence[Key], ranges: list[RangeRate]) -> Sequence[Key]:
        """The keys of a sample that are in the owner's ranges. Hashed pools need none."""
        if self._table.kind == "hashed":
            return ()
        return sorted(key for key in told if self._is_key(key) and _is_in(key, ranges))

    def _take_names(self, load: LoadReport) -> None:
        """Believe a name only if it is that of the key: an owner could say anything."""
        to_key = key_function(self._table.kind)
        for each, name in zip(load.hottest, load.names, strict=False):
            if name and to_key(name) == each.key:
                self._names[each.key] = name
        if len(self._names) > MOST_NAMES:
            # Half of them, so that not each report has to look at all keys again.
            kept = (each.key for each in self.hottest(MOST_NAMES // 2))
            self._names = {key: self._names[key] for key in kept if key in self._names}

    def hottest(self, most: int) -> list[HotKey]:
        """The hottest keys of the pool, the hottest first."""
        hot = nlargest(most, self.picture.hottest(), key=lambda each: each[1])
        return [HotKey(key, rate, self._names.get(key, "")) for key, rate in hot]

    def _rest(self, now: Instant, span_ns: int, given: tuple[Held, ...]) -> None:
        if not self.picture.is_at_rest:  # otherwise there is nothing to blend in
            self.picture.take(Measurement(span_ns, _nothing_in(given)))
        self._note_told(now, given)

    def _note_told(self, now: Instant, ranges: Sequence[RangeRate | Held]) -> None:
        if self._known_from == FAR_FUTURE:
            for each in ranges:
                self._told.assign(KeyRange(each.start, each.end), value=True)
            if self._is_whole():
                self._known_from = Instant(now + BLENDING_NS)

    def _next(self, now: Instant) -> Instant:
        return min(Instant(now + self._every_ns), FAR_FUTURE)

    def _is_whole(self) -> bool:
        return all(
            told
            for key_range, right in self._table.rights
            if right.owner != NOBODY
            for _, told in self._told.within(key_range)
        )

    def begin(self, now: Instant, metrics: Iterable[str] = ()) -> None:
        """Note that the policy is being asked, and set the time of the next round. From now on
        these metrics are known beside requests: all owners have a capacity for them.
        """
        known = sorted(metrics)[:LEVELS_PER_REPORT]
        self._levels = {each: self._levels.get(each, LoadPicture()) for each in known}
        since = Instant(now + BLENDING_NS)
        self._levels_from = {each: self._levels_from.get(each, since) for each in known}
        is_asked = sum(self.picture.loads(now).rates) >= LEAST
        has_load = is_asked or any(not each.is_at_rest for each in self._levels.values())
        self.at = self._next(now) if has_load else FAR_FUTURE
        if not is_asked:
            self.picture = LoadPicture()

    def loads(self, now: Instant) -> Loads | None:
        """The loads for the policy; None while too little is known, or there is no load."""
        if now < self._known_from:
            return None
        loads = self.picture.loads(now)
        return loads if sum(loads.rates) >= LEAST else None

    def levels(self, now: Instant) -> dict[str, Loads]:
        """What is known of other metrics than requests, for the policy."""
        return {
            metric: picture.loads(now)
            for metric, picture in self._levels.items()
            if now >= max(self._known_from, self._levels_from[metric])
        }

    def carried(self, now: Instant) -> dict[int, float]:
        """The load of each incarnation, as far as it is known."""
        return carried(self._table.owners(), self.picture.loads(now))

    def levels_carried(self, now: Instant) -> dict[str, dict[int, float]]:
        """What each incarnation has of other metrics."""
        owners = self._table.owners()
        return {metric: carried(owners, loads) for metric, loads in self.levels(now).items()}


def _nothing_in(given: Sequence[Held]) -> list[RangeRate]:
    return [RangeRate(each.start, each.end, 0.0) for each in given]


def _summed(told: Sequence[RangeLoad], given: Sequence[Held]) -> list[RangeRate]:
    """The rates of the ranges that the table gives. Both lists are in order. What is told may be
    within one of them: the owner may not have heard yet that they were joined (`Renumbering`).
    """
    sums: dict[int, float] = {}
    for each in told:
        i = bisect_right(given, each.start, key=lambda held: held.start) - 1
        if 0 <= each.rate <= HIGHEST_RATE and i >= 0 and _is_part_of(each, given[i]):
            sums[i] = min(sums.get(i, 0.0) + each.rate, HIGHEST_RATE)
    return [RangeRate(given[i].start, given[i].end, rate) for i, rate in sums.items()]


def _is_part_of(told: RangeLoad, given: Held) -> bool:
    return given.end is None or (told.end is not None and told.end <= given.end)


def _is_in(key: Key, ranges: list[RangeRate]) -> bool:
    """Whether `key` is in one of the ranges, which are in order."""
    i = bisect_right(ranges, key, key=lambda each: each.start) - 1
    end = ranges[i].end if i >= 0 else b""
    return end is None or key < end
