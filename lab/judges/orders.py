"""Orders: whether reads and writes of one register can have happened one after another.

The search is that of Wing and Gong, in the form that Lowe calls just-in-time: it goes through the
beginnings and ends of accesses, and keeps each *configuration* that may explain what was seen so
far: the value, and which of the accesses under way have taken effect. When an access ends that has
not taken effect in a configuration, writes under way take effect there until it has; if that is
impossible in all of them, there is no order. Configurations that are equal are one.

Without more, n writes under way may have taken effect in 2^n ways. Values are unique and the future
is known, which leaves few of them:

- a write whose value nobody reads takes effect just before another write does, if there is one;
- an unknown write takes effect only to be read, and there is no need of it before;
- a value is not replaced while a read of it is still to begin;
- of deletes, which are alike, the one that must end first takes effect first.
"""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

from lab.judges.operations import NEVER, AnyOperation

MOST_CONFIGURATIONS = 20_000
BEGINS, ENDS, EXPIRES = range(3)
"""What happens at one instant: beginnings come first, so accesses that touch are concurrent. An
unknown write expires when the last read of its value has ended.
"""


class Access(NamedTuple):
    """One read or write of one register. An unknown write ends never."""

    value: str | None
    is_write: bool
    began: int
    ended: int
    operation: AnyOperation | None = None


def write_of(
    value: str | None, began: int, ended: int, operation: AnyOperation | None = None
) -> Access:
    """A write, which is unknown if it ends never."""
    return Access(value, is_write=True, began=began, ended=ended, operation=operation)


def read_of(
    value: str | None, began: int, ended: int, operation: AnyOperation | None = None
) -> Access:
    """A read that has returned this value."""
    return Access(value, is_write=False, began=began, ended=ended, operation=operation)


class Configuration(NamedTuple):
    """A place in the search: what has taken effect so far, and the value that is there then."""

    value: str | None
    done: frozenset[int] = frozenset()
    """The accesses under way that have taken effect, and unknown writes that did."""
    deletes: int = 0
    """How many unknown deletes have taken effect."""


class Order(NamedTuple):
    """There is an order. `loose` are the unknown writes that need not have taken effect in it."""

    loose: tuple[Access, ...]


class NoOrder(NamedTuple):
    """No order explains the access, which is the first to end of those that nothing explains."""

    access: Access


class GivenUp(NamedTuple):
    """The search was given up."""

    access: Access


def order_of(value: str | None, accesses: Sequence[Access]) -> Order | NoOrder | GivenUp:
    """Search for an order of accesses to a register that has this value at first."""
    return _Search(value, accesses).run()


class _Search:
    """See above. Accesses are known by their places in the sequence."""

    def __init__(self, value: str | None, accesses: Sequence[Access]) -> None:
        self._accesses = accesses
        self._first = value
        self._begins: dict[str | None, int] = {}
        """When the last read of each value begins."""
        self._ends: dict[str | None, int] = {}
        for each in accesses:
            if not each.is_write:
                self._begins[each.value] = max(each.began, self._begins.get(each.value, -1))
                self._ends[each.value] = max(each.ended, self._ends.get(each.value, -1))
        self._now = 0
        self._reads: set[int] = set()
        self._writes: set[int] = set()
        """Writes under way whose value is read."""
        self._unread: set[int] = set()
        self._deletes: list[int] = []
        """Deletes under way, those that end first at first."""
        self._loose_deletes: list[Access] = []

    def run(self) -> Order | NoOrder | GivenUp:
        """Go through all beginnings and ends."""
        found = {Configuration(self._first)}
        for at, kind, place in self._events():
            self._now = at
            access = self._accesses[place]
            if kind == BEGINS:
                found = self._begin(place, access, found)
                continue
            ended = self._end(place, found)
            if not ended:
                return NoOrder(access)
            if len(ended) > MOST_CONFIGURATIONS:
                return GivenUp(access)
            found = self._forget(place, access, ended)
        return self._order(found)

    def _events(self) -> list[tuple[int, int, int]]:
        events = []
        for place, access in enumerate(self._accesses):
            if access.ended == NEVER and access.value is not None and not self._is_read(access):
                continue
            events.append((access.began, BEGINS, place))
            if access.ended < NEVER:
                events.append((access.ended, ENDS, place))
            elif access.value is not None:
                events.append((max(access.began, self._ends[access.value]), EXPIRES, place))
        return sorted(events)

    def _is_read(self, access: Access) -> bool:
        return access.value in self._begins

    # --- beginnings ---

    def _begin(self, place: int, access: Access, found: set[Configuration]) -> set[Configuration]:
        if not access.is_write:
            self._reads.add(place)
            return {
                Configuration(each.value, each.done | {place}, each.deletes)
                if each.value == access.value
                else each
                for each in found
            }
        if access.value is None and access.ended == NEVER:
            self._loose_deletes.append(access)
        elif access.value is None:
            self._deletes.append(place)
            self._deletes.sort(key=lambda each: self._accesses[each].ended)
        elif self._is_read(access):
            self._writes.add(place)
        else:
            self._unread.add(place)
        return found

    # --- ends ---

    def _end(self, place: int, found: set[Configuration]) -> set[Configuration]:
        """The configurations in which the access has taken effect."""
        seen, rest, ended = set(found), list(found), set()
        while rest and len(seen) <= MOST_CONFIGURATIONS:
            each = rest.pop()
            if place in each.done or self._accesses[place].ended == NEVER:
                ended.add(each)
                continue
            for after in self._moves(each, place):
                if after not in seen:
                    seen.add(after)
                    rest.append(after)
        return ended if not rest else seen

    def _moves(self, each: Configuration, wanted: int) -> Iterable[Configuration]:
        """The configurations after one more write."""
        if each.value is not None and self._begins.get(each.value, -1) > self._now:
            return
        for place in sorted(self._writes - each.done):
            yield self._after(each, place)
        if wanted in self._unread:
            yield self._after(each, wanted)
        delete = next((place for place in self._deletes if place not in each.done), None)
        if delete is not None:
            yield self._after(each, delete)
        elif each.deletes < len(self._loose_deletes):
            yield self._after(each, None)

    def _after(self, each: Configuration, place: int | None) -> Configuration:
        value = None if place is None else self._accesses[place].value
        done = each.done | self._unread
        done |= {read for read in self._reads if self._accesses[read].value == value}
        if place is None:
            return Configuration(value, done, each.deletes + 1)
        return Configuration(value, done | {place}, each.deletes)

    def _forget(self, place: int, access: Access, found: set[Configuration]) -> set[Configuration]:
        for places in (self._reads, self._writes, self._unread):
            places.discard(place)
        if place in self._deletes:
            self._deletes.remove(place)
        gone = {place}
        return self._fewest(
            Configuration(each.value, each.done - gone, each.deletes) for each in found
        )

    @staticmethod
    def _fewest(found: Iterable[Configuration]) -> set[Configuration]:
        """Without those that have used more unknown deletes than others like them."""
        best: dict[tuple[str | None, frozenset[int]], Configuration] = {}
        for each in found:
            other = best.get((each.value, each.done))
            if other is None or each.deletes < other.deletes:
                best[each.value, each.done] = each
        return set(best.values())

    def _order(self, found: set[Configuration]) -> Order:
        used = min(each.deletes for each in found)
        loose = [
            access
            for access in self._accesses
            if access.ended == NEVER and access.value is not None and not self._is_read(access)
        ]
        loose += self._loose_deletes[used:]
        return Order(tuple(sorted(loose, key=attrgetter("began"))))
