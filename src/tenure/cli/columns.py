"""`tenure columns`: looking into stores of rows and columns, and looking after them."""

import asyncio
import importlib
import json
import shutil
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

from cyclopts import App, Parameter

from tenure.cli.output import EXAMPLE, say, show
from tenure.columns.backends.contract import Backend
from tenure.columns.backends.embedded import EmbeddedBackend, in_steps
from tenure.columns.checking import check as check_table
from tenure.columns.copying import copy_table
from tenure.columns.engines.directory import read_mark
from tenure.columns.engines.rocksdb import RocksEngine
from tenure.columns.opening import open_store
from tenure.columns.results import Column, Page, Row, SuperColumn
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Table, table_of
from tenure.errors import ConfigurationError, StoreDamaged
from tenure.observe.events import printable
from tenure.protocol.replication.names import NameType

Flag = Annotated[bool, Parameter(negative="")]
PROGRESS_SECONDS = 2.0

app = App(
    name="columns",
    help="Look into a store of rows and columns, and look after it. No other process may have it.",
)


@app.command(help_epilogue=EXAMPLE.format("columns inspect rocksdb:/var/lib/app/mail"))
def inspect(url: str, /, *, json_: Annotated[Flag, Parameter(name="--json")] = False) -> None:
    """Show the tables of a store, their families, and what they take."""
    asyncio.run(_inspect(url, as_json=json_))


async def _inspect(url: str, *, as_json: bool) -> None:
    async with opened(url) as (store, backend):
        figures = backend.replica.engine.figures()
        found = [
            {"table": name, "family": family, "is": str(of.record())} | figures[f"{name}.{family}"]
            for name, table in store.tables.items()
            for family, of in table.families.items()
        ]
        horizon = backend.replica.horizon
    if as_json:
        say(json.dumps({"horizon": horizon, "families": found}))
        return
    columns = ("table", "family", "is", "entries", "bytes", "memory")
    show(columns, [[each[what] for what in columns] for each in found], empty="no table yet")
    if horizon:
        say(f"writes up to the time {horizon} are refused: what was deleted by then is forgotten")


@app.command(help_epilogue=EXAMPLE.format("columns get rocksdb:mail mail ann terms tea --first 5"))
def get(
    url: str,
    table: str,
    key: str,
    /,
    *path: str,
    first: int = 100,
    reverse: Flag = False,
    json_: Annotated[Flag, Parameter(name="--json")] = False,
) -> None:
    """Show a row, a family, a super column or a column."""

    async def body() -> Any:  # noqa: ANN401 - what the path names
        async with opened(url) as (store, _):
            of = table_named(store, table)
            names = parsed_path(of, path)
            how: dict[str, Any] = {}
            if len(names) in (1, 2):
                how = {"first": first, "reverse": reverse}
            return await store.get(of, parsed(of.keys, key), *names, **how)

    tell(asyncio.run(body()), as_json=json_)


@app.command(help_epilogue=EXAMPLE.format("columns scan rocksdb:mail mail --start a --end b"))
def scan(
    url: str,
    table: str,
    /,
    *,
    start: str | None = None,
    end: str | None = None,
    limit: int = 100,
    json_: Annotated[Flag, Parameter(name="--json")] = False,
) -> None:
    """Show rows in the order of their keys."""

    async def body() -> list[Row]:
        async with opened(url) as (store, _):
            of = table_named(store, table)
            low, high = (None if each is None else parsed(of.keys, each) for each in (start, end))
            rows: list[Row] = []
            async for row in store.scan(of, start=low, end=high):
                rows.append(row)
                if len(rows) >= limit:
                    break
            return rows

    for row in asyncio.run(body()):
        tell(row, as_json=json_)


@app.command(help_epilogue=EXAMPLE.format("columns insert rocksdb:mail mail ann profile name Ann"))
def insert(url: str, table: str, key: str, /, *path_and_value: str) -> None:
    """Write one column: its path, then its value; as JSON, where values are not bytes."""

    async def body() -> None:
        async with opened(url) as (store, _):
            of = table_named(store, table)
            *path, text = path_and_value or ("",)
            names = parsed_path(of, path)
            if not names or len(names) != 2 + of.shapes[str(names[0])].has_supers:
                raise ConfigurationError("name the family, its column's whole path, and a value")
            family = of.families[str(names[0])]
            value: Any = raw(text) if family.values is bytes else json.loads(text)
            change: Any = {names[-1]: value}
            for name in reversed(names[:-1]):
                change = {name: change}
            await store.insert(of, parsed(of.keys, key), change)

    asyncio.run(body())


@app.command(help_epilogue=EXAMPLE.format("columns delete rocksdb:mail mail ann terms tea"))
def delete(url: str, table: str, key: str, /, *path: str) -> None:
    """Delete a row, a family, a super column or a column."""

    async def body() -> None:
        async with opened(url) as (store, _):
            of = table_named(store, table)
            await store.delete(of, parsed(of.keys, key), *parsed_path(of, path))

    asyncio.run(body())


@app.command(help_epilogue=EXAMPLE.format("columns compact rocksdb:mail"))
def compact(url: str, /) -> None:
    """Remove for good what was deleted long enough ago, and merge all files of each family."""

    async def body() -> int:
        async with opened(url) as (_, backend):
            swept = await backend.sweep()
            await asyncio.to_thread(backend.replica.engine.compact)
            return swept

    say(f"compacted; {asyncio.run(body())} deletes are gone for good")


@app.command(help_epilogue=EXAMPLE.format("columns backup rocksdb:mail /backup/mail-monday"))
def backup(url: str, directory: Path, /) -> None:
    """Make a copy of a store, of one instant, in a new directory. It is a store itself."""

    async def body() -> None:
        async with opened(url) as (_, backend):
            await asyncio.to_thread(backend.replica.engine.backup, str(directory))

    if directory.exists():
        raise ConfigurationError(f"{directory} is there already: name a new directory")
    asyncio.run(body())
    say(f"backed up to {directory}")


@app.command(help_epilogue=EXAMPLE.format("columns restore /backup/mail-monday rocksdb:mail"))
def restore(directory: Path, url: str, /) -> None:
    """Put a backup in the place of a store, which must have been moved away."""
    path = path_of_url(url)
    read_mark(directory)
    if path.exists():
        raise ConfigurationError(
            f"{path} is there: move it away first, and delete it when all is well"
        )
    draft = path.with_name(f".{path.name}.restoring")
    shutil.rmtree(draft, ignore_errors=True)
    shutil.copytree(directory, draft)
    draft.rename(path)
    asyncio.run(_check(f"rocksdb:{path}"))
    say(f"restored to {path}; it was checked")


@app.command(help_epilogue=EXAMPLE.format("columns check rocksdb:mail"))
def check(url: str, /) -> None:
    """Read all of a store, and verify checksums, digests, sums and the order of time."""
    asyncio.run(_check(url))
    say("no damage found")


async def _check(url: str) -> None:
    async with opened(url) as (store, backend):
        wrong = [
            line
            for table in store.tables.values()
            for line in await in_steps(check_table(backend.replica, table))
        ]
    if wrong:
        for line in wrong:
            say(line)
        raise StoreDamaged(
            f"{len(wrong)} things do not agree in {url}. Restore a backup: tenure columns restore"
        )


@app.command(help_epilogue=EXAMPLE.format("columns copy rocksdb:mail cassandra:db1,db2/mail"))
def copy(
    source: str,
    target: str,
    /,
    *,
    table: Annotated[tuple[str, ...], Parameter(help="A table; all of them otherwise.")] = (),
    tables: Annotated[
        str | None,
        Parameter(help="Where the tables are declared, as module:name; for a source in Cassandra."),
    ] = None,
    after: Annotated[str | None, Parameter(help="Go on behind this key, with one --table.")] = None,
) -> None:
    """Copy tables to another store, with all times. It may be begun again, or go on (--after)."""
    asyncio.run(_copy(source, target, table, tables, after))


async def _copy(
    source: str, target: str, names: Iterable[str], declared: str | None, after: str | None
) -> None:
    if declared is not None:
        known = imported(declared)
    else:
        async with opened(source) as (store, _):
            known = dict(store.tables)
    chosen = [known[name] if name in known else _no_table(name, known) for name in names]
    chosen = chosen or list(known.values())
    if after is not None and len(chosen) != 1:
        raise ConfigurationError("--after is a key of one table: say which with --table")
    is_remote = target.startswith("cassandra:")
    async with (
        open_store(source, *chosen) as old,
        open_store(target, *chosen, create=is_remote) as new,
    ):
        for of in chosen:
            behind = None if after is None else of.keys.encoded(parsed(of.keys, after), "--after")
            await _copy_one(of, old.backend, new.backend, behind)


async def _copy_one(table: Table, old: Backend, new: Backend, after: bytes | None) -> None:
    columns, told = 0, time.monotonic()
    async for key, count in copy_table(table, old, new, after):
        columns += count
        if time.monotonic() - told > PROGRESS_SECONDS:
            told = time.monotonic()
            where = shown_name(table.keys.decode(key))
            say(f"{columns} columns; to go on here: --table {table.name} --after {where}")
    say(f"{table.name}: {columns} columns copied")


# --- stores ---


def path_of_url(url: str) -> Path:
    """The directory that a URL names. Raises ConfigurationError for another store."""
    scheme, _, rest = url.partition(":")
    if scheme != "rocksdb" or not rest:
        raise ConfigurationError(f"{url!r} is not a store in a directory: name rocksdb:PATH")
    return Path(rest).expanduser()


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[tuple[ColumnStore, EmbeddedBackend]]:
    """A store that is there, with the tables that it has."""
    path = path_of_url(url)
    if not path.is_dir():
        raise ConfigurationError(f"there is no store {path}")
    said = read_mark(path)
    log = Path(said.log) if said.log else None
    backend = EmbeddedBackend(partial(RocksEngine.open, path, log), ())
    store = ColumnStore(backend, {})
    await store.open()
    try:
        records = backend.replica.records
        store.tables = {name: table_of(name, record) for name, record in records.items()}
        yield store, backend
    finally:
        await store.close()


def imported(place: str) -> dict[str, Table]:
    """The tables that a module declares under a name: one, or several in a sequence."""
    module, _, name = place.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(f"there are no tables at {place!r}: {error}") from None
    several = [found] if isinstance(found, Table) else list(found)
    return {each.name: each for each in several}


def table_named(store: ColumnStore, name: str) -> Table:
    """The table of that name."""
    return store.tables.get(name) or _no_table(name, store.tables)


def _no_table(name: str, known: Iterable[str]) -> Table:
    raise ConfigurationError(f"there is no table {name!r}; there are: {', '.join(known) or 'none'}")


# --- names and values ---


def parsed_path(table: Table, path: Iterable[str]) -> list[Any]:
    """The names of a path, in their types."""
    family, *names = [*path] or [""]
    if not family:
        return []
    of = table.families.get(family)
    if of is None:
        raise ConfigurationError(
            f"the table {table.name!r} has no family {family!r}; it has {', '.join(table.families)}"
        )
    types = [of.columns] if of.supers is None else [of.supers, of.columns]
    if len(names) > len(types):
        raise ConfigurationError(f"the path is too long: {' '.join(path)}")
    return [family, *(parsed(kind, name) for kind, name in zip(types, names, strict=False))]


def parsed(of: NameType, text: str) -> Any:  # noqa: ANN401 - of that type
    """A name as it is typed: bytes as text, or in hexadecimal behind 0x."""
    try:
        if of.python is bytes:
            return raw(text)
        return UUID(text) if of.python is UUID else of.python(text)
    except ValueError as error:
        raise ConfigurationError(f"{text!r} is not of type {of.word}: {error}") from None


def raw(text: str) -> bytes:
    """Bytes as they are typed."""
    return bytes.fromhex(text[2:]) if text.startswith("0x") else text.encode()


def shown_name(name: object) -> str:
    """A name or a value as it would be typed."""
    if not isinstance(name, bytes):
        return str(name)
    try:
        text = name.decode()
    except UnicodeDecodeError:
        return "0x" + name.hex()
    return text if text.isprintable() and not text.startswith("0x") else "0x" + name.hex()


def tell(found: Any, *, as_json: bool) -> None:  # noqa: ANN401 - what a store returns
    """What was found, as lines with tabs, or as JSON."""
    if as_json:
        say(json.dumps(plain(found)))
    elif found is None:
        say("there is no such column")
    else:
        for line in lines(found):
            print("\t".join(printable(each) for each in line), flush=True)


def lines(found: Any) -> Iterable[list[str]]:  # noqa: ANN401 - what a store returns
    """A line for each column, with its path before it."""
    match found:
        case Column():
            value = found.value if isinstance(found.value, bytes) else json.dumps(found.value)
            yield [shown_name(found.name), shown_name(value), str(found.version.time)]
        case Row():
            for family, page in found.families.items():
                yield from ([shown_name(found.key), family, *line] for line in lines(page))
        case SuperColumn():
            for column in found.columns:
                yield from ([shown_name(found.name), *line] for line in lines(column))
        case Page():
            for each in found:
                yield from lines(each)
        case _:
            raise AssertionError(found)


def plain(found: Any) -> Any:  # noqa: ANN401 - what a store returns
    """The same for JSON."""
    match found:
        case Column():
            value = shown_name(found.value) if isinstance(found.value, bytes) else found.value
            return {"name": _plain_name(found.name), "value": value, "time": found.version.time}
        case SuperColumn():
            columns = [plain(each) for each in found.columns]
            return {"name": _plain_name(found.name), "columns": columns}
        case Row():
            families = {name: plain(page) for name, page in found.families.items()}
            return {"key": _plain_name(found.key), "families": families}
        case Page():
            return [plain(each) for each in found]
        case _:
            return found


def _plain_name(name: object) -> object:
    return name if isinstance(name, int | float | str) else shown_name(name)
