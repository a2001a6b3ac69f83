"""The same writes and questions for a store of ours and for Cassandra 1.2.0, drawn from a seed."""

from random import Random
from typing import Any, NamedTuple

from tenure.columns.paths import DELETE
from tenure.columns.results import Column, Page, SuperColumn
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Family, Table
from tests.integration.cassandra import thrift
from tests.integration.cassandra.thrift import Deletion, Slice, ThriftClient

TABLE = Table(
    "compared",
    writes="clock",
    keys=bytes,
    simple=Family(columns=bytes),
    supers=Family(supers=bytes, columns=bytes),
)
KEYSPACE = "compared"
FAMILIES = {"simple": ("BytesType", None), "supers": ("BytesType", "BytesType")}
KEYS = [b"a", b"ab", b"b", b"\x00z", b"\xffq"]
NAMES = [b"m%d" % i for i in range(8)] + [b"\x00", b"\xff\xff", b"m3\x00"]
SUPERS = [b"s%d" % i for i in range(4)] + [b"\x00\x01"]
VALUES = [b"", b"1", b"22", b"\x7f"]
"""The larger value counts in a tie. Cassandra compares values as signed bytes, so that FF is below
7F. We do not, because everything else is in the order of bytes.
"""
TIMES = 25
"""There are so few times that ties are frequent, and so are late writes."""
ALL = 10_000
MOST = b"\xff" * 8
"""A bound after every name."""


class Write(NamedTuple):
    """One mutation at a time: values, None to delete; or what is deleted as a whole."""

    key: bytes
    time: int
    simple: dict[bytes, bytes | None]
    supers: dict[bytes, dict[bytes, bytes | None]]
    cleared: tuple[Any, ...] | None
    """A path, without values."""


class Question(NamedTuple):
    """A slice or a range, in the terms of ours: `end` is excluded."""

    key: bytes
    family: str
    super: bytes | None
    start: bytes | None
    end: bytes | None
    reverse: bool
    first: int


def drawn_write(random: Random, base: int, prefix: bytes) -> Write:
    """Any write, of a row whose key begins with `prefix`."""
    key, time = prefix + random.choice(KEYS), base + random.randrange(TIMES)
    if random.random() < 0.25:
        one = random.choice(SUPERS)
        cleared = random.choice([(), ("simple",), ("supers",), ("supers", one), ("supers", one)])
        return Write(key, time, {}, {}, cleared)

    def columns(most: int) -> dict[bytes, bytes | None]:
        names = random.sample(NAMES, random.randint(0, most))
        return {name: random.choice([*VALUES, None]) for name in names}

    simple = columns(4)
    supers = {one: columns(3) for one in random.sample(SUPERS, random.randint(0, 2))}
    supers = {one: found for one, found in supers.items() if found}
    if not simple and not supers:
        simple = {random.choice(NAMES): random.choice(VALUES)}
    return Write(key, time, simple, supers, None)


def drawn_question(random: Random, prefix: bytes) -> Question:
    """Any slice."""
    family = random.choice(["simple", "supers"])
    one = random.choice([None, *SUPERS]) if family == "supers" else None
    names = SUPERS if family == "supers" and one is None else NAMES
    lower, upper = sorted(random.sample(names, 2))
    return Question(
        prefix + random.choice(KEYS),
        family,
        one,
        random.choice([None, lower]),
        random.choice([None, upper]),
        random.random() < 0.5,
        random.choice([1, 2, 3, ALL]),
    )


async def write_ours(store: ColumnStore, write: Write) -> None:
    """Carry it out here."""
    if write.cleared is not None:
        await store.delete(TABLE, write.key, *write.cleared, timestamp=write.time)
        return

    def ours(columns: dict[bytes, bytes | None]) -> dict[bytes, Any]:
        return {name: DELETE if value is None else value for name, value in columns.items()}

    mutation: dict[str, Any] = {}
    if write.simple:
        mutation["simple"] = ours(write.simple)
    if write.supers:
        mutation["supers"] = {one: ours(columns) for one, columns in write.supers.items()}
    await store.insert(TABLE, write.key, mutation, timestamp=write.time)


def send_theirs(client: ThriftClient, write: Write, question: Question) -> None:
    """Have both carried out there, one after the other; `receive_theirs` waits for them."""
    client.send(client.mutating(write.key, _changes(write)))
    key, family, one, start, end, reverse, first = question
    lowest = start or b""
    highest = b"" if end is None else _last_below(end)  # both bounds are included there
    bounds = (highest, lowest) if reverse else (lowest, highest)
    client.send(client.slicing(key, family, Slice(*bounds, reverse, first), one))


def receive_theirs(client: ThriftClient) -> list[Any]:
    """Return what their client finds, in the form of `ask_ours`."""
    client.receive()
    return [_as_ours(each) for each in thrift.columns_of(client.receive())]


def _changes(write: Write) -> dict[str, list[thrift.Column | thrift.SuperColumn | Deletion]]:
    changes: dict[str, list[thrift.Column | thrift.SuperColumn | Deletion]] = {}
    if write.cleared is not None:
        cleared = write.cleared
        for family in cleared[:1] or FAMILIES:
            changes[family] = [Deletion(write.time, cleared[1] if len(cleared) > 1 else None)]
        return changes
    for name, value in write.simple.items():
        changes.setdefault("simple", []).append(_theirs(name, value, write.time, None))
    for one, columns in write.supers.items():
        for name, value in columns.items():
            changes.setdefault("supers", []).append(_theirs(name, value, write.time, one))
    return changes


def _theirs(
    name: bytes, value: bytes | None, time: int, one: bytes | None
) -> thrift.Column | thrift.SuperColumn | Deletion:
    if value is None:
        return Deletion(time, one, (name,))
    column = thrift.Column(name, value, time)
    return column if one is None else thrift.SuperColumn(one, (column,))


async def ask_ours(store: ColumnStore, question: Question) -> list[Any]:
    """Return what our store has, page after page, as plain tuples."""
    key, family, one, start, end, reverse, first = question
    path = (family,) if one is None else (family, one)
    found: Page = await store.get(
        TABLE, key, *path, start=start, end=end, reverse=reverse, first=first, within=ALL
    )
    return [_plain(each) for each in found]


def _plain(found: Column | SuperColumn) -> Any:  # noqa: ANN401 - a tuple, or one of tuples
    if isinstance(found, SuperColumn):
        return found.name, tuple(_plain(each) for each in found.columns)
    return found.name, found.value, found.version.time


def _as_ours(found: thrift.Column | thrift.SuperColumn) -> Any:  # noqa: ANN401 - as `_plain`
    if isinstance(found, thrift.SuperColumn):
        return found.name, tuple(tuple(each) for each in found.columns)
    return tuple(found)


def _last_below(end: bytes) -> bytes:
    """A name below `end`, and above all that are drawn and are below it."""
    if end[-1] == 0:
        return end[:-1] or MOST
    return end[:-1] + bytes([end[-1] - 1]) + MOST


async def scan_ours(store: ColumnStore, family: str, start: bytes, end: bytes) -> list[Any]:
    """Return the rows from `start` to `end`, excluded, with what they have in a family."""
    return [
        (row.key, [_plain(each) for each in row.families[family]])
        async for row in store.scan(TABLE, start=start, end=end, within=ALL)
        if family in row.families
    ]


def scan_theirs(client: ThriftClient, family: str, start: bytes, end: bytes) -> list[Any]:
    """Scan as `scan_ours` does. They also list rows of which everything is deleted, without
    columns.
    """
    rows = client.rows(family, start, _last_below(end), Slice(most=ALL), 1000)
    return [(key, [_as_ours(each) for each in columns]) for key, columns in rows if columns]
