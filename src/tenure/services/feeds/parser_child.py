"""A process that only reads feeds: bodies come at its standard input, and items go to its standard
output. `parser_processes` begins it.

feedparser is not made for bodies that mean harm: some take it minutes, or gigabytes. Here this
costs nobody anything. The process holds no lease, no token and no socket, and the system ends it
when it has used its time or its memory.
"""

import os
import resource
import sys
from math import ceil
from typing import BinaryIO

import msgspec

from tenure.errors import ServiceRefusal
from tenure.services.feeds.parsing import FeedItem, items_in, load_feedparser
from tenure.services.problems import ServiceProblem

CPU_SECONDS = 5
"""How long a body is read, of the processor's time: the largest real feeds take a second."""
MEMORY_BYTES = 512 << 20
"""All that the process may have: a tenth of it is the interpreter and feedparser."""
NICE = 5
"""It gives way to whatever renews leases."""
READY = b"+"
HEAD_BYTES = 4
"""Of the length, before each body and each answer."""


class ParsedBody(msgspec.Struct):
    """What is in a body: items, or why it was refused."""

    items: list[FeedItem] = []
    refusal: ServiceProblem | None = None


def framed(data: bytes) -> bytes:
    """A body or an answer, as it goes over a pipe."""
    return len(data).to_bytes(HEAD_BYTES) + data


def main(seconds: int = CPU_SECONDS) -> None:
    """Read bodies until there are no more."""
    load_feedparser()
    _bound(resource.RLIMIT_AS, MEMORY_BYTES)
    _bound(resource.RLIMIT_FSIZE, 0)
    _bound(resource.RLIMIT_CORE, 0)
    os.nice(NICE)
    bodies, answers = sys.stdin.buffer, sys.stdout.buffer
    _say(answers, READY)
    while head := bodies.read(HEAD_BYTES):
        body = bodies.read(int.from_bytes(head))
        _bound(resource.RLIMIT_CPU, ceil(_used_seconds()) + seconds, is_for_good=False)
        _say(answers, framed(msgspec.msgpack.encode(_parsed(body))))


def _parsed(body: bytes) -> ParsedBody:
    try:
        return ParsedBody(items_in(body))
    except ServiceRefusal as error:
        return ParsedBody(refusal=ServiceProblem.of(error))


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


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
