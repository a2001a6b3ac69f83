"""A process that answers requests within limits of time and memory: its side.

Some code may take hours or gigabytes, and nothing in Python ends a thread. So such code runs in a
process of its own, which holds no lease, no token and no socket, and the system ends it when it
has used its time or its memory. Requests come at its standard input, and answers go to its standard
output. The other side ends it when an answer takes too long.

A thread reads the requests: so the process ends when the other side has gone, even while it works,
or still imports what it needs.
"""

import os
import resource
import signal
import sys
from collections.abc import Callable
from math import ceil
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import BinaryIO, TypeAlias

NICE = 5
"""It gives way to whatever renews leases."""
READY = b"+"
HEAD_BYTES = 4
"""Of the length, before each request and each answer."""
PASSED_ON = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TMPDIR")
"""What the process gets of our environment, in which there may be a token."""

Answering: TypeAlias = Callable[[bytes], bytes]


def framed(data: bytes) -> bytes:
    """A request or an answer, as it goes over a pipe."""
    return len(data).to_bytes(HEAD_BYTES) + data


def command(module: str, *arguments: str) -> tuple[str, ...]:
    """The command that runs `module` as such a process."""
    return (sys.executable, "-P", "-m", module, *arguments)


def environment() -> dict[str, str]:
    """The environment of such a process."""
    return {name: os.environ[name] for name in PASSED_ON if name in os.environ}


def answer_within(
    load: Callable[[], Answering],
    cpu_seconds: int,
    memory_bytes: int,
    idle_seconds: float | None = None,
) -> None:
    """Answer requests until there are no more, or none comes for `idle_seconds`; each within
    `cpu_seconds`. Whatever is printed meanwhile goes to the standard error.
    """
    # Not sys.stdin: Python aborts at its exit while a thread reads that.
    requests = os.fdopen(os.dup(0), "rb")
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)
        _bound(resource.RLIMIT_AS, memory_bytes)
        _bound(resource.RLIMIT_FSIZE, 0)
        _bound(resource.RLIMIT_CORE, 0)
        os.nice(NICE)
        came: Queue[bytes] = Queue(maxsize=1)  # the next is sent when this is answered
        Thread(target=_read, args=(requests, came), daemon=True).start()
        answering = load()
        _say(answers, READY)
        while True:
            try:
                request = came.get(timeout=idle_seconds)
            except Empty:
                return
            used = ceil(_used_seconds())
            _bound(resource.RLIMIT_CPU, used + cpu_seconds, is_for_good=False)
            _say(answers, framed(answering(request)))


def _read(requests: BinaryIO, came: Queue[bytes]) -> None:
    while head := requests.read(HEAD_BYTES):
        came.put(requests.read(int.from_bytes(head)))
    if os.getpgrp() == os.getpid():  # what it has begun ends with it
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


def _say(answers: BinaryIO, data: bytes) -> None:
    answers.write(data)
    answers.flush()


def _used_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _bound(what: int, most: int, *, is_for_good: bool = True) -> None:
    """Bound what this process may use. Some systems know a bound and do not let it be set."""
    _, hard = resource.getrlimit(what)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    try:
        resource.setrlimit(what, (most, most if is_for_good else hard))
    except (OSError, ValueError):  # macOS bounds no address space
        if sys.platform == "linux":
            raise
