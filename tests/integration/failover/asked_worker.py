"""A worker that is asked by lines: a process that owns some keys of a pool of entities.

It says `ready` once, and answers each line that it reads with a line that begins with a word, and
then what it was asked, or `has` and the key that it was asked for.
"""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from contextlib import suppress

from tests.patience import DEADLINE_SECONDS
from tests.repo.reading import ROOT


class Worker:
    """A process that owns some of the keys."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.answers: dict[str, asyncio.Future[str]] = {}
        self.is_ready = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, *program: str, **environment: str) -> "Worker":
        """Run this module, with these arguments, until it is ready."""
        worker = cls(
            await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", *program),
                stdin=PIPE,
                stdout=PIPE,
                cwd=ROOT,
                env={**os.environ, **environment},
                start_new_session=True,
            )
        )
        async with asyncio.timeout(DEADLINE_SECONDS):
            await worker.is_ready.wait()
        return worker

    async def _read(self) -> None:
        assert self.process.stdout
        while line := (await self.process.stdout.readline()).decode().strip():
            if line == "ready":
                self.is_ready.set()
                continue
            what, key, *rest = line.split(" ", 3)
            is_number = what != "has" and rest[0].isdecimal()
            asked = f"{key} {rest[0]}" if is_number else key
            answer = self.answers.pop(asked, None)
            if answer is not None and not answer.done():
                answer.set_result(line)
        for each in self.answers.values():
            if not each.done():
                each.set_result("died")

    async def ask(self, line: str) -> str:
        """What it says to that, or `died`."""
        assert self.process.stdin
        answer = self.answers[line] = asyncio.get_running_loop().create_future()
        if self._reading.done():
            return "died"
        with suppress(ConnectionError):
            self.process.stdin.write(f"{line}\n".encode())
        async with asyncio.timeout(DEADLINE_SECONDS):
            return str(await answer)

    async def leave(self) -> None:
        """Let it answer what it was asked, hand its keys over, and end."""
        assert self.process.stdin
        self.process.stdin.close()
        async with asyncio.timeout(DEADLINE_SECONDS):
            assert await self.process.wait() == 0
        await self._reading

    async def end(self) -> None:
        """Kill it, also if it is stopped."""
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        await self._reading
