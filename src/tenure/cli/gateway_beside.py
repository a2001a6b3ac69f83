"""The gateway beside a command, of `tenure run --gateway`: a process of its own, started as a user
types it, so that it has a core for itself and the manager renews leases while it is busy.
"""

import asyncio
import json
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from dataclasses import replace

from tenure.cli.gateway_options import GatewayOptions
from tenure.cli.long_run import ENDING
from tenure.errors import TenureError

USUAL = "http://127.0.0.1:8000"
"""Where uvicorn, gunicorn, hypercorn and granian listen unless they are told otherwise."""


class GatewayBeside:
    """One such process."""

    def __init__(self, process: Process, where: str) -> None:
        self._process = process
        self._is_told = False
        self.where = where

    @classmethod
    async def start(cls, options: GatewayOptions, manager: str) -> "GatewayBeside":
        """Start it, and wait until it listens. Raises TenureError if it cannot."""
        words = [*options.arguments(), "--manager", manager, "--json"]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tenure", "gateway", *words), stdin=DEVNULL, stdout=PIPE
        )
        assert process.stdout is not None
        told = await process.stdout.readline()
        if not told:  # and it has said why
            await process.wait()
            raise TenureError("the gateway could not be started; the command was not run")
        found = json.loads(told)
        admin = f", its admin port at {found['admin']}" if found["admin"] else ""
        return cls(process, found["url"] + admin)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def hear(self, number: signal.Signals) -> None:
        """Pass on a signal: at one that ends it, it takes no more requests, and answers those that
        have begun; at SIGHUP, it reads its routes again.
        """
        if number in ENDING:
            self._is_told = True
        if number in (*ENDING, signal.SIGHUP):
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def end(self) -> None:
        """End it, and wait until it has."""
        self.hear(signal.SIGTERM)
        await self._process.wait()

    async def wait(self) -> None:
        """Wait until it fails. Raises TenureError then."""
        code = await self._process.wait()
        if self._is_told:
            await asyncio.Event().wait()
        raise TenureError(f"the gateway has ended, with exit code {code}; the command was ended")


def beside_command(options: GatewayOptions) -> GatewayOptions:
    """The options of a gateway that finds the command's members, and what has no key."""
    return replace(options, member_routes=True, rest=options.rest or USUAL)
