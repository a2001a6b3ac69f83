"""The parent's side of the leash: processes started, spoken with, and ended, each by its own id."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import msgspec

from tenure.cli.demo.reports import STOP, encode
from tenure.errors import TenureError

OnLine: TypeAlias = Callable[[bytes], None]

END_SECONDS = 3.0
"""How long a process may take to end by itself when it is told to."""
LAST_WORDS = 5
"""Lines of a log that are shown when its process has died."""


class Child:
    """A process of the demo."""

    def __init__(
        self, name: str, process: asyncio.subprocess.Process, log: Path, on_line: OnLine
    ) -> None:
        self.name = name
        self._process = process
        self._log = log
        self._on_line = on_line
        self.is_expected_to_end = False
        self.ended = asyncio.create_task(self._follow(), name=name)

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    @property
    def code(self) -> int | None:
        """The child's exit code, once it has ended."""
        return self._process.returncode

    async def _follow(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            if line.endswith(b"\n"):  # a kill may cut the last line off
                self._on_line(line)
        await self._process.wait()

    def tell(self, what: msgspec.Struct | None = None) -> None:
        """Orders; or, without any, to stop."""
        assert self._process.stdin is not None
        if what is None:
            self.is_expected_to_end = True
        with suppress(ConnectionError):
            self._process.stdin.write((encode(what) if what else STOP) + b"\n")

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        if number in (signal.SIGKILL, signal.SIGTERM):
            self.is_expected_to_end = True
        with suppress(ProcessLookupError):  # asyncio knows whether the id is still this process's
            self._process.send_signal(number)

    async def end(self, more_seconds: float = 0) -> None:
        """Wait until it has ended; kill it when that takes END_SECONDS and `more_seconds`."""
        self.is_expected_to_end = True
        _, late = await asyncio.wait({self.ended}, timeout=END_SECONDS + more_seconds)
        if late:
            self.send(signal.SIGKILL)
            await self._process.wait()

    def died(self) -> TenureError:
        """Return the error to raise if the process has ended and should not have."""
        lines = self._log.read_text(errors="replace").splitlines()[-LAST_WORDS:]
        words = "; ".join(line.strip() for line in lines) or "nothing"
        code = self._process.returncode
        return TenureError(
            f"{self.name} of the demo ended by itself, with code {code}. The last that it logged "
            f"was: {words}"
        )


class Children:
    """All the processes of one demo; `module` is run in each of them."""

    def __init__(self, logs: Path, module: str = "tenure.cli.demo") -> None:
        self._logs = logs
        self._module = module
        self._all: list[Child] = []
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Raises when a process has ended that should not have."""

    async def start(self, role: str, name: str, on_line: OnLine, *arguments: str) -> Child:
        """Start a process."""
        log = self._logs / f"{name}.log"
        with log.open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", self._module, role, name, str(os.getpid())),
                *arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                start_new_session=True,  # Ctrl-C is for this process, which then ends the others
            )
        child = Child(name, process, log, on_line)
        child.ended.add_done_callback(lambda task: self._on_ended(child, task))
        self._all.append(child)
        return child

    def _on_ended(self, child: Child, task: "asyncio.Task[None]") -> None:
        if self.failed.done() or task.cancelled():
            return
        if error := task.exception():
            self.failed.set_exception(error)
        elif not child.is_expected_to_end:
            self.failed.set_exception(child.died())

    async def kill_all(self) -> None:
        """Have none left, at once, whatever they do."""
        for child in self._all:
            child.send(signal.SIGKILL)
        await asyncio.gather(*(child.ended for child in self._all), return_exceptions=True)
        if self.failed.done():
            self.failed.exception()  # whoever waited for it has it; who did not does not miss it
        self.failed.cancel()
