"""`tenure up` runs a whole system on this host; `tenure config` shows what it would run."""

import asyncio
import json
import signal
from typing import Annotated

from cyclopts import Parameter

from tenure.cli.host_file import HostOptions, HostPlan, PlanMaker
from tenure.cli.host_system import HostSystem
from tenure.cli.long_run import told_to_end
from tenure.cli.output import put, remark, say, show
from tenure.cli.waiting import WaitingLine
from tenure.errors import ConfigurationError

Flag = Annotated[bool, Parameter(negative="", name="--json")]
DEFAULTS = HostOptions()


def up(*, options: HostOptions = DEFAULTS, json_: Flag = False) -> None:
    """Run a manager, the nodes of a store, services, a gateway and commands, until a signal ends
    them all. What ends by itself is started again.

    Parameters
    ----------
    json_
        Print where everything is, as JSON on one line.
    """
    asyncio.run(_run(PlanMaker(options).plan(), options, as_json=json_))


def config(*, options: HostOptions = DEFAULTS, json_: Flag = False) -> None:
    """Check the settings of `tenure up`, and show each that is in force and what says so.

    Parameters
    ----------
    json_
        Print them as JSON.
    """
    plan = PlanMaker(options).plan()
    if json_:
        say(json.dumps([each._asdict() for each in plan.shown]))
        return
    rows = [(name, json.dumps(value), source) for name, value, source in plan.shown]
    show(("setting", "value", "from"), rows, empty="nothing is set")


async def _run(plan: HostPlan, options: HostOptions, *, as_json: bool) -> None:
    told = told_to_end()
    system = HostSystem(plan)
    try:
        with WaitingLine(lambda: f"starting the system; its logs are in {system.data}"):
            await _unless(told, system)
        if told.is_set():
            return
        _tell(system, as_json=as_json)
        reading = asyncio.create_task(_read_again(system, options))
        await told.wait()
        reading.cancel()
        await asyncio.wait([reading])
    finally:
        with WaitingLine(lambda: "ending them all"):
            await system.end()


async def _unless(told: asyncio.Event, system: HostSystem) -> None:
    """Start the system, unless a signal ends that."""
    starting, ending = asyncio.create_task(system.start()), asyncio.create_task(told.wait())
    await asyncio.wait({starting, ending}, return_when=asyncio.FIRST_COMPLETED)
    ending.cancel()
    if not starting.done():
        starting.cancel()
        await asyncio.wait([starting])
        return
    starting.result()


def _tell(system: HostSystem, *, as_json: bool) -> None:
    if as_json:
        url = system.url if system.nodes else ""
        found = {"manager": system.manager, "store": url, "pids": system.pids()}
        put(json.dumps(found))
        return
    say(f"the manager is at {system.manager}: open it in a browser")
    if system.nodes:
        say(f"the store is at {system.url}")
    say(f"data and logs are in {system.data}")
    say(", ".join(f"{name} is process {pid}" for name, pid in system.pids().items()))


async def _read_again(system: HostSystem, options: HostOptions) -> None:
    """Read the file again at each SIGHUP. With a mistake in it, everything runs on as it was."""
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, asked.set)
    while True:
        await asked.wait()
        asked.clear()
        try:
            plan = PlanMaker(options).plan()
        except ConfigurationError as error:
            remark(f"nothing was changed: {error}")
        else:
            await system.change_to(plan)
