"""`tenure demo`: what can be said about it on the command line."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from cyclopts import Parameter
from cyclopts.validators import Number

from tenure.cli.demo.display import Display
from tenure.cli.demo.hot_keys import check_size
from tenure.cli.demo.lines import Lines
from tenure.cli.demo.run import run
from tenure.cli.demo.service import DemoSettings, ScenarioName
from tenure.cli.demo.summary import Summary, lines
from tenure.errors import ConfigurationError

if TYPE_CHECKING:
    from tenure.cli.demo.caches.cache_summary import CacheSummary
    from tenure.cli.demo.mesh.mesh_run import MeshSummary
    from tenure.cli.demo.ring.ring_run import RingSummary

TROUBLES: tuple[ScenarioName, ...] = (
    "kill-leader",
    "rolling-restart",
    "crash",
    "hot-keys",
    "break-owner",
)
MOST_SECONDS = 86_400
"""A day: the record of what was served grows until the end."""
Preset: TypeAlias = Annotated[
    Literal["paper", "default", "test"] | None,
    Parameter(
        help="How long leases last: paper (60 s), default (12 s) or test (1.2 s). If it is not "
        "said: test, with --kill-leader default."
    ),
]
Mesh: TypeAlias = Annotated[
    bool,
    Parameter(
        negative="",
        help="Run the papers' Live Mesh scenario instead; the exit code is 1 if a device heard "
        "nothing.",
    ),
]
Columns: TypeAlias = Annotated[
    bool,
    Parameter(
        negative="",
        help="Run a store on several nodes instead, of which one is killed, one is added and some "
        "are moved; the exit code is 1 if a request failed, or a read returned less than was "
        "acknowledged.",
    ),
]
FOUND = 1
"""The exit code where two owners served one key at once."""


def demo(  # noqa: PLR0913  # a parameter is an option, and each has a default
    *,
    seconds: Annotated[float, Parameter(validator=Number(gt=0, lte=MOST_SECONDS))] = 60.0,
    owners: Annotated[int, Parameter(validator=Number(gte=2, lte=16))] = 4,
    frontends: Annotated[int, Parameter(validator=Number(gte=1, lte=16))] = 3,
    managers: Annotated[int, Parameter(validator=Number(gte=1, lte=9))] = 1,
    journal: Literal["sqlite", "etcd"] = "sqlite",
    kill_leader: Annotated[bool, Parameter(negative="")] = False,
    rolling_restart: Annotated[bool, Parameter(negative="")] = False,
    crash: Annotated[bool, Parameter(negative="")] = False,
    hot_keys: Annotated[bool, Parameter(negative="")] = False,
    inbox: Annotated[bool, Parameter(negative="")] = False,
    cache: Annotated[bool, Parameter(negative="")] = False,
    mesh: Mesh = False,
    columns: Columns = False,
    preset: Preset = None,
    json: Annotated[bool, Parameter(negative="")] = False,
    break_owner: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Run a small service on this machine, make trouble for it, and show what happens.

    The demo starts processes, and kills and stops some of them. When it ends, in time or through
    Ctrl-C, it prints a summary. The exit code is 1 if two owners ever served one key at once.

    Parameters
    ----------
    seconds
        How long it runs once everything has started, up to a day (86400); 60 by default.
    owners
        How many owners, from 2 to 16; 4 by default.
    frontends
        How many frontends, from 1 to 16, with 80 clients each; 3 by default.
    managers
        How many managers, up to 9; 1 by default. One leads, the others stand by.
    journal
        What the managers share: a file (sqlite), or an etcd of three members, started for it.
    kill_leader
        Kill the manager that leads, now and then; with 2 managers or more.
    rolling_restart
        Restart all owners, two at a time, each handing over its state; then end.
    crash
        Kill owners again and again, and report how long their keys were not served.
    hot_keys
        Direct half of all requests at a few keys, and report how soon the load is even again.
    inbox
        Search an inbox, beside the Cassandra paper's figures; with --columns on three nodes.
    cache
        Read products from caches instead; the exit code is 1 if one read was stale.
    json
        Print the summary as one JSON object, and events to standard error.
    break_owner
        For tests: owner 1 never asks whether it still has a lease, and the record must find it.
        With --cache, frontends write past the owners.
    """
    if inbox:
        return _inbox(on_nodes=columns, as_json=json)
    if mesh or columns:
        return _ring(seconds, json) if columns else _mesh(seconds, preset or "test", as_json=json)
    wanted = [kill_leader, rolling_restart, crash, hot_keys, break_owner]
    given = [name for name, is_given in zip(TROUBLES, wanted, strict=True) if is_given]
    settings = DemoSettings(
        seconds=seconds,
        owners=owners,
        frontends=frontends,
        preset=preset or ("default" if kill_leader else "test"),
        managers=managers,
        journal=journal,
        scenario=_scenario(given),
    )
    return (_cache if cache else _run)(settings, as_json=json)


def _run(settings: DemoSettings, *, as_json: bool) -> int:
    _check_sizes(settings)
    summary = run(settings, _view(is_json=as_json))
    if as_json:
        print(_json(summary))
    else:
        print("\n".join(["", *lines(summary)]))
    return 0 if summary.is_good else FOUND


def _check_cache(settings: DemoSettings) -> None:
    alone = settings.scenario in ("owner-faults", "break-owner")
    given = [] if alone else [f"--{settings.scenario}"]
    given += ["--managers"] if settings.managers > 1 else []
    given += ["--journal etcd"] if settings.journal != "sqlite" else []
    if given:
        raise ConfigurationError(
            f"--cache makes trouble of its own, with one manager: leave out {' and '.join(given)}"
        )


def _cache(settings: DemoSettings, *, as_json: bool) -> int:
    from tenure.cli.demo.caches.cache_summary import cache_lines
    from tenure.cli.demo.caches.cache_view import CacheLines, CacheScreen
    from tenure.cli.demo.caches.run import run_caches_demo
    from tenure.cli.demo.caches.service import CacheDemoSettings

    _check_cache(settings)
    is_screen = not as_json and sys.stdout.isatty()
    view = CacheScreen() if is_screen else CacheLines(sys.stderr if as_json else sys.stdout)
    summary = run_caches_demo(CacheDemoSettings(service=settings), view)
    if as_json:
        print(_json(summary))
    else:
        print("\n".join(["", *cache_lines(summary)]))
    return 0 if summary.is_good else FOUND


def _inbox(*, on_nodes: bool, as_json: bool) -> int:
    from tenure.cli.demo.inbox import run_inbox

    run_inbox(on_nodes=on_nodes, as_json=as_json)
    return 0


def _mesh(seconds: float, preset: str, *, as_json: bool) -> int:
    import asyncio

    from tenure.cli.demo.mesh.mesh_run import mesh_lines, run_mesh

    out = sys.stderr if as_json else sys.stdout
    summary = asyncio.run(run_mesh(seconds, lambda line: print(line, file=out, flush=True), preset))
    print(_json(summary) if as_json else "\n".join(["", *mesh_lines(summary)]))
    return 0 if summary.is_good else FOUND


def _ring(seconds: float, as_json: bool) -> int:  # noqa: FBT001 - a switch
    import asyncio

    from tenure.cli.demo.ring.ring_run import ring_lines, run_ring

    out = sys.stderr if as_json else sys.stdout
    summary = asyncio.run(run_ring(seconds, lambda line: print(line, file=out, flush=True)))
    print(_json(summary) if as_json else "\n".join(["", *ring_lines(summary)]))
    return 0 if summary.is_good else FOUND


def _scenario(given: Sequence[ScenarioName]) -> ScenarioName:
    if len(given) > 1:
        options = " and ".join(f"--{name}" for name in given)
        raise ConfigurationError(
            f"{options} make different trouble, which one demo cannot tell apart: run it once for "
            "each"
        )
    return given[0] if given else "owner-faults"


def _check_sizes(settings: DemoSettings) -> None:
    if settings.scenario == "kill-leader" and settings.managers == 1:
        raise ConfigurationError("--kill-leader needs a manager that takes over: add --managers 3")
    if settings.scenario == "hot-keys":
        check_size(settings)


def _json(summary: "Summary | CacheSummary | MeshSummary | RingSummary") -> str:
    import msgspec

    return msgspec.json.encode(summary).decode()


def _view(*, is_json: bool) -> Display:
    if is_json:
        return Lines(sys.stderr)
    if not sys.stdout.isatty():
        return Lines(sys.stdout)
    from tenure.cli.demo.screen import Screen

    return Screen()
