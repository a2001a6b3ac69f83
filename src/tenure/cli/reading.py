"""What a manager can tell: owners, the lease table, who has a key."""

from tenure.cli.asking import Json, Manager, ask, path
from tenure.cli.keys import Hex, Int, KeyText, key_parameters
from tenure.cli.output import say, show
from tenure.manager.answers import (
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
            f"{each.load:,.1f}/s",
            each.recalled_ranges,
            f"{each.hold_seconds:.1f} s",
            "yes" if each.connected else "no",
            each.protocol or "-",
            each.steering or NOBODY,
        )
        for each in reply.read(OwnersAnswer).owners
    )
    columns = (
        *("owner", "address", "incarnation", "ranges", "share", "load"),
        *("recalled", "held for", "connected", "protocol", "steering"),
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
    key: KeyText,
    /,
    *,
    hex: Hex = False,  # noqa: A002 - it is the option's name
    int: Int = False,  # noqa: A002
    manager: Manager = None,
    json: Json = False,
) -> None:
    """Say who has a key."""
    reply = ask(manager, path(pool, "locate", **key_parameters(key, hex=hex, int=int)))
    if json:
        print(reply.text)
        return
    answer = reply.read(LocationAnswer)
    place = f"key {shown(answer.key, '(first)')}, in the range from "
    place += f"{shown(answer.start, '(first)')} to {shown(answer.end, '(last)')}"
    if answer.owner is None:
        say(f"nobody: {place}, free under number {answer.number}")
    else:
        number = f"lease number {answer.number}, unbroken since {answer.since}"
        say(f"{answer.owner.address} ({answer.owner.name}): {place}, {number}")


def shown(key: JsonKey | None, at_end: str) -> str:
    """A range's bound for people; `at_end` where it is an end of the key space."""
    if key is None or not key.hex:
        return at_end
    return key.text if key.text is not None else f"0x{key.hex}"
