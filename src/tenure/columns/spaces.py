"""The spaces that a table has in an engine, and the entries in its space of doomed things."""

from functools import cache

from tenure.protocol.replication.row.admission import Doomed
from tenure.protocol.replication.row.layout import CELL, MARKER, TIME_BYTES

HINTS = "hints"
"""The space of what a node keeps for other nodes; no other store has it."""


@cache
def space(table: str, family: str) -> str:
    return f"{table}.{family}"


@cache
def rows_space(table: str) -> str:
    return f"{table}/rows"


def doomed_space(table: str) -> str:
    """The space of things that go when the horizon passes them, by time."""
    return f"{table}/doomed"


def traces_space(table: str) -> str:
    """The space in which a former release kept what it had refused; nothing reads it any more."""
    return f"{table}/traces"


def doomed_entry(doomed: Doomed) -> tuple[bytes, bytes]:
    """The entry in that space that says that something is doomed."""
    key = b"".join((doomed.time, doomed.family.encode(), b"\0", doomed.key))
    return key, MARKER if doomed.covers else CELL


def doomed_of(entry: bytes, kind: bytes) -> Doomed:
    """The doomed thing that an entry of that space names."""
    family, _, key = entry[TIME_BYTES:].partition(b"\0")
    return Doomed(entry[:TIME_BYTES], family.decode(), key, kind == MARKER)
