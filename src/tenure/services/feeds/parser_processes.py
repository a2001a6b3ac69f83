"""Feeds are read in processes of their own, so that no body holds up a process that has leases.

A body that takes too long, or too much memory, costs its parser and nothing else: it is refused,
and another parser takes the place of that one.
"""

import asyncio
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Iterable
from importlib.util import find_spec

import msgspec

from tenure.bounded_child import HEAD_BYTES, READY, command, environment, framed
from tenure.errors import ConfigurationError, ServiceRefusal
from tenure.services.feeds.parser_child import CPU_SECONDS, ParsedBody
from tenure.services.feeds.parsing import FeedItem
from tenure.services.limits import OVERLOADED, TOO_LARGE, ServiceLimit

PARSERS = 2
"""How many bodies are read at a time: while one that means harm is read, others are, too."""
READ_SECONDS = 30.0
"""How long reading a body may take by the clock, on a machine that is busy with other things."""
WAIT_SECONDS = 20.0
"""How long a body waits until a parser is free."""
BEGIN_SECONDS = 30.0
"""How long a parser may take to begin, on such a machine."""
ANSWER_BYTES = 64 << 20
"""More than the items of a body have: a thousand, of some 6,000 characters."""
READING = ServiceLimit(
    "reading_seconds", CPU_SECONDS, TOO_LARGE, "of the processor's time; real feeds take less"
)


class ParserProcesses:
    """Reads bodies, some at a time."""

    def __init__(self, cpu_seconds: int = CPU_SECONDS) -> None:
        if find_spec("feedparser") is None:
            raise ConfigurationError(
                "feeds are read by feedparser, which is not installed: pip install 'tenure[feeds]'"
            )
        self._cpu_seconds = cpu_seconds
        self._free = asyncio.Semaphore(PARSERS)
        self._idle: list[Process] = []

    async def items_in(self, body: bytes) -> list[FeedItem]:
        """The items of a feed. Raises ServiceRefusal if the body is not a feed, or is malicious."""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._free.acquire()
        except TimeoutError:
            why = "other bodies are being read: send it again"
            raise ServiceRefusal(OVERLOADED, "busy", why) from None
        try:
            answer = await self._read(body)
        finally:
            self._free.release()
        if answer.refusal is not None:
            raise answer.refusal.raised()
        return answer.items

    async def close(self) -> None:
        """End all parsers."""
        await _end(self._idle)
        self._idle = []

    async def _read(self, body: bytes) -> ParsedBody:
        parser = await self._parser()
        try:
            async with asyncio.timeout(READ_SECONDS):
                answer = await _exchange(parser, body)
        except (TimeoutError, EOFError, OSError):
            await _end([parser])
            why = f"the feed takes more than {self._cpu_seconds} s or too much memory to be read"
            raise ServiceRefusal(
                READING.status, "limit", why, limit=READING.name, most=READING.most
            ) from None
        except BaseException:  # whoever waited has gone
            await _end([parser])
            raise
        self._idle.append(parser)
        return answer

    async def _parser(self) -> Process:
        while self._idle:
            parser = self._idle.pop()
            if parser.returncode is None:
                return parser
        parser = await asyncio.create_subprocess_exec(
            *command("tenure.services.feeds.parser_child", str(self._cpu_seconds)),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env=environment(),
        )
        assert parser.stdout is not None
        try:
            async with asyncio.timeout(BEGIN_SECONDS):
                await parser.stdout.readexactly(len(READY))
        except (TimeoutError, EOFError):
            await _end([parser])
            why = "no process that reads feeds can be begun here: send it again"
            raise ServiceRefusal(OVERLOADED, "busy", why) from None
        except BaseException:
            await _end([parser])
            raise
        return parser


async def _exchange(parser: Process, body: bytes) -> ParsedBody:
    assert parser.stdin is not None
    assert parser.stdout is not None
    parser.stdin.write(framed(body))
    await parser.stdin.drain()
    length = int.from_bytes(await parser.stdout.readexactly(HEAD_BYTES))
    if length > ANSWER_BYTES:
        raise EOFError("what it answers is no answer of ours")
    try:
        return msgspec.msgpack.decode(await parser.stdout.readexactly(length), type=ParsedBody)
    except msgspec.DecodeError as error:
        raise EOFError("what it answers is no answer of ours") from error


async def _end(parsers: Iterable[Process]) -> None:
    """End these processes, whatever they do, and wait until they are gone."""
    for each in parsers:
        if each.returncode is None:
            each.kill()
    for each in parsers:
        await asyncio.shield(each.wait())
