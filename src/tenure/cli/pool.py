"""`tenure pool`: making pools, and listing them."""

import os
from typing import Annotated
from urllib.parse import quote

from cyclopts import App, Parameter

from tenure.base.keys import PoolKind
from tenure.cli.asking import ASKING, AskingOptions, PoolName, ask
from tenure.cli.ordering import STEERING, SteeringOptions
from tenure.cli.output import EXAMPLE, put, say, show
from tenure.cli.steering import policy
from tenure.manager.operator_verbs import POOL_VERBS
from tenure.manager.pool_spec import check_name, from_hex, pool_spec
from tenure.protocol.lease.answers import PoolMade, Pools

app = App(
    name="pool", help="Create, list and delete pools, or choose a policy.", help_format="plaintext"
)
app.command(
    policy,
    name="policy",
    help=POOL_VERBS["policy"].help,
    help_epilogue=EXAMPLE.format(f"pool policy {POOL_VERBS['policy'].example}"),
)


@app.command(help_epilogue=EXAMPLE.format("pool create docs --kind ordered --split g --split n"))
def create(
    name: str,
    /,
    *,
    kind: PoolKind,
    split: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    split_hex: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    how: AskingOptions = ASKING,
) -> None:
    """Create a pool. If the same pool already exists, nothing happens.

    Parameters
    ----------
    name
        The name by which owners and lookups know it.
    kind
        hashed: keys are hashed, so load spreads. ordered: neighbouring keys stay neighbours.
    split
        A key at which an ordered pool is cut, as text; may be given several times.
    split_hex
        The same in hexadecimal, for keys that are not text.
    """
    points = [os.fsencode(point) for point in split] + [from_hex(point) for point in split_hex]
    wanted = pool_spec(name, kind, points)  # report mistakes without asking a manager
    body = {
        "name": wanted.pool,
        "kind": wanted.kind,
        "split_points": [{"hex": point.hex()} for point in wanted.split_points],
    }
    reply = ask(how.manager, "/v1/pools", body)
    if how.json:
        put(reply.text)
        return
    answer = reply.read(PoolMade)
    cut = f", cut at {len(points)} keys" if points else ""
    was = "created" if answer.created else "exists already, with these settings"
    say(f"pool {answer.name} ({answer.kind}{cut}) {was}")


@app.command(help_epilogue=EXAMPLE.format("pool delete rooms --dry-run"))
def delete(name: PoolName, /, *, how: SteeringOptions = STEERING) -> None:
    """Delete a pool that has no owners.

    If the pool is created again, the lease numbers of its keys continue. An owner that starts later
    creates it, unless its manager runs with --no-create-pools.
    """
    check_name(name)
    parameters = "?dry_run=true" if how.dry_run else ""
    reply = ask(how.manager, f"/v1/pools/{quote(name, safe='')}{parameters}", method="DELETE")
    if how.json:
        put(reply.text)
    else:
        done = f"pool {name} is deleted"
        say(f"dry run, nothing was changed. Without --dry-run: {done}" if how.dry_run else done)


@app.command(name="list", help_epilogue=EXAMPLE.format("pool list"))
def list_(*, how: AskingOptions = ASKING) -> None:
    """List the pools."""
    reply = ask(how.manager, "/v1/pools")
    if how.json:
        put(reply.text)
        return
    rows = (
        (pool.name, pool.kind, pool.owners, pool.ranges, pool.free_ranges, pool.lsn)
        for pool in reply.read(Pools).pools
    )
    show(
        ("pool", "kind", "owners", "ranges", "free", "LSN"),
        rows,
        empty="no pools yet; create one with: tenure pool create NAME --kind hashed",
    )
