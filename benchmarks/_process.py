"""A process of the benchmarks that is told what to do, and answers, line by line."""

import asyncio
import os
import sys
from collections.abc import Mapping
from contextlib import suppress

END_SECONDS = 180.0
"""Attackers have what others leave of the processors, also to end."""


class Process:
    """A module of this package in a process of its own, to which lines are said."""

    def __init__(self, *module: str, env: Mapping[str, str] | None = None) -> None:
        self._module = module
        self._env = {**os.environ, **(env or {})}
        self.inner: asyncio.subprocess.Process

    async def begin(self, first: bytes) -> bytes:
        """Start it, say the first line, and hear what it says when it has begun."""
        self.inner = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", *self._module),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=self._env,
        )
        return await self.say(first)

    async def say(self, line: bytes) -> bytes:
        """Say a line, and hear what it answers."""
        assert self.inner.stdin
        assert self.inner.stdout
        self.inner.stdin.write(line + b"\n")
        await self.inner.stdin.drain()
        return await self.inner.stdout.readline()

    async def end(self) -> bytes:
        """Tell it to end; its last line."""
        assert self.inner.stdin
        assert self.inner.stdout
        with suppress(PermissionError, ProcessLookupError):  # an attacker ends as quickly as others
            os.setpriority(os.PRIO_PROCESS, self.inner.pid, os.getpriority(os.PRIO_PROCESS, 0))
        self.inner.stdin.close()
        last = b""
        with suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                last = await self.inner.stdout.read()
                await self.inner.wait()
        await self.kill()
        return last

    async def kill(self) -> None:
        """Be sure that it has ended."""
        if self.inner.returncode is None:
            self.inner.kill()
            await self.inner.wait()
