"""A PC as the demo runs it: a process that is started, spoken to, and killed."""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

PATIENCE_SECONDS = 60.0
"""The longest wait for a PC to hear what it has to hear."""
LINE_BYTES = 1 << 20
Event: TypeAlias = dict[str, Any]


class DeviceProcess:
    """A PC through all its lives. `hear` is told each event that it reports."""

    def __init__(
        self,
        disk: Path,
        frontends: Sequence[str],
        hear: Callable[[Event], None],
    ) -> None:
        self._disk = disk
        self._frontends = frontends
        self._hear = hear
        self._heard = asyncio.Condition()
        self._process: Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self._role = ""
        self._last_line = ""

    async def start(self, role: str = "") -> None:
        """Begin a life: by default in the role of the last one, and told what that was told."""
        self._role = role or self._role
        program = (sys.executable, "-m", "lab.demo.mesh.device_program")
        self._process = await asyncio.create_subprocess_exec(
            *(*program, self._role, str(self._disk), *self._frontends),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            start_new_session=True,
            limit=LINE_BYTES,
        )
        self._listening = asyncio.create_task(self._listen(self._process))
        if self._last_line:
            self.tell(self._last_line)

    def tell(self, line: str) -> None:
        """Write a line to its input; each further life is told it, too."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._last_line = line
        self._process.stdin.write(f"{line}\n".encode())

    async def _listen(self, process: Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            if line.endswith(b"\n"):  # a killed one may have said half of it
                self._hear(msgspec.json.decode(line))
                async with self._heard:
                    self._heard.notify_all()

    async def until(self, holds: Callable[[], bool]) -> bool:
        """Wait until something holds that its events decide; False if that takes too long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_SECONDS), self._heard:
                return await self._heard.wait_for(holds)
        return False

    async def kill(self) -> None:
        """End it as kill -9 does, or as a plug that is pulled."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._ended(self._process)

    async def leave(self) -> None:
        """Have it go offline."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._ended(self._process)

    async def _ended(self, process: Process) -> None:
        await process.wait()
        if self._listening is not None:
            await self._listening
