"""The child's side of the leash: no process of the demo outlives it.

Three ways, because none is enough alone. The demo ends its processes when it ends. If it is killed
itself, its end of the pipe to their standard input closes, and they exit when they read that; but
who is stopped reads nothing. So on Linux the kernel is asked to kill them when their parent dies.
"""

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable
from threading import Thread

import msgspec

from tenure.cli.demo.reports import STOP, encode

PR_SET_PDEATHSIG = 1
CHUNK_BYTES = 65_536
ORPHANED = 3
"""The exit code of a child whose parent is gone. Nobody is left to see it."""


def die_with(parent: int) -> None:
    """End this process when `parent`, which started it, is gone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it was gone before we asked
        os._exit(ORPHANED)


def listen(on_line: Callable[[bytes], object]) -> None:
    """Hand each line of standard input to `on_line`, in a thread; exit at its end."""
    Thread(target=_listen, args=(on_line,), daemon=True, name="leash").start()


def _listen(on_line: Callable[[bytes], object]) -> None:
    rest = b""
    # Not sys.stdin: a thread that waits in it holds a lock that the interpreter wants at its end.
    while chunk := os.read(0, CHUNK_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            on_line(line)
    os._exit(ORPHANED)


class Leash:
    """The leash of a child with an event loop: its orders, and when it has to stop."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._orders: asyncio.Queue[bytes] = asyncio.Queue()
        self._has_begun = False
        self.stopping = asyncio.Event()
        listen(lambda line: loop.call_soon_threadsafe(self._on_line, line))

    def _on_line(self, line: bytes) -> None:
        if line != STOP:
            self._has_begun = True
            self._orders.put_nowait(line)
        elif self._has_begun:
            self.stopping.set()
        else:
            os._exit(ORPHANED)

    async def orders(self) -> bytes:
        """Return the next orders of this process: the first at its start, others at any time."""
        return await self._orders.get()

    async def stopped_within(self, seconds: float) -> bool:
        """Wait to be stopped. Return False if that did not happen within `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self.stopping.wait()
        except TimeoutError:
            return False
        return True


def tell(report: msgspec.Struct) -> None:
    """Tell the demo. In one write, so that a kill leaves no half of a line."""
    os.write(1, encode(report) + b"\n")
