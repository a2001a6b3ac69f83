"""`tenure pool`: making pools, and which there are."""

import os
from typing import Annotated

from cyclopts import App, Parameter

from tenure.base.keys import PoolKind
from tenure.cli.asking import Json, Manager, ask
from tenure.cli.output import say, show
from tenure.cli.steering import policy
from tenure.manager.answers import CreatedAnswer, PoolsAnswer
from tenure.manager.pool_spec import from_hex, pool_spec

app = App(name="pool", help="Make pools, and see which there are.", help_format="plaintext")
app.command(policy)


@app.command
def create(
    name: str,
    /,
    *,
    kind: PoolKind,
    split: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    split_hex: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    manager: Manager = None,
    json: Json = False,
) -> None:
    """Make a pool. Nothing happens where there is just such a one.

    Parameters
    ----------
    name
        What owners and lookups call it.
    kind
        hashed: load spreads by itself. ordered: neighbouring keys stay neighbours.
    split
        A key at which an ordered pool is cut, as text; may be given several times.
    split_hex
        The same in hexadecimal, for keys that are no text.
    """
    points = [os.fsencode(point) for point in split] + [from_hex(point) for point in split_hex]
    wanted = pool_spec(name, kind, points)  # what is wrong with it is said without asking anybody
    body = {
        "name": wanted.pool,
        "kind": wanted.kind,
        "split_points": [{"hex": point.hex()} for point in wanted.split_points],
    }
    reply = ask(manager, "/v1/pools", body)
    if json:
        print(reply.text)
        return
    answer = reply.read(CreatedAnswer)
    cut = f", cut at {len(points)} keys" if points else ""
    was = "created" if answer.created else "was there already, just so"
    say(f"pool {answer.name} ({answer.kind}{cut}) {was}")


@app.command(name="list")
def list_(*, manager: Manager = None, json: Json = False) -> None:
    """List the pools."""
    reply = ask(manager, "/v1/pools")
    if json:
        print(reply.text)
        return
    rows = (
        (pool.name, pool.kind, pool.owners, pool.ranges, pool.free_ranges, pool.lsn)
        for pool in reply.read(PoolsAnswer).pools
    )
    show(
        ("pool", "kind", "owners", "ranges", "free", "LSN"),
        rows,
        empty="no pools yet; make one with: tenure pool create NAME --kind hashed",
    )
