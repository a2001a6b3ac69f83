"""The world outside, as code in simulated processes finds it: faked where that is natural, refused
where it is not.

Clocks of `time` show what the process's own clock shows, and random draws come from the seed.
`time.sleep`, sockets, threads and programs raise NotSimulated, which names what to use instead. All
this holds for simulated code only, which is recognised by the event loop that runs it.
`datetime.now()`, which cannot be replaced, and modules that took `time.time` by name before, show
real time.
"""

import asyncio
import os
import random
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from tenure.base.instants import SECOND_NS
from tenure.sim.app.processes import AppProcess
from tenure.sim.kernel.loop import SimLoop

SOCKETS = "reach the application by the test kit's clients, and give it fakes of other services"
THREADS = "await asyncio.to_thread(...), which calls the function in the loop, or use a task"
PROGRAMS = "give your code a fake of the program"
SLEEP = "await asyncio.sleep(...), which takes no real time here"


def simulated_process() -> AppProcess | None:
    """The simulated process whose code runs now, in this thread."""
    loop = asyncio._get_running_loop()  # noqa: SLF001  # the public way raises where there is none
    host = loop.host if isinstance(loop, SimLoop) else None
    return host if isinstance(host, AppProcess) else None


def _monotonic(process: AppProcess) -> int:
    return process.now()


def _wall(process: AppProcess) -> int:
    return process.clock.wall(process.site.now)


def _clock(real: Callable[[], Any], shown: Callable[[AppProcess], int], unit: int) -> Any:  # noqa: ANN401
    def read() -> Any:  # noqa: ANN401
        process = simulated_process()
        if process is None:
            return real()
        return shown(process) if unit == 1 else shown(process) / unit

    return read


def _refused(real: Callable[..., Any], what: str, instead: str) -> Any:  # noqa: ANN401
    def call(*args: Any, **options: Any) -> Any:  # noqa: ANN401
        process = simulated_process()
        if process is not None:
            process.loop.refuse(what, instead)
        return real(*args, **options)

    return call


def _urandom(real: Callable[[int], bytes]) -> Callable[[int], bytes]:
    def draw(size: int) -> bytes:
        process = simulated_process()
        return real(size) if process is None else process.random.randbytes(size)

    return draw


def _run_sync(real: Callable[..., Any]) -> Callable[..., Any]:
    async def run_sync(call: Callable[..., Any], *args: Any, **options: Any) -> Any:  # noqa: ANN401
        if simulated_process() is None:
            return await real(call, *args, **options)
        return await asyncio.to_thread(call, *args)

    return run_sync


def _replacements() -> Iterator[tuple[Any, str, Any]]:
    for name in ("monotonic", "perf_counter"):
        yield time, name, _clock(getattr(time, name), _monotonic, SECOND_NS)
        yield time, f"{name}_ns", _clock(getattr(time, f"{name}_ns"), _monotonic, 1)
    yield time, "time", _clock(time.time, _wall, SECOND_NS)
    yield time, "time_ns", _clock(time.time_ns, _wall, 1)
    yield time, "sleep", _refused(time.sleep, "time.sleep", SLEEP)
    init = socket.socket.__init__
    yield socket.socket, "__init__", _refused(init, "a socket", SOCKETS)
    yield threading.Thread, "start", _refused(threading.Thread.start, "a thread", THREADS)
    popen = subprocess.Popen.__init__
    yield subprocess.Popen, "__init__", _refused(popen, "a program", PROGRAMS)
    urandom = _urandom(os.urandom)
    yield os, "urandom", urandom
    yield random, "_urandom", urandom  # which `secrets` and SystemRandom have by name
    # `def` handlers of Starlette's run in threads of this module's, where that is installed.
    with suppress(ImportError):
        to_thread = import_module("anyio.to_thread")
        yield to_thread, "run_sync", _run_sync(to_thread.run_sync)


@contextmanager
def in_place(seed: int) -> Iterator[None]:
    """While this lasts, simulated code finds fakes; everybody else what there always is."""
    drawn = random.getstate()
    kept = [(owner, name, owner.__dict__[name], new) for owner, name, new in _replacements()]
    random.seed(seed)
    for owner, name, _, new in kept:
        setattr(owner, name, new)
    try:
        yield
    finally:
        for owner, name, original, _ in kept:
            setattr(owner, name, original)
        random.setstate(drawn)
