"""A process that only reads feeds: bodies come, and items go. `parser_processes` begins it.

feedparser is not made for bodies that mean harm: some take it minutes, or gigabytes. Here this
costs nobody anything: see `bounded_child`.
"""

import sys

import msgspec

from tenure.bounded_child import Answering, answer_within
from tenure.errors import ServiceRefusal
from tenure.services.feeds.parsing import FeedItem, items_in, load_feedparser
from tenure.services.problems import ServiceProblem

CPU_SECONDS = 5
"""How long a body is read, of the processor's time: the largest real feeds take a second."""
MEMORY_BYTES = 512 << 20
"""All that the process may have: a tenth of it is the interpreter and feedparser."""


class ParsedBody(msgspec.Struct):
    """What is in a body: items, or why it was refused."""

    items: list[FeedItem] = []
    refusal: ServiceProblem | None = None


def main(seconds: int = CPU_SECONDS) -> None:
    """Read bodies until there are no more."""
    answer_within(_loaded, seconds, MEMORY_BYTES)


def _loaded() -> Answering:
    load_feedparser()
    return lambda body: msgspec.msgpack.encode(_parsed(body))


def _parsed(body: bytes) -> ParsedBody:
    try:
        return ParsedBody(items_in(body))
    except ServiceRefusal as error:
        return ParsedBody(refusal=ServiceProblem.of(error))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
