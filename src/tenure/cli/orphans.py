"""Orphans: processes that a command started, and that go on when the command has ended.

`sh -c 'a & b; wait'` ends at SIGTERM and says nothing to `a` and `b`. They would go on without the
manager, which ends with the command. So `tenure run` tells them to end too, and the manager waits
for them as it waits for the command: they may have keys to hand over.

A process group would not do. A group of its own would take the terminal from the command, and a
signal to a whole group reaches the workers of a server beside the server, which wants to restart
them one by one. On Linux a process can ask for the orphans among its descendants
(`PR_SET_CHILD_SUBREAPER`): they become its children. Elsewhere they are not found.

Whoever has begun a session of its own wants to outlive its parent, and is left alone.
"""

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress

from tenure.client.attestation import PROC, stat_fields

PR_SET_CHILD_SUBREAPER = 36
LOOK_SECONDS = 0.1
SILENT_SECONDS = 1.0
"""A shorter wait for them needs no word."""


class Orphans:
    """The orphans of one command."""

    def __init__(self) -> None:
        self.awaited: set[int] = set()
        """The pids of children that somebody else waits for."""
        self._told: set[int] = set()
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)

    def living(self) -> list[int]:
        """Their pids. Those that have ended are taken off the list of processes."""
        living = []
        for pid, has_ended, session in _children():
            if pid in self.awaited:
                continue
            if has_ended:
                with suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            elif session == os.getsid(0):
                living.append(pid)
        return living

    async def end(self, impatient: asyncio.Event) -> None:
        """Tell all of them to end, and wait until they have; or until somebody is impatient."""
        loop = asyncio.get_running_loop()
        speaks_at = loop.time() + SILENT_SECONDS
        while (pids := self.living()) and not impatient.is_set():
            for pid in pids:
                if pid not in self._told:
                    with suppress(OSError):  # it has gone, or another user's rights
                        os.kill(pid, signal.SIGTERM)
            self._told.update(pids)
            if loop.time() >= speaks_at:
                speaks_at = float("inf")
                listed = ", ".join(map(str, pids))
                print(
                    f"tenure: the command has ended, and what it started goes on (pid {listed}); "
                    "it was told to end, and the manager waits for it. Another signal ends that",
                    file=sys.stderr,
                    flush=True,
                )
            with suppress(TimeoutError):
                await asyncio.wait_for(impatient.wait(), LOOK_SECONDS)


def _children() -> Iterator[tuple[int, bool, int]]:
    """The children of this process: pids, whether each has ended and is to be noticed, sessions."""
    for entry in PROC.glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):  # it has gone, or is not to be seen
            state, parent, _, session = stat_fields(entry)[:4]
            if int(parent) == os.getpid():
                yield int(entry.name), state == b"Z", int(session)
