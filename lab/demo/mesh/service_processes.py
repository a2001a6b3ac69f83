"""Managers and services in processes of their own, started as a user starts them."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from tenure.errors import TenureError

START_SECONDS = 60.0
END_SECONDS = 60.0


class ServiceProcess:
    """A `tenure` command that reports as JSON, through all its lives."""

    def __init__(
        self, name: str, arguments: Sequence[str], env: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self._arguments = arguments
        self._env = {**os.environ, **(env or {})}
        self._process: asyncio.subprocess.Process | None = None
        self.url = ""

    @property
    def process(self) -> asyncio.subprocess.Process:
        """The present life."""
        assert self._process is not None, self.name
        return self._process

    async def start(self) -> str:
        """Start it, and wait until it serves; its URL. Raises TenureError where it does not."""
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tenure", *self._arguments, "--json"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
            env=self._env,
        )
        try:
            async with asyncio.timeout(START_SECONDS):
                self.url = (await self._event("listening"))["url"]
        except TimeoutError:
            raise TenureError(f"{self.name} does not begin to serve") from None
        return self.url

    async def _event(self, kind: str) -> dict[str, Any]:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            found: dict[str, Any] = json.loads(line)
            if found.get("event") == kind:
                return found
        raise TenureError(f"{self.name} has ended")

    async def leave(self) -> None:
        """End it as SIGTERM does, and wait until it has handed everything over."""
        with suppress(ProcessLookupError):
            self.process.terminate()
        async with asyncio.timeout(END_SECONDS):
            await self.process.wait()

    async def kill(self) -> None:
        """End it as kill -9 does."""
        with suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()

    def stop(self) -> None:
        """Let it do nothing, until it is woken."""
        self.process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        """Let it go on, however late."""
        self.process.send_signal(signal.SIGCONT)

    async def end(self) -> None:
        """Be sure that nothing is left of it."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self.wake()
            await self.kill()
