"""`tenure columns`: looking into stores of rows and columns, and looking after them."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from cyclopts import App, Parameter

from tenure.cli.columns_output import parsed, parsed_path, raw, tell, tell_done
from tenure.cli.columns_stores import (
    Driver,
    Json,
    StoreUrl,
    looked_at,
    opened,
    path_of_url,
    reached,
    table_named,
)
from tenure.cli.output import EXAMPLE, say, show
from tenure.cli.ring import add_commands
from tenure.cli.ring_upkeep import add_upkeep_commands
from tenure.cli.waiting import WaitingLine
from tenure.columns.backends.embedded import EmbeddedBackend, in_steps
from tenure.columns.checking import check as check_table
from tenure.columns.engines.directory import read_mark
from tenure.columns.results import Row
from tenure.errors import ConfigurationError, StoreDamaged
from tenure.protocol.replication.row.versions import Version

Directory: TypeAlias = Annotated[str, Parameter(help="The store's directory, as rocksdb:PATH.")]
TableName: TypeAlias = Annotated[str, Parameter(help="A table of the store.")]
RowKey: TypeAlias = Annotated[str, Parameter(help="The key of a row.")]
PATH_HELP = "The family, and what of it: its super column where it has some, its column."

app = App(
    name="columns",
    help="Look into a store of rows and columns, and maintain it. A directory belongs to one "
    "process at a time; the commands for clusters ask a manager.",
)
add_commands(app)
add_upkeep_commands(app)

app.command(
    "tenure.cli.node:node",
    name="node",
    help="Run a node of a cluster, through which clients reach the whole store.",
    help_epilogue=EXAMPLE.format(
        "columns node --cluster home --data ./n1 --secret ./secret -m http://127.0.0.1:7400"
    ),
)
app.command(
    "tenure.cli.up:up",
    name="up",
    help="Run a whole cluster on this host: a manager and some nodes.",
    help_epilogue=EXAMPLE.format("columns up --nodes 3"),
)

app.command(
    "tenure.cli.columns_copy:copy",
    name="copy",
    help="Copy tables to another store, with all times. You may start over, or resume with "
    "--after.",
    help_epilogue=EXAMPLE.format("columns copy rocksdb:mail cassandra:db1,db2/mail"),
)
app.command(
    "tenure.cli.columns_refencing:refence",
    name="refence",
    help="Show the fences of a table's rows, by journal, and what to do if a journal is lost. In a "
    "directory, --journal gives up its fences: its leases are refused for good, and owners with "
    "leases of another journal may write the rows.",
    help_epilogue=EXAMPLE.format("columns refence rocksdb:rooms rooms --journal 0c9e66"),
)


@app.command(help_epilogue=EXAMPLE.format("columns inspect rocksdb:/var/lib/app/mail"))
def inspect(
    url: StoreUrl,
    /,
    *,
    json_: Json = False,
    driver: Driver = None,
) -> None:
    """Show the tables of a store, their families, and what they take."""
    asyncio.run(_inspect(url, driver, as_json=json_))


async def _inspect(url: str, driver: str | None, *, as_json: bool) -> None:
    figures: dict[str, dict[str, int]] = {}
    horizon = 0
    async with reached(url, driver) as store:
        if isinstance(store.backend, EmbeddedBackend):
            figures = store.backend.replica.engine.figures()
            horizon = store.backend.replica.horizon
        found: list[dict[str, Any]] = [
            {"table": name, "family": family, "is": str(of.record())}
            | figures.get(f"{name}.{family}", {})
            for name, table in store.tables.items()
            for family, of in table.families.items()
        ]
    if as_json:
        say(json.dumps({"horizon": horizon, "families": found}))
        return
    columns = ("table", "family", "is", "entries", "bytes", "memory")
    show(
        columns, [[each.get(what, "") for what in columns] for each in found], empty="no table yet"
    )
    if horizon:
        say(f"writes up to the time {horizon} are refused: what was deleted by then is forgotten")


@app.command(help_epilogue=EXAMPLE.format("columns get rocksdb:mail mail ann terms tea --first 5"))
def get(
    url: StoreUrl,
    table: TableName,
    key: RowKey,
    /,
    *path: Annotated[str, Parameter(help=PATH_HELP)],
    first: Annotated[int, Parameter(help="How many columns of a family.")] = 100,
    reverse: Annotated[bool, Parameter(negative="", help="List the last ones first.")] = False,
    json_: Json = False,
    driver: Driver = None,
) -> None:
    """Show a row, a family, a super column or a column."""

    async def body() -> Any:  # noqa: ANN401 - what the path names
        async with reached(url, driver) as store:
            of = table_named(store, table)
            names = parsed_path(of, path)
            how: dict[str, Any] = {}
            if len(names) in (1, 2):
                how = {"first": first, "reverse": reverse}
            return await store.get(of, parsed(of.keys, key), *names, **how)

    tell(asyncio.run(body()), as_json=json_)


@app.command(help_epilogue=EXAMPLE.format("columns scan rocksdb:mail mail --start a --end b"))
def scan(
    url: StoreUrl,
    table: TableName,
    /,
    *,
    start: Annotated[str | None, Parameter(help="The first key.")] = None,
    end: Annotated[str | None, Parameter(help="The key before which to end.")] = None,
    limit: Annotated[int, Parameter(help="How many rows.")] = 100,
    json_: Json = False,
    driver: Driver = None,
) -> None:
    """Show rows in the order of their keys."""
    if limit < 1:
        raise ConfigurationError(f"--limit {limit}: show one row or more")

    async def body() -> list[Row]:
        async with reached(url, driver) as store:
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
def insert(
    url: StoreUrl,
    table: TableName,
    key: RowKey,
    /,
    *path_and_value: Annotated[
        str, Parameter(help="The family, the super column where it has some, the column, a value.")
    ],
    json_: Json = False,
    driver: Driver = None,
) -> None:
    """Write one column: its path, then its value, as JSON if values are not bytes."""

    async def body() -> Version:
        async with reached(url, driver) as store:
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
            return await store.insert(of, parsed(of.keys, key), change)

    tell_done("written", as_json=json_, time=asyncio.run(body()).time)


@app.command(help_epilogue=EXAMPLE.format("columns delete rocksdb:mail mail ann terms tea"))
def delete(
    url: StoreUrl,
    table: TableName,
    key: RowKey,
    /,
    *path: Annotated[str, Parameter(help=PATH_HELP)],
    json_: Json = False,
    driver: Driver = None,
) -> None:
    """Delete a row, a family, a super column or a column."""

    async def body() -> Version:
        async with reached(url, driver) as store:
            of = table_named(store, table)
            return await store.delete(of, parsed(of.keys, key), *parsed_path(of, path))

    tell_done("deleted", as_json=json_, time=asyncio.run(body()).time)


@app.command(help_epilogue=EXAMPLE.format("columns compact rocksdb:mail"))
def compact(url: Directory, /, *, json_: Json = False) -> None:
    """Remove for good what was deleted long enough ago, and merge all files of each family."""

    async def body() -> int:
        async with opened(url) as (_, backend):
            swept = await backend.sweep()
            await asyncio.to_thread(backend.replica.engine.compact)
            return swept

    swept = asyncio.run(body())
    tell_done(f"compacted; {swept} deletes are gone for good", as_json=json_, deletes_gone=swept)


@app.command(help_epilogue=EXAMPLE.format("columns backup rocksdb:mail /backup/mail-monday"))
def backup(
    url: Directory,
    directory: Annotated[Path, Parameter(help="A new directory for the copy.")],
    /,
    *,
    json_: Json = False,
) -> None:
    """Copy a store, as it is at one instant, into a new directory, which is itself a store."""

    async def body() -> None:
        async with opened(url) as (_, backend):
            await asyncio.to_thread(backend.replica.engine.backup, str(directory))

    if directory.exists():
        raise ConfigurationError(f"{directory} already exists: name a new directory")
    asyncio.run(body())
    tell_done(f"backed up to {directory}", as_json=json_, directory=str(directory))


@app.command(help_epilogue=EXAMPLE.format("columns restore /backup/mail-monday rocksdb:mail"))
def restore(
    directory: Annotated[Path, Parameter(help="The backup's directory.")],
    url: Directory,
    /,
    *,
    json_: Json = False,
) -> None:
    """Restore a backup to where a store was; move the old store away first."""
    path = path_of_url(url)
    read_mark(directory)
    if path.exists():
        raise ConfigurationError(
            f"{path} exists: move it away first, and delete it once all is well"
        )
    draft = path.with_name(f".{path.name}.restoring")
    shutil.rmtree(draft, ignore_errors=True)
    with WaitingLine(lambda: f"copying {directory}"):
        shutil.copytree(directory, draft)
    draft.rename(path)
    asyncio.run(_check(f"rocksdb:{path}", as_json=False))
    tell_done(f"restored to {path}; it was checked", as_json=json_, path=str(path))


@app.command(help_epilogue=EXAMPLE.format("columns check rocksdb:mail"))
def check(url: Directory, /, *, json_: Json = False) -> None:
    """Read the whole store, and verify checksums, digests, sums and the order of time."""
    asyncio.run(_check(url, as_json=json_))
    tell_done("no damage found", as_json=json_, wrong=[])


async def _check(url: str, *, as_json: bool) -> None:
    async with looked_at(url) as replica:
        wrong: list[str] = []
        for table in replica.tables.values():
            with WaitingLine(lambda name=table.name: f"checking {name}"):  # type: ignore[misc]
                wrong += await in_steps(check_table(replica, table))
    if wrong:
        tell_done("\n".join(wrong), as_json=as_json, wrong=wrong)
        raise StoreDamaged(
            f"{len(wrong)} things do not agree in {url}. Restore a backup: tenure columns restore"
        )
