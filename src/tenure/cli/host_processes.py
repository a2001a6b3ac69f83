"""Processes of one host, each started with the very command that a user would type, so that any of
them can be killed, looked at and started again.

What they say goes to a file for each of them, in the directory of their data.
"""

import asyncio
import os
import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from tenure.cli.output import remark, say

END_SECONDS = 10.0
AGAIN_SECONDS = 1.0
"""The pause before a process is started again, which may end at once each time."""


LAST_BYTES = 4096
"""Where the last line of a log is looked for."""


class HostProcesses(ABC):
    """The processes, by name, in the order in which they were started."""

    end_seconds = END_SECONDS
    """How long a process may take to end before it is killed."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self._running: dict[str, asyncio.subprocess.Process] = {}

    @abstractmethod
    def command(self, name: str) -> list[str]:
        """Return the command that starts the process called `name`, as a user types it."""

    def environment(self, _: str) -> Mapping[str, str] | None:
        """Return the environment of that process; None for this one's."""
        return None

    def directory(self, _: str) -> str | None:
        """Return the directory that it runs in; None for this one's."""
        return None

    async def launch(self, name: str) -> None:
        """Start a process."""
        with (self.data / f"{name}.log").open("ab") as log:
            self._running[name] = await asyncio.create_subprocess_exec(
                *self.command(name),
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=self.environment(name),
                cwd=self.directory(name),
            )

    def kill(self, name: str) -> None:
        """Kill a process, at once."""
        self._running[name].kill()

    def last_words(self, name: str) -> str:
        """Return the last line in the log of a process."""
        with (self.data / f"{name}.log").open("rb") as log:
            log.seek(max(log.seek(0, os.SEEK_END) - LAST_BYTES, 0))
            lines = log.read().decode(errors="replace").splitlines()
        return lines[-1] if lines else "it has said nothing"

    def pids(self) -> dict[str, int]:
        """Return the process id of each running process, by name."""
        return {name: process.pid for name, process in self._running.items()}

    async def watch(self) -> None:
        """Report each process that ends, and how to start it again."""

        async def follow(name: str) -> None:
            say(f"{name} {await self._end_of(name)}; the others run on. To start it again:")
            say(f"  {shlex.join(self.command(name))}")

        await asyncio.gather(*map(follow, self._running))
        await asyncio.Event().wait()

    async def keep(self, begun: Callable[[int], None]) -> None:
        """Start each process again that ends, and report it on standard error; `begun` is told the
        new process id.
        """
        await asyncio.gather(*(self.keep_one(name, begun) for name in self._running))

    async def keep_one(self, name: str, begun: Callable[[int], None]) -> None:
        """The same for one process."""
        while True:
            how = await self._end_of(name)
            await asyncio.sleep(AGAIN_SECONDS)
            await self.launch(name)
            remark(f"{name} {how}, and was started again")
            begun(self.pids()[name])

    async def _end_of(self, name: str) -> str:
        code = await self._running[name].wait()
        return f"has ended ({f'killed by signal {-code}' if code < 0 else self.last_words(name)})"

    async def end(self) -> None:
        """End all that run, the last first: nodes before their manager."""
        for name in reversed(self.pids()):
            await self.end_one(name)

    async def end_one(self, name: str) -> None:
        """End a process, and wait until it has ended."""
        process = self._running.pop(name)
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(self.end_seconds):
                await process.wait()
        except TimeoutError:
            remark(f"{name} does not end, and is killed")
            process.kill()
            await process.wait()
