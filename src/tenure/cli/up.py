"""`tenure columns up`: a manager and some nodes on this host, until a signal ends them."""

import asyncio
import json
import shlex
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tenure.cli.home_cluster import HomeCluster
from tenure.cli.long_run import told_to_end
from tenure.cli.ordering import budget_of
from tenure.cli.output import say
from tenure.cli.ring import BalanceText
from tenure.cli.waiting import WaitingLine
from tenure.errors import ConfigurationError

Flag = Annotated[bool, Parameter(negative="")]
MOST_NODES = 16


def up(
    *,
    nodes: int = 3,
    data: Path = Path("tenure-columns"),
    cluster: str = "home",
    port: int = 7499,
    first_start: Flag = False,
    balance: BalanceText = None,
    json_: Annotated[Flag, Parameter(name="--json")] = False,
) -> None:
    """Run a whole cluster on this host: a manager and some nodes.

    Parameters
    ----------
    nodes
        How many nodes.
    data
        The directory for all their data and logs.
    cluster
        The name of the cluster.
    port
        The manager's port; the nodes have the ports after it.
    first_start
        There was no earlier manager of these owners: a new cluster grants leases at once instead
        of after a minute.
    json_
        Print where everything is, as JSON on one line.
    """
    if not 1 <= nodes <= MOST_NODES:
        raise ConfigurationError(f"--nodes {nodes}: one host can have 1 to {MOST_NODES}")
    managing = ("--first-start",) if first_start else ()
    budget = None if balance is None else budget_of(balance)
    where = data.expanduser().resolve()
    home = HomeCluster(where, cluster, nodes, port, managing=managing, budget=budget)
    asyncio.run(_run(home, as_json=json_))


async def _run(home: HomeCluster, *, as_json: bool) -> None:
    told = told_to_end()
    try:
        with WaitingLine(lambda: f"starting {home.nodes} nodes; their logs are in {home.data}"):
            await home.start()
        if as_json:
            found = {"url": home.url, "manager": home.manager, "pids": home.pids()}
            print(json.dumps(found), flush=True)
        else:
            say(f"the store is at {home.url}")
            manager = f"the manager of the cluster {home.cluster} is at {home.manager}"
            say(f"{manager}: open it in a browser")
            say(f"everything is kept in {home.data}")
            say(", ".join(f"{name} is process {pid}" for name, pid in home.pids().items()))
            say("to start another node, which waits until you add it:")
            say(f"  {shlex.join(home.command(f'node-{home.nodes + 1}'))}")
        watching = asyncio.create_task(home.watch())
        await told.wait()
        watching.cancel()
    finally:
        with WaitingLine(lambda: "ending them all"):
            await home.end()
