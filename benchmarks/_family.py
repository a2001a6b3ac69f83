"""Runs a program to its end or to a signal, and then ends everything that it has started.

A benchmark starts managers, services and servers of others, some of them in sessions of their own,
some stopped. A person who ends it by a signal wants them to end too. So it runs under a process
that inherits what the benchmark leaves behind, and ends that (on Linux; on other systems you must
look for what a killed benchmark has left).
"""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

END_SECONDS = 10.0
"""How long a program that is told to end may take, to remove its files."""
_SET_CHILD_SUBREAPER = 36
"""The option of `prctl` by which orphans of this process's descendants become its children."""


def family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    parents: dict[int, list[int]] = {}
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(each.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue  # it has ended meanwhile
        parents.setdefault(parent, []).append(int(each.parent.name))
    found = [pid]
    for one in found:
        found += parents.get(one, [])
    return found


class _Ended(Exception):
    """A signal has come."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def run(
    command: Sequence[str], place: Path, environment: dict[str, str], output: int | None = None
) -> int:
    """Run it to its end, writing to `output` if given; its exit code. At SIGTERM or SIGINT it
    is interrupted, as Ctrl-C does it; then this process ends by SystemExit. Nothing that it has
    started is left in either case.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = {each: signal.signal(each, _end) for each in (signal.SIGTERM, signal.SIGINT)}
    program = None
    try:
        # In a group of its own: a Ctrl-C would otherwise reach it twice, the second time while it
        # ends what it has started.
        program = subprocess.Popen(
            command, cwd=place, env=environment, process_group=0, stdout=output, stderr=output
        )
        return program.wait()
    except _Ended as told:
        if program is not None:
            program.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                program.wait(END_SECONDS)
        raise SystemExit(128 + told.number) from None
    finally:
        _end_all()
        for each, handler in before.items():
            signal.signal(each, handler)


def _end(number: int, _: object) -> None:
    signal.signal(number, signal.SIG_IGN)  # it has been heard
    raise _Ended(number)


def _end_all() -> None:
    """Every descendant. Orphans come here one by one, and may have started others meanwhile."""
    while True:
        for pid in family(os.getpid())[1:]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return
