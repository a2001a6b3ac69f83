"""A member of the pool of logs, which answers clients line by line: an owner, or a reader.

Its port is in the file that it is told of, once it answers.
"""

import asyncio
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import msgspec

from lab.histories.entities.log_entity import LogAnswer, LogAsked, logs
from lab.histories.program import arguments
from tenure import TenureError, refusal

LINE_BYTES = 1 << 22


class Member:
    """Answers clients."""

    def __init__(self, entities: Any, hits: Callable[[], int]) -> None:  # both forms
        self._entities = entities
        self._hits = hits
        self._decoder = msgspec.json.Decoder(LogAsked)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one client until it leaves."""
        with suppress(ConnectionError):
            while line := await reader.readline():
                answer = await self._answer(self._decoder.decode(line))
                writer.write(msgspec.json.encode(answer) + b"\n")
                await writer.drain()
        writer.close()

    async def _answer(self, asked: LogAsked) -> LogAnswer:
        before = self._hits()
        try:
            return await self._asked(asked, before)
        except TenureError as error:
            told = refusal(error)
            is_begun = told is None or told.headers.get("Tenure-Outcome") != "not-begun"
            said = f"{type(error).__name__}: {error}"
            return LogAnswer("unknown" if is_begun else "not written", error=said)

    async def _asked(self, asked: LogAsked, before: int) -> LogAnswer:
        log = self._entities[asked.key]
        if asked.what == "add":
            return LogAnswer("written", await log.add(asked.text))
        if asked.what == "whole":
            texts = await log.whole()
            return LogAnswer("written", len(texts), tuple(texts))
        found = await log.look()
        # Others may have read a copy meanwhile: that is a figure, and nothing that is judged.
        return LogAnswer("written", found.count, tuple(found.last), self._hits() > before)


async def main(said: dict[str, Any]) -> None:
    """Be a member until a signal ends it."""
    is_over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, is_over.set)
    async with AsyncExitStack() as stack:
        entered: Any = await stack.enter_async_context(
            logs().readers() if said["only_reads"] else logs()
        )
        # How many readings found a copy is known to nobody outside.
        place = entered._place if said["only_reads"] else entered.station  # noqa: SLF001
        member = Member(entered, lambda: place.copies.hits)
        server = await asyncio.start_server(member.serve, "127.0.0.1", 0, limit=LINE_BYTES)
        where = Path(said["where"])
        new = where.with_suffix(".new")
        new.write_text(str(server.sockets[0].getsockname()[1]))
        new.replace(where)
        await is_over.wait()
        server.close()


if __name__ == "__main__":
    asyncio.run(main(arguments()))
