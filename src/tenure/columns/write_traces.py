"""Traces of writes: they show which writes a replica has applied, even if others have hidden them
since (R4).

A repeated write may have been seen, and overwritten by a client that has seen it: then it must not
count again. Or it has reached no replica, and lies below a write from before it began: then it must
not be acknowledged with its time. The row itself does not show which of these happened. So each
applied write leaves a trace, in the same batch. Traces are swept after ten minutes: a client that
repeats a write later than that may start with a new time.

A trace has the mark of a write, and not its version alone: two writers may draw one time. A write
that is admitted leaves the mark of the whole. A mend, or a hint that lies below something, leaves
one for each entry that counts all the same: of a write it may bring some entries, where others lie
below what was acknowledged before. It leaves none for a marker below something, because that may be
a column which the marker should hide.

The writes of owners leave traces, too. A row has one owner, but its times need not rise: a clock
that was ahead may be set right (R3).
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from tenure.columns.engines.contract import Entry, StorageEngine
from tenure.protocol.replication.layout import TIME_BYTES
from tenure.protocol.replication.limits import HORIZON_LAG_US, STEP_ENTRIES
from tenure.protocol.replication.pages import Steps
from tenure.protocol.replication.versions import VERSION_BYTES, version_of


def traces_space(table: str) -> str:
    """The space of the traces of a table, by time."""
    return f"{table}/traces"


def traces_of(table: str, at: bytes, marks: Iterable[bytes]) -> Iterator[Entry]:
    """The entries for the marks of writes that are applied to the row at a position."""
    for mark in marks:
        yield traces_space(table), _key(at, mark), b""


def have_traces(engine: StorageEngine, table: str, at: bytes, marks: Iterable[bytes]) -> list[bool]:
    """Whether each of these marks has been left at the row."""
    found = engine.get(traces_space(table), [_key(at, mark) for mark in marks])
    return [each is not None for each in found]


def _key(at: bytes, mark: bytes) -> bytes:
    return version_of(mark).time.to_bytes(TIME_BYTES) + at + mark[VERSION_BYTES:]


def sweep_traces(engine: StorageEngine, table: str, clock: Callable[[], int]) -> Steps[int]:
    """Remove old traces, in steps."""
    upper = max(0, clock() - HORIZON_LAG_US).to_bytes(TIME_BYTES)
    name, count = traces_space(table), 0
    while True:
        found = [key for key, _ in islice(engine.cursor(name).walk(b"", upper), STEP_ENTRIES)]
        engine.apply([(name, key, None) for key in found])
        count += len(found)
        if len(found) < STEP_ENTRIES:
            return count
        yield
