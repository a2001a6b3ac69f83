"""`tenure columns copy`: from one store to another, of whatever kinds."""

import asyncio
import shlex
import time
from typing import Annotated, NamedTuple

from cyclopts import Parameter

from tenure.cli.columns_output import parsed, shown_name, tell_done
from tenure.cli.columns_stores import Driver, Json, StoreUrl, reached, table_named, target
from tenure.columns.backends.contract import Backend
from tenure.columns.copying import check_unfenced, copy_table
from tenure.columns.tables import Table
from tenure.errors import ConfigurationError

PROGRESS_SECONDS = 2.0


class _Chosen(NamedTuple):
    """What is copied: the tables by name, all if there are none, and the key to resume after."""

    names: tuple[str, ...]
    after: str | None
    with_fenced: bool


def copy(
    source: StoreUrl,
    to: Annotated[str, Parameter(help="The store to copy to, named in the same way.")],
    /,
    *,
    table: Annotated[tuple[str, ...], Parameter(help="A table; by default all of them.")] = (),
    after: Annotated[str | None, Parameter(help="Resume after this key, with one --table.")] = None,
    without_fences: Annotated[
        bool,
        Parameter(
            negative="",
            help="Copy tables of owners, too, but not their fences: stop the owners until each has "
            "a new lease.",
        ),
    ] = False,
    json_: Json = False,
    driver: Driver = None,
) -> None:
    what = _Chosen(table, after, with_fenced=without_fences)
    asyncio.run(_copy(source, to, what, driver, as_json=json_))


async def _copy(
    source: str,
    to: str,
    what: _Chosen,
    driver: str | None,
    *,
    as_json: bool,
) -> None:
    after = what.after
    async with reached(source, driver) as old:
        chosen = [table_named(old, name) for name in what.names] or list(old.tables.values())
        if after is not None and len(chosen) != 1:
            raise ConfigurationError("--after is a key of one table: say which with --table")
        for of in () if what.with_fenced else chosen:
            check_unfenced(of)
        async with target(to, chosen, driver) as new:
            for of in chosen:
                behind = (
                    None if after is None else of.keys.encoded(parsed(of.keys, after), "--after")
                )
                await _copy_one(of, old.backend, new.backend, behind, as_json=as_json)


async def _copy_one(
    table: Table, old: Backend, new: Backend, after: bytes | None, *, as_json: bool
) -> None:
    """Copy a table, and show the progress. With JSON, lines of progress have a key `after`."""
    columns, told = 0, time.monotonic()
    async for key, count in copy_table(table, old, new, after):
        columns += count
        if time.monotonic() - told > PROGRESS_SECONDS:
            told = time.monotonic()
            where = shown_name(table.keys.decode(key))
            again = f"--table {table.name} --after={shlex.quote(where)}"
            on = f"{columns} columns; to go on here: {again}"
            tell_done(on, as_json=as_json, table=table.name, columns=columns, after=where)
    whole = f"{table.name}: {columns} columns copied"
    tell_done(whole, as_json=as_json, table=table.name, columns=columns)
