"""Registers: each column of each key is linearizable, deletes included (D2, D3).

A history is linearizable if that of each column is, so each has a search of its own. What is
settled is searched once and forgotten: if an access ran alone, with nothing beside it but unknown
writes, the value is known at its end, whatever came before. Only unknown writes that nobody has
read are kept: each may still take effect.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from operator import attrgetter

from lab.judges.operations import NEVER, AnyOperation, Complaint, ReadOperation, WriteOperation
from lab.judges.orders import Access, GivenUp, NoOrder, Order, order_of, read_of, write_of

PROMISE = "D2: a column is no register"
PAST = 64
"""How many of the settled accesses are kept, for stories only."""


class ColumnHistory:
    """The history of one register: what is settled, and what was recorded since."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.value: str | None = None
        self.undecided = 0
        """How many searches were given up."""
        self._loose: tuple[Access, ...] = ()
        self._accesses: list[Access] = []
        self._past: deque[Access] = deque(maxlen=PAST)

    def add(self, access: Access) -> None:
        """An access has ended, or will not be heard of again."""
        self._accesses.append(access)

    @property
    def is_as_new(self) -> bool:
        """Whether it may be forgotten: there is no value, and nothing can still take effect."""
        return self.value is None and not self._loose and not self._accesses

    def judge(self, running_since: int = NEVER) -> Complaint | None:
        """Search what is settled. No access that is still to be added began before `running_since`;
        if that is NEVER, everything is searched.
        """
        accesses = sorted(self._accesses, key=attrgetter("began"))
        last = _last_alone(accesses, running_since) if running_since < NEVER else None
        if last is None and running_since < NEVER:
            return None
        settled = [each for each in accesses if last is None or each.began <= last.ended]
        self._accesses = accesses[len(settled) :]
        if last is not None and last.is_write:  # what follows begins with its value
            settled.append(read_of(last.value, last.ended, last.ended))
        searched = [*self._loose, *settled]
        match order_of(self.value, searched):
            case NoOrder():
                return self._complaint(searched)
            case GivenUp():
                self.undecided += 1
                self._loose = tuple(each for each in searched if each.ended == NEVER)
            case Order(loose):
                self._loose = loose
        if last is not None:
            self.value = last.value
            self._past.extend(settled)
        return None

    def _complaint(self, searched: list[Access]) -> Complaint:
        shown = shrunk(self.value, searched)
        first = order_of(self.value, shown)
        assert isinstance(first, NoOrder)
        access = first.access
        what = f"{self.name}: nothing explains {access.value}, {_kind(access)}"
        past = list(self._past)
        before = [each for each in past[:-2] if each.value == access.value] + past[-2:]
        shown = [*before, *shown]
        operations = [each.operation for each in shown if each.operation is not None]
        return Complaint(PROMISE, what, tuple(operations))


def _kind(access: Access) -> str:
    verb = "written" if access.is_write else "read"
    return f"{verb} from {access.began} to {access.ended}"


def _last_alone(accesses: list[Access], running_since: int) -> Access | None:
    """The last access with nothing beside it; unknown writes do not count."""
    found, busy_until = None, -1
    known = [each for each in accesses if each.ended < NEVER]
    for place, access in enumerate(known):
        following = known[place + 1].began if place + 1 < len(known) else running_since
        if busy_until < access.began and access.ended < min(following, running_since):
            found = access
        busy_until = max(busy_until, access.ended)
    return found


def shrunk(value: str | None, accesses: list[Access]) -> list[Access]:
    """As few of the accesses as still have no order. A write goes only together with all reads of
    its value: an order of a history is one of what is left without them, too.
    """
    left = accesses
    clusters: dict[str | None, list[Access]] = {}
    for access in accesses:
        clusters.setdefault(access.value, []).append(access)
    left = _without(value, left, list(clusters.values()))
    left = _without(value, left, [[each] for each in left if not each.is_write])
    if any(each.value is None and not each.is_write for each in left):
        return left
    return _without(value, left, [[each] for each in left if each.value is None])


def _without(value: str | None, accesses: list[Access], parts: list[list[Access]]) -> list[Access]:
    """What is left without as many of the parts as possible: many are tried at once first."""
    left, size = accesses, max(len(parts), 1)
    while size:
        for start in range(0, len(parts), size):
            gone = {id(access) for part in parts[start : start + size] for access in part}
            fewer = [each for each in left if id(each) not in gone]
            if isinstance(order_of(value, fewer), NoOrder):
                left = fewer
        size //= 2
    return left


def _access(value: str | None, operation: AnyOperation) -> Access | None:
    """What an operation did to a register; None if that explains nothing."""
    match operation:
        case WriteOperation(told="not written") | ReadOperation(is_weak=True):
            return None
        case WriteOperation(began=began, last=last):
            return write_of(value, began, last, operation)
        case ReadOperation(began=began, ended=ended):
            return read_of(value, began, ended, operation)


class RegisterJudge:
    """Judges the columns of all keys."""

    def __init__(self) -> None:
        self.undecided = 0
        """How many searches were given up."""
        self._keys: dict[str, dict[str, ColumnHistory]] = {}

    def names(self, key: str) -> Iterable[str]:
        """The columns of which anything is known that is not settled to be absent."""
        return self._keys.get(key, ())

    def add(self, operation: AnyOperation) -> None:
        """An operation has ended, or will not be heard of again."""
        columns = self._keys.setdefault(operation.key, {})
        for name, value in operation.columns.items():
            access = _access(value, operation)
            if access is not None:
                if name not in columns:
                    columns[name] = ColumnHistory(f"{operation.key} {name}")
                columns[name].add(access)

    def judge(self, running_since: int = NEVER) -> Iterator[Complaint]:
        """What is wrong with what is settled: see `ColumnHistory.judge`."""
        for columns in self._keys.values():
            for name, each in list(columns.items()):
                found = each.judge(running_since)
                if found is not None:
                    yield found
                if each.is_as_new:
                    self.undecided += each.undecided
                    del columns[name]
