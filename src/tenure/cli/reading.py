"""Commands that show what a manager knows: owners, the lease table, the owner of a key."""

import time
from typing import Annotated

from cyclopts import Parameter

from tenure.cli.asking import ASKING, AskingOptions, PoolName, ask, path
from tenure.cli.keys import TEXT, KeyForm, KeyText
from tenure.cli.output import clear, put, say, show
from tenure.errors import ConfigurationError
from tenure.protocol.lease.answers import (
    Location,
    Owners,
    OwnerSummary,
    Pools,
    SpelledKey,
    TableAnswer,
)

NOBODY = "-"
WATCH_SECONDS = 2.0


def owners(
    pool: Annotated[
        str | None, Parameter(help="The pool's name; not needed if it is the only one.")
    ] = None,
    /,
    *,
    watch: Annotated[bool, Parameter(negative="")] = False,
    how: AskingOptions = ASKING,
) -> None:
    """List the owners of a pool.

    A narrow terminal shows fewer columns; a pipe and --json have all.

    Parameters
    ----------
    watch
        List them again every two seconds, until Ctrl-C.
    """
    pool = _only_pool(how) if pool is None else pool
    while True:
        reply = ask(how.manager, path(pool, "owners"))
        if watch:
            clear()
        if how.json:
            put(reply.text)
        else:
            _show_owners(pool, reply.read(Owners))
        if not watch:
            return
        time.sleep(WATCH_SECONDS)


def _only_pool(how: AskingOptions) -> str:
    """The name of the only pool. Raises ConfigurationError if there is none, or several."""
    names = [pool.name for pool in ask(how.manager, "/v1/pools").read(Pools).pools]
    if len(names) != 1:
        there = f"there are {', '.join(names)}: name one of them" if names else "there is none yet"
        raise ConfigurationError(f"of which pool? {there}")
    return names[0]


def _show_owners(pool: str, answer: Owners) -> None:
    metrics = sorted({metric for each in answer.owners for metric in each.levels})
    rows = (
        (
            each.name,
            each.address,
            each.incarnation,
            each.ranges,
            f"{each.share:.1%}",
            f"{each.load:,.1f}/s",
            *(_level(each, metric) for metric in metrics),
            each.recalled_ranges,
            f"{each.hold_seconds:.1f} s",
            "yes" if each.connected else "no",
            each.protocol or "-",
            each.steering or NOBODY,
        )
        for each in answer.owners
    )
    columns = (
        *("owner", "address", "incarnation", "ranges", "share", "load", *metrics),
        *("recalled", "held for", "connected", "protocol", "steering"),
    )
    can_go = ("protocol", "incarnation", "recalled", "address", "connected", "held for")
    show(columns, rows, empty=f"the pool {pool} has no owners", can_go=can_go)
    shared: dict[str, list[str]] = {}
    for each in answer.owners:
        if each.same_address:
            shared.setdefault(each.address, []).append(each.name)
    for address, names in shared.items():
        say(
            f"{' and '.join(names)} announce {address}: most requests reach the wrong owner; see "
            "`tenure docs guides/web-servers`"
        )


def _level(owner: OwnerSummary, metric: str) -> str:
    """What an owner has of a metric, and how full that makes it."""
    level = owner.levels.get(metric)
    return f"{level.amount:,.0f} ({level.amount / level.capacity:.0%})" if level else NOBODY


def table(
    pool: PoolName,
    /,
    *,
    since: int | None = None,
    how: AskingOptions = ASKING,
) -> None:
    """Show the lease table of a pool: every range and its owner.

    Parameters
    ----------
    since
        Show only what changed after this LSN.
    """
    parameters = {} if since is None else {"since": str(since)}
    reply = ask(how.manager, path(pool, "table", **parameters))
    if how.json:
        put(reply.text)
        return
    answer = reply.read(TableAnswer)
    names = {each.incarnation: each.name for each in answer.owners}
    rows = (
        (
            shown(entry.start, "(first)"),
            shown(entry.end, "(last)"),
            NOBODY if entry.owner is None else names.get(entry.owner, f"#{entry.owner}"),
            entry.number,
            entry.since,
        )
        for entry in answer.entries
    )
    columns = ("from", "to", "owner", "number", "since")
    show(columns, rows, empty=f"nothing changed after LSN {since}")


def locate(
    pool: PoolName,
    key: KeyText,
    /,
    *,
    form: KeyForm = TEXT,
    how: AskingOptions = ASKING,
) -> None:
    """Show which owner has a key."""
    reply = ask(how.manager, path(pool, "locate", **form.parameters(key)))
    if how.json:
        put(reply.text)
        return
    answer = reply.read(Location)
    place = f"key {shown(answer.key, '(first)')}, in the range from "
    place += f"{shown(answer.start, '(first)')} to {shown(answer.end, '(last)')}"
    if answer.owner is None:
        say(f"nobody: {place}, free under number {answer.number}")
    else:
        number = f"lease number {answer.number}, unbroken since {answer.since}"
        say(f"{answer.owner.address} ({answer.owner.name}): {place}, {number}")


def shown(key: SpelledKey | None, at_end: str) -> str:
    """A range's bound for people; `at_end` where it is an end of the key space."""
    if key is None or not key.hex:
        return at_end
    return key.text if key.text is not None else f"0x{key.hex}"
