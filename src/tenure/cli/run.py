"""`tenure run -- COMMAND`: a manager beside any command, for as long as the command runs.

The manager lives in this process and the command in its own, which finds the manager's URL in its
environment; the nodes of a store and a gateway have processes of their own as well. Signals go to
the command, because it is the one that has something to finish: a web server hands its keys over
while it ends, and needs the manager for that. So the nodes and the manager go last: after the
command, and after what the command has left running (`orphans.py`).
"""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from tenure.cli.gateway_beside import GatewayBeside, beside_command
from tenure.cli.gateway_options import Flag, GatewayOptions
from tenure.cli.long_run import run_long
from tenure.cli.orphans import Orphans
from tenure.cli.store_beside import MANAGER_PORT, store_beside
from tenure.client.managers import FILE_VARIABLE, VARIABLE
from tenure.dashboard.pages import add_pages
from tenure.errors import ConfigurationError, TenureError
from tenure.manager.config_file import settings_from
from tenure.manager.service import ManagerService
from tenure.runtime.private_files import make_directory
from tenure.stores.opening import STORE_VARIABLE

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
KILLED = 128
"""The number that shells add to that of the signal that ended a process."""
MEMORY = "memory"
REAP_SECONDS = 60.0
"""How often orphans that ended while the command runs are removed from the list of processes."""


def run(
    *command: Annotated[str, Parameter(allow_leading_hyphen=True)],
    journal: str = "",
    preset: Literal["paper", "default", "test"] = "default",
    port: int = 0,
    store: Flag = False,
    data: Path = Path("tenure-data"),
    gateway: Flag = False,
    options: GatewayOptions | None = None,
) -> int:
    """Run a manager beside a command, which finds its URL in TENURE_MANAGERS.

    Options before the two dashes are for the manager; everything after them is the command.

    Parameters
    ----------
    command
        The command and its arguments, after two dashes.
    journal
        The manager's journal: memory, sqlite:PATH or etcd:URL,URL,... By default memory, and with
        --store a file beside what the nodes keep.
    preset
        How long leases last: paper (60 s), default (12 s), or test (1.2 s).
    port
        The manager's port on 127.0.0.1; by default a free one, and with --store 7499.
    store
        Run a store of three nodes, too, on the ports after the manager's: the command finds it in
        TENURE_STORE, which Entities(store="columns:") means.
    data
        The directory for what the nodes and the manager keep; the next run goes on with it.
    gateway
        Run a gateway, too: it passes each request to the worker that has its key, by the routes
        that the members of the command bring, and the rest to --rest.
    """
    if not command:
        raise ConfigurationError(
            "which command? Write it after two dashes: tenure run -- uvicorn app:app --workers 4"
        )
    _refuse_a_second("managers", "run the command as it is to use those", VARIABLE, FILE_VARIABLE)
    if options is not None and not gateway:
        raise ConfigurationError(
            f"{' '.join(options.arguments())} is for a gateway, and there is none without --gateway"
        )
    front = beside_command(options or GatewayOptions()) if gateway else None
    where = data.expanduser().resolve() if store else None
    if where is not None:
        _refuse_a_second("a store", "leave out --store to use that one", STORE_VARIABLE)
        port = port or MANAGER_PORT
    settings = settings_from(None, preset=preset, port=port, **_journal(journal, where))
    if where is not None:
        make_directory(where)
    return run_long(
        lambda: _run(ManagerService(settings, add_pages=add_pages), command, where, front)
    )


def _refuse_a_second(what: str, way_out: str, *variables: str) -> None:
    for variable in variables:
        if os.environ.get(variable):
            raise ConfigurationError(
                f"{variable} names {what} already: {way_out}, or unset {variable} to run one of "
                "its own beside the command"
            )


def _journal(named: str, data: Path | None) -> dict[str, object]:
    if data is not None and named == MEMORY:
        raise ConfigurationError(
            "--journal memory begins anew each time, and a store refuses the lower lease numbers "
            "of a new journal: leave it out, or name one that lasts"
        )
    kept = MEMORY if data is None else f"sqlite:{data / 'journal.sqlite'}"
    journal = named or kept
    # A journal in memory is new each time, and so are the owners: nobody can hold anything. The
    # same is true of the first run with a store.
    is_first = journal == kept and (data is None or not (data / "journal.sqlite").exists())
    return {"journal": journal, **({"first_start": True} if is_first else {})}


async def _run(
    service: ManagerService,
    command: tuple[str, ...],
    data: Path | None,
    gateway: GatewayOptions | None,
) -> int:
    orphans, impatient = Orphans(), asyncio.Event()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(service)
        print(f"tenure: manager and dashboard at {service.url}", file=sys.stderr, flush=True)
        told = {VARIABLE: service.url}
        if data is not None:
            store = store_beside(data, service.url, orphans.awaited.add)
            told[STORE_VARIABLE] = await stack.enter_async_context(store)
        signals = SignalsToCommand(impatient)
        front = None if gateway is None else await _front(stack, gateway, service, orphans)
        process = await _started(command, {**os.environ, **told})
        orphans.awaited.add(process.pid)
        signals.to(process, front)
        ended = asyncio.create_task(process.wait())
        failing = [service.wait()] if front is None else [service.wait(), front.wait()]
        failed = [asyncio.create_task(each) for each in failing]
        while not any(each.done() for each in (ended, *failed)):
            await asyncio.wait(
                {ended, *failed}, timeout=REAP_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            orphans.living()
        if not ended.done():  # without a manager its leases run out: end it, and say why
            with suppress(ProcessLookupError):
                process.terminate()
            await ended
        if front is not None:
            await front.end()
        await orphans.end(impatient)
        for each in failed:
            if each.done():
                each.result()
            each.cancel()
        code = ended.result()
    return code if code >= 0 else KILLED - code


async def _front(
    stack: AsyncExitStack, options: GatewayOptions, service: ManagerService, orphans: Orphans
) -> GatewayBeside:
    front = await GatewayBeside.start(options, service.url)
    stack.push_async_callback(front.end)
    orphans.awaited.add(front.pid)
    print(f"tenure: gateway at {front.where}", file=sys.stderr, flush=True)
    return front


async def _started(command: tuple[str, ...], environment: Mapping[str, str]) -> Process:
    try:
        return await asyncio.create_subprocess_exec(*command, env=environment)
    except FileNotFoundError:
        where = "" if Path(command[0]).parent == Path() else " there"
        raise ConfigurationError(f"there is no command {command[0]!r}{where}") from None
    except OSError as error:
        raise TenureError(f"{command[0]!r} cannot be run: {error.strerror}") from None


class SignalsToCommand:
    """Forwards signals to the command, except those that the terminal has sent it already, as at
    Ctrl-C. After the command has ended, signals are for this process, which waits for orphans.
    The gateway ends with the command, while there is somebody to answer what has begun.
    """

    def __init__(self, impatient: asyncio.Event) -> None:
        self._impatient = impatient
        self._front: GatewayBeside | None = None
        self._process: Process | None = None
        self._early: list[signal.Signals] = []
        """Signals that came while the command was being started."""
        loop = asyncio.get_running_loop()
        for number in FORWARDED:
            loop.add_signal_handler(number, self._forward, number)

    def to(self, process: Process, front: GatewayBeside | None) -> None:
        """The command has begun."""
        self._process, self._front = process, front
        for number in self._early:
            self._forward(number)

    def _forward(self, number: signal.Signals) -> None:
        if self._process is None:
            self._early.append(number)
            return
        if self._process.returncode is not None:
            self._impatient.set()
            return
        if self._front is not None:
            self._front.hear(number)
        if number is signal.SIGINT and sys.stdin is not None and sys.stdin.isatty():
            return
        with suppress(ProcessLookupError):
            self._process.send_signal(number)
