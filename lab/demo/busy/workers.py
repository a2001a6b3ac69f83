"""The workers of the busy pool: processes that take connections from one socket."""

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, Process, create_subprocess_exec
from contextlib import suppress

NAMES = ("ann", "bob", "cleo", "dan", "eve")
ZONES = ("north", "south")
FIRST_VERSION = 41


class Workers:
    """Those that run, by name."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._running: dict[str, Process] = {}
        self.version = FIRST_VERSION

    async def start(self, name: str) -> None:
        """Start a worker of the present version."""
        zone = ZONES[NAMES.index(name) % len(ZONES)]
        told = {"BUSY_NAME": name, "BUSY_VERSION": str(self.version), "BUSY_ZONE": zone}
        shared = self._listener.fileno()
        self._running[name] = await create_subprocess_exec(
            *(sys.executable, "-m", "uvicorn", "lab.demo.busy.rooms:app", "--fd", str(shared)),
            # It calls an error what is none: that a handshake was answered by the gateway.
            *("--log-level", "critical"),
            env={**os.environ, **told},
            stdin=DEVNULL,
            pass_fds=(shared,),
        )

    async def kill(self, name: str) -> None:
        """End it as a crash does: it hands over nothing."""
        await self._end(name, signal.SIGKILL)

    async def replace(self, name: str) -> None:
        """End it so that it hands over what it has, and start one of the present version."""
        await self._end(name, signal.SIGTERM)
        await self.start(name)

    async def end(self) -> None:
        """End all."""
        await asyncio.gather(*(self._end(name, signal.SIGTERM) for name in list(self._running)))

    async def _end(self, name: str, how: signal.Signals) -> None:
        process = self._running.pop(name)
        with suppress(ProcessLookupError):
            process.send_signal(how)
        await process.wait()
