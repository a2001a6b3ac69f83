"""Pages: whether what is read together fits together (D1, D2).

A read of several columns shows each as a register would; that is judged elsewhere. Here it is
judged whether mutations stay whole. Each has one place among the others, in all its columns alike:
if a read shows a mutation in a column, then the others of that column that were acknowledged before
the read began come before it. No two mutations can each come before the other, whether one read
says so or several, and no number of them can come before one another in a circle. Real time orders
them, too.

Of a mutation that is under way, or unknown, a part may be seen (D2). But if a row is only ever
written and read as a whole, nothing mends a part of it. So if all writes of a key set the same
columns, each to one value, and all reads are of all of them, every read shows one value: such a
key is *even*.
"""

from collections.abc import Iterator

from lab.judges.operations import NEVER, AnyOperation, Complaint, ReadOperation, WriteOperation

PROMISE = "D1: a mutation is torn"


class PageJudge:
    """Judges the reads of several columns of all keys."""

    def __init__(self) -> None:
        self._rows: dict[str, RowPages] = {}

    def add(self, operation: AnyOperation) -> None:
        """An operation has ended, or will not be heard of again."""
        key = operation.key
        if key not in self._rows:
            self._rows[key] = RowPages(key)
        self._rows[key].add(operation)

    def judge(self, running_since: int = NEVER) -> Iterator[Complaint]:
        """What is wrong with reads that ended before `running_since`."""
        for row in self._rows.values():
            yield from row.judge(running_since)


class RowPages:
    """The mutations of one key that still matter, and which of them come before which."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._begun = 0
        self._writes: dict[int, WriteOperation] = {}
        self._reads: list[ReadOperation] = []
        self._later: dict[int, set[int]] = {}
        """The mutations that reads have shown to come after each."""
        self._columns: frozenset[str] = frozenset()
        self._is_even = True

    def add(self, operation: AnyOperation) -> None:
        """An operation has ended, or will not be heard of again."""
        if self._is_even:
            self._compare(operation)
        if isinstance(operation, ReadOperation):
            if len(operation.columns) > 1 and not operation.is_weak:
                self._reads.append(operation)
        elif operation.told != "not written":
            self._begun += 1
            self._writes[self._begun] = operation

    def _compare(self, operation: AnyOperation) -> None:
        names = frozenset(operation.columns)
        self._columns = self._columns or names
        values = set(operation.columns.values())
        is_one = isinstance(operation, ReadOperation) or len(values) == 1
        self._is_even = is_one and len(names) > 1 and names == self._columns

    def judge(self, running_since: int = NEVER) -> Iterator[Complaint]:
        reads = [each for each in self._reads if each.ended < running_since]
        self._reads = [each for each in self._reads if each.ended >= running_since]
        for read in reads:
            complaint = self._uneven(read) or self._circle(read)
            if complaint is not None:
                yield complaint
        if reads:
            self._forget(running_since)

    def _uneven(self, read: ReadOperation) -> Complaint | None:
        if not self._is_even or len(set(read.columns.values())) == 1:
            return None
        values = set(read.columns.values())
        shown = [each for each in self._writes.values() if values & set(each.columns.values())]
        return Complaint(PROMISE, f"{self._key} is shown in parts", (*shown, read))

    # --- which comes before which ---

    def _circle(self, read: ReadOperation) -> Complaint | None:
        for name, value in read.columns.items():
            shown = self._writer(name, value, read)
            if shown is None:
                continue
            for before in self._acknowledged(name, shown, read):
                self._later.setdefault(before, set()).add(shown)
                path = self._path(shown, before, set())
                if path:
                    writes = [self._writes[each] for each in path]
                    what = f"{self._key} {name}: {value} is shown, and comes before what it hides"
                    return Complaint(PROMISE, what, (*writes, read))
        return None

    def _writer(self, name: str, value: str | None, read: ReadOperation) -> int | None:
        """The only mutation that can have written what a read shows; None if there are several."""
        found, was_there = [], False
        for number, each in self._writes.items():
            if name in each.columns and each.began <= read.ended:
                if each.columns[name] == value:
                    found.append(number)
                else:
                    was_there = was_there or (each.is_sure and each.ended < read.began)
        if len(found) != 1 or (value is None and not was_there):
            return None
        return found[0]

    def _acknowledged(self, name: str, shown: int, read: ReadOperation) -> Iterator[int]:
        """The other mutations of the column that a read must not miss. Of those that ended before
        the shown one began real time says that they come before it.
        """
        began = self._writes[shown].began
        for number, each in self._writes.items():
            is_other = number != shown and name in each.columns
            if is_other and each.is_sure and began <= each.ended < read.began:
                yield number

    def _path(self, start: int, goal: int, seen: set[int]) -> list[int]:
        """A way from one mutation to one that comes after it; empty if there is none."""
        if start == goal:
            return [goal]
        seen.add(start)
        ended = self._writes[start].last
        nearest = self._later.get(start, set())
        later = [each for each in self._later if self._writes[each].began > ended]
        for each in (*nearest, *later):
            if each not in seen and (rest := self._path(each, goal, seen)):
                return [start, *rest]
        return []

    def _forget(self, running_since: int) -> None:
        """Forget mutations that no read which is still to begin can show."""
        newest: dict[str, int] = {}
        for each in self._writes.values():
            if each.is_sure and each.ended < running_since:
                for name in each.columns:
                    newest[name] = max(newest.get(name, -1), each.began)
        gone = {
            number
            for number, each in self._writes.items()
            if all(newest.get(name, -1) > each.last for name in each.columns)
        }
        for number in sorted(gone):
            del self._writes[number]
            self._later.pop(number, None)
        for later in self._later.values():
            later.difference_update(gone)
