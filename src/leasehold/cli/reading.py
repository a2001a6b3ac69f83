"""What a manager can tell: owners, the lease table, who has a key."""

import os
from typing import Annotated

from cyclopts import Parameter

from leasehold.cli.asking import Json, Manager, ask, path
from leasehold.cli.output import say, show
from leasehold.errors import ConfigurationError
from leasehold.manager.answers import (
    JsonKey,
    LocationAnswer,
    OwnersAnswer,
    TableAnswer,
)

NOBODY = "-"


def owners(pool: str, /, *, manager: Manager = None, json: Json = False) -> None:
    """List the owners of a pool."""
    reply = ask(manager, path(pool, "owners"))
    if json:
        print(reply.text)
        return
    rows = (
        (
            each.name,
            each.address,
            each.incarnation,
            each.ranges,
            f"{each.share:.1%}",
            each.recalled_ranges,
            f"{each.hold_seconds:.1f} s",
            "yes" if each.connected else "no",
            each.protocol or "-",
        )
        for each in reply.read(OwnersAnswer).owners
    )
    columns = (
        *("owner", "address", "incarnation", "ranges", "share"),
        *("recalled", "held for", "connected", "protocol"),
    )
    show(columns, rows, empty=f"the pool {pool} has no owners")


def table(
    pool: str,
    /,
    *,
    since: int | None = None,
    manager: Manager = None,
    json: Json = False,
) -> None:
    """Show the lease table of a pool: every range and who has it.

    Parameters
    ----------
    since
        Show only what changed after this LSN.
    """
    parameters = {} if since is None else {"since": str(since)}
    reply = ask(manager, path(pool, "table", **parameters))
    if json:
        print(reply.text)
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
    pool: str,
    key: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    hex: Annotated[bool, Parameter(negative="")] = False,  # noqa: A002 - it is the option's name
    int: Annotated[bool, Parameter(negative="")] = False,  # noqa: A002
    manager: Manager = None,
    json: Json = False,
) -> None:
    """Say who has a key.

    Parameters
    ----------
    hex
        The key is given in hexadecimal.
    int
        The key is a number, a 64-bit key of a hashed pool.
    """
    if hex and int:
        raise ConfigurationError("a key is given in one way: --hex or --int, not both")
    kind = "hex" if hex else "int" if int else "key"
    raw = os.fsencode(key)
    if kind == "key" and not _is_text(raw):
        kind, key = "hex", raw.hex()
    reply = ask(manager, path(pool, "locate", **{kind: key}))
    if json:
        print(reply.text)
        return
    answer = reply.read(LocationAnswer)
    place = f"key {shown(answer.key, '(first)')}, in the range from "
    place += f"{shown(answer.start, '(first)')} to {shown(answer.end, '(last)')}"
    number = f"lease number {answer.number}, unbroken since {answer.since}"
    if answer.owner is None:
        say(f"nobody: {place}, {number}")
    else:
        say(f"{answer.owner.address} ({answer.owner.name}): {place}, {number}")


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def shown(key: JsonKey | None, at_end: str) -> str:
    """A range's bound for people; `at_end` where it is an end of the key space."""
    if key is None or not key.hex:
        return at_end
    return key.text if key.text is not None else f"0x{key.hex}"
