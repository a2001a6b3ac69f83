"""`tenure columns refence`: what to do with rows whose fences are of a journal that was lost.

A store in a directory gives them up. A cluster, of ours or of Cassandra, keeps them, and the
managers' numbers are raised above them: see `tenure.columns.told_fences`.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Annotated

from cyclopts import Parameter

from tenure.cli.columns_output import tell_done
from tenure.cli.columns_stores import Driver, Json, opened, reached, table_named
from tenure.cli.output import say, show
from tenure.cli.waiting import WaitingLine
from tenure.columns.backends.embedded import in_steps
from tenure.columns.refencing import fencing_journals, give_up_fences
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Table
from tenure.columns.told_fences import told_fences
from tenure.errors import ConfigurationError

Journals = Mapping[int, tuple[int, int]]
"""For each journal how many rows it has fenced, and its highest lease number there."""


def refence(
    url: Annotated[
        str,
        Parameter(
            help="The store: rocksdb:PATH, or columns:URL,URL or cassandra:HOST,HOST/KEYSPACE, "
            "which list."
        ),
    ],
    table: Annotated[str, Parameter(help="A table of the store.")],
    /,
    *,
    journal: Annotated[
        tuple[str, ...],
        Parameter(help="A lost journal, in a directory; without it, the journals are listed."),
    ] = (),
    driver: Driver = None,
    json_: Json = False,
) -> None:
    if url.partition(":")[0] in ("columns", "cassandra"):
        asyncio.run(_list_told(url, table, journal, driver, as_json=json_))
    else:
        asyncio.run(_refence(url, table, journal, as_json=json_))


async def _refence(url: str, name: str, journals: tuple[str, ...], *, as_json: bool) -> None:
    async with opened(url) as (store, backend):
        table = _fenced(store, name)
        found = await in_steps(fencing_journals(backend.replica, table))
        known = {f"{identity:016x}": identity for identity in found}
        for each in journals:
            if each not in known:
                raise ConfigurationError(
                    f"no row of {name!r} is fenced by the journal {each!r}; there are: "
                    f"{', '.join(known) or 'none'}"
                )
        if journals:
            over = frozenset(known[each] for each in journals)
            count = await in_steps(give_up_fences(backend.replica, table, over))
            done = f"{count} rows may be written under the leases of another journal"
            tell_done(done, as_json=as_json, rows=count)
            return
    _show(found, as_json=as_json)


async def _list_told(
    url: str, name: str, journals: tuple[str, ...], driver: str | None, *, as_json: bool
) -> None:
    if journals:
        raise ConfigurationError(
            "a cluster gives up no fences, since a node that is away would bring them back. Let "
            f"the managers go on above them: tenure columns refence {url} {name} shows how"
        )
    async with reached(url, driver) as store:
        table = _fenced(store, name)
        with WaitingLine(lambda: f"asking each row of {name} for its fence"):
            found = await _counted(told_fences(table, store.backend))
    _show(found, as_json=as_json)
    if found and not as_json:
        highest = max(number for _, number in found.values())
        say(
            "if the managers' journal was lost and they began with a new one: stop them, let that "
            f"one go on above these numbers, and start them again: "
            f"tenure restore --journal URL --above {highest}"
        )


def _fenced(store: ColumnStore, name: str) -> Table:
    table = table_named(store, name)
    if not table.fenced_by:
        raise ConfigurationError(f"the table {name!r} has no fence")
    return table


async def _counted(fences: AsyncIterator[tuple[int, int]]) -> Journals:
    found: dict[int, tuple[int, int]] = {}
    async for journal, number in fences:
        rows, highest = found.get(journal, (0, 0))
        found[journal] = rows + 1, max(highest, number)
    return found


def _show(found: Journals, *, as_json: bool) -> None:
    rows = [(f"{identity:016x}", *what) for identity, what in found.items()]
    if as_json:
        names = ("journal", "rows", "highest")
        say(json.dumps([dict(zip(names, row, strict=True)) for row in rows]))
    else:
        show(("journal", "rows", "highest number"), rows, empty="no row has a fence")
