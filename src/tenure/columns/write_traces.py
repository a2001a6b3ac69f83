"""Traces of writes: which have been at a replica, also where others have hidden them since (R4).

A repeated write may have been seen, and overwritten by who has seen it: then it must not count
again. Or it has reached nobody, and lies below what was there before it began: then it must not be
acknowledged as it is. The row itself does not tell which of these it is. So what is applied leaves
a trace, in the same batch. Traces are swept after ten minutes: who repeats a write later than that
may begin anew.

Rows that are fenced need none: they have one writer, whose times rise.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from tenure.columns.engines.contract import Entry, StorageEngine
from tenure.protocol.replication.layout import TIME_BYTES
from tenure.protocol.replication.limits import HORIZON_LAG_US, STEP_ENTRIES
from tenure.protocol.replication.pages import Steps
from tenure.protocol.replication.versions import version_of


def traces_space(table: str) -> str:
    """The space of the traces of a table, by time."""
    return f"{table}/traces"


def traces_of(table: str, at: bytes, versions: Iterable[bytes]) -> Iterator[Entry]:
    """What is written for versions that are applied to the row at a position."""
    for packed in versions:
        version = version_of(packed)
        if not version.number:
            yield traces_space(table), version.time.to_bytes(TIME_BYTES) + at, b""


def has_trace(engine: StorageEngine, table: str, at: bytes, time: int) -> bool:
    """Whether a write of that time has been at the row."""
    [found] = engine.get(traces_space(table), [time.to_bytes(TIME_BYTES) + at])
    return found is not None


def sweep_traces(engine: StorageEngine, table: str, clock: Callable[[], int]) -> Steps[int]:
    """Remove old ones, in steps."""
    upper = max(0, clock() - HORIZON_LAG_US).to_bytes(TIME_BYTES)
    name, count = traces_space(table), 0
    while True:
        found = [key for key, _ in islice(engine.cursor(name).walk(b"", upper), STEP_ENTRIES)]
        engine.apply([(name, key, None) for key in found])
        count += len(found)
        if len(found) < STEP_ENTRIES:
            return count
        yield
