"""`python -m lab demo`: what can be said about each demo on the command line."""

import asyncio
import sys
from collections.abc import Callable, Iterable
from typing import Annotated, Literal, TypeAlias

import msgspec
from cyclopts import App, Parameter
from cyclopts.validators import Number

from lab.demo.busy.busy_run import STEP_SECONDS, run_busy
from lab.demo.caches.cache_summary import cache_lines
from lab.demo.caches.cache_view import CacheLines, CacheScreen
from lab.demo.caches.run import run_caches_demo
from lab.demo.caches.service import CacheDemoSettings
from lab.demo.inbox import run_inbox
from lab.demo.mesh.mesh_run import mesh_lines, run_mesh
from lab.demo.ring.ring_run import ring_lines, run_ring
from tenure.cli.demo.command import FOUND, MOST_SECONDS
from tenure.cli.demo.service import DemoSettings

app = App(name="demo", help="Watch a demo other than that of the first page.")

Seconds: TypeAlias = Annotated[
    float,
    Parameter(
        validator=Number(gt=0, lte=MOST_SECONDS),
        help="How long it runs once everything has started; 60 by default.",
    ),
]
Json: TypeAlias = Annotated[
    bool,
    Parameter(
        negative="", help="Print the summary as one JSON object, and events to standard error."
    ),
]
Preset: TypeAlias = Annotated[
    Literal["paper", "default", "test"],
    Parameter(help="How long leases last; test (1.2 s) by default."),
]


@app.command
def caches(
    *,
    seconds: Seconds = 60.0,
    owners: Annotated[int, Parameter(validator=Number(gte=2, lte=16))] = 4,
    frontends: Annotated[int, Parameter(validator=Number(gte=1, lte=16))] = 3,
    preset: Preset = "test",
    break_owner: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
) -> int:
    """Read products from caches, while owners are killed, stopped and moved.

    The exit code is 1 if one read was stale.

    Parameters
    ----------
    owners
        How many owners, from 2 to 16; 4 by default.
    frontends
        How many frontends, from 1 to 16; 3 by default.
    break_owner
        Frontends write past the owners, to show that the records reveal it.
    """
    settings = DemoSettings(
        seconds=seconds,
        owners=owners,
        frontends=frontends,
        preset=preset,
        scenario="break-owner" if break_owner else "owner-faults",
    )
    is_screen = not json and sys.stdout.isatty()
    view = CacheScreen() if is_screen else CacheLines(sys.stderr if json else sys.stdout)
    summary = run_caches_demo(CacheDemoSettings(service=settings), view)
    return _ended(summary, cache_lines(summary), is_good=summary.is_good, as_json=json)


@app.command
def mesh(
    *,
    seconds: Seconds = 60.0,
    preset: Preset = "test",
    stored: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
) -> int:
    """Run the papers' Live Mesh scenario.

    The exit code is 1 if a device was not told of a loss, something was applied twice, or something
    was lost that a store keeps.

    Parameters
    ----------
    stored
        The services keep everything in stores.
    """
    summary = asyncio.run(run_mesh(seconds, _teller(as_json=json), preset, is_kept=stored))
    return _ended(summary, mesh_lines(summary), is_good=summary.is_good, as_json=json)


@app.command
def busy(
    *,
    port: Annotated[int, Parameter(validator=Number(gte=1, lte=65535))] = 8001,
    gateway: str = "ws://127.0.0.1:8080",
    step: Annotated[float, Parameter(validator=Number(gt=0, lte=MOST_SECONDS))] = STEP_SECONDS,
) -> int:
    """Keep rooms busy until Ctrl-C: a hot key, a crash now and then, and deploys, to be looked at
    on the dashboard. `make busy` runs it beside a manager, a store and a gateway.

    Parameters
    ----------
    port
        The port that the workers share on 127.0.0.1, to which the gateway's --rest leads.
    gateway
        Where the visitors connect.
    step
        How many seconds a deploy waits between two workers; 30 by default.
    """
    asyncio.run(run_busy(port, gateway, step))
    return 0


@app.command
def columns(*, seconds: Seconds = 60.0, json: Json = False) -> int:
    """Run a store on several nodes, of which one is killed, one is added and some are moved.

    The exit code is 1 if a request failed, or a read returned less than was acknowledged.
    """
    summary = asyncio.run(run_ring(seconds, _teller(as_json=json)))
    return _ended(summary, ring_lines(summary), is_good=summary.is_good, as_json=json)


@app.command
def inbox(*, on_nodes: Annotated[bool, Parameter(negative="")] = False, json: Json = False) -> int:
    """Fill and search an inbox, and print the Cassandra paper's table beside ours.

    Parameters
    ----------
    on_nodes
        Keep it on three nodes at a quorum, and not in a directory.
    """
    run_inbox(on_nodes=on_nodes, as_json=json)
    return 0


def _teller(*, as_json: bool) -> Callable[[str], None]:
    out = sys.stderr if as_json else sys.stdout
    return lambda line: print(line, file=out, flush=True)


def _ended(summary: msgspec.Struct, lines: Iterable[str], *, is_good: bool, as_json: bool) -> int:
    print(msgspec.json.encode(summary).decode() if as_json else "\n".join(["", *lines]))
    return 0 if is_good else FOUND
