"""What the keys of an owner take up, by metric: memory, connections, anything but requests.

A level stands until another is recorded or the key is lost. An entry is of the lease number under
which it was recorded, so that nothing has to be swept when a range goes and comes back: the next
report drops what is no longer held.
"""

from bisect import bisect_right
from collections.abc import Iterable
from heapq import nlargest
from itertools import accumulate
from operator import itemgetter

from tenure.base.keys import Key
from tenure.client.snapshot import Snapshot
from tenure.protocol.balance.load import HIGHEST_RATE
from tenure.protocol.balance.picture import RangeRate
from tenure.protocol.lease.limits import PINNED_KEY_BYTES
from tenure.protocol.lease.load_report import KeyLoad, LevelLoad, RangeLoad
from tenure.protocol.lease.owner.meter import POSITIONS, TOLD_AT_MOST, most_loaded


class Levels:
    """The present levels. Any thread may record; one thread reports."""

    def __init__(self, metrics: Iterable[str], *, is_ordered: bool) -> None:
        self.metrics = list(metrics)
        """The metrics for which the owner has a capacity."""
        self._entries: dict[str, dict[Key, tuple[int, float]]] = {each: {} for each in self.metrics}
        self._is_ordered = is_ordered

    def record(self, metric: str, key: Key, number: int, amount: float) -> None:
        """From now on the key, which is held under that lease number, takes up so much."""
        self._entries[metric][key] = number, amount

    def told(self, held: Snapshot) -> tuple[LevelLoad, ...]:
        """What a report says of each metric."""
        return tuple(self._level(metric, held) for metric in self._entries)

    def _level(self, metric: str, held: Snapshot) -> LevelLoad:
        entries, found = self._entries[metric], dict[Key, float]()
        sums = [0.0] * len(held.numbers)
        for key, entry in entries.copy().items():  # in one step: other threads add to them
            number, amount = entry
            i = bisect_right(held.bounds, key)
            here = held.numbers[i] if held.firsts is None else held.number(key)
            if amount and here == number:
                sums[i] += amount
                found[key] = amount
            elif entries.get(key) is entry:  # a thread that records just now may lose what it did
                del entries[key]
        if not found:
            return LevelLoad(metric=metric, ranges=())
        ranges = [RangeRate(it.start, it.end, sums[held.index(it.start)]) for it in held.leases]
        most = nlargest(TOLD_AT_MOST, found.items(), key=itemgetter(1))
        return LevelLoad(
            metric=metric,
            ranges=tuple(
                RangeLoad(start=start, end=end, rate=min(amount, HIGHEST_RATE))
                for start, end, amount in most_loaded(ranges)
            ),
            hottest=tuple(
                KeyLoad(key=key, rate=min(amount, HIGHEST_RATE))
                for key, amount in most
                if len(key) <= PINNED_KEY_BYTES
            ),
            sample=_sample(found, {key for key, _ in most}) if self._is_ordered else (),
        )


def _sample(found: dict[Key, float], told: set[Key]) -> tuple[Key, ...]:
    """So many keys, with equal amounts between them; none of those that are told of anyway."""
    keys = sorted(key for key in found if key not in told and len(key) <= PINNED_KEY_BYTES)
    below = list(accumulate(found[key] for key in keys))
    steps = (below[-1] * (i + 0.5) / POSITIONS for i in range(POSITIONS)) if keys else ()
    return tuple(dict.fromkeys(keys[min(bisect_right(below, at), len(keys) - 1)] for at in steps))
