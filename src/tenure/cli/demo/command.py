"""`tenure demo`: what can be said about it on the command line."""

import sys
from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from tenure.cli.demo.display import Display
from tenure.cli.demo.hot_keys import check_size
from tenure.cli.demo.lines import Lines
from tenure.cli.demo.run import run
from tenure.cli.demo.service import DemoSettings, ScenarioName
from tenure.cli.demo.summary import lines
from tenure.errors import ConfigurationError

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
    json
        Print the summary as one JSON object, and events to standard error.
    break_owner
        For tests: owner 1 never asks whether it still has a lease, and the record must find it.
    """
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
    _check_sizes(settings)
    summary = run(settings, _view(is_json=json))
    if json:
        print(msgspec.json.encode(summary).decode())
    else:
        print("\n".join(["", *lines(summary)]))
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


def _view(*, is_json: bool) -> Display:
    if is_json:
        return Lines(sys.stderr)
    if not sys.stdout.isatty():
        return Lines(sys.stdout)
    from tenure.cli.demo.screen import Screen

    return Screen()
