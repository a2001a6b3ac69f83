"""A connection to Redis, by hand: it writes each command unchanged, and reads the answers in
order.
"""

import asyncio
from collections import deque
from typing import Any


class RedisConnection:
    """One of them; say `HELLO 3` first."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._asked: deque[tuple[asyncio.Future[Any], tuple[bytes, ...]]] = deque()
        self.listening = asyncio.create_task(self._listen())
        """Ends when Redis has closed the connection."""

    def ask(self, *words: bytes) -> "asyncio.Future[Any]":
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asked.append((answer, words))
        lengths = b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
        self._writer.write(b"*%d\r\n%s" % (len(words), lengths))
        return answer

    def on_push(self, found: Any) -> None:  # noqa: ANN401  # whatever Redis says
        """Redis says something that it was not asked."""

    def on_answer(self, words: tuple[bytes, ...], found: Any) -> None:  # noqa: ANN401
        """A command is answered."""

    async def _listen(self) -> None:
        while True:
            is_push, found = await self._read()
            if is_push:
                self.on_push(found)
                continue
            answer, words = self._asked.popleft()
            self.on_answer(words, found)
            if not answer.done():
                answer.set_result(found)

    async def _read(self) -> tuple[bool, Any]:
        head = (await self._reader.readuntil(b"\r\n"))[:-2]
        kind, rest = head[:1], head[1:]
        match kind:
            case b"$":
                return False, (await self._reader.readexactly(int(rest) + 2))[:-2]
            case b"*" | b">" | b"%":
                count = int(rest) * (2 if kind == b"%" else 1)
                return kind == b">", [(await self._read())[1] for _ in range(count)]
            case b"_":
                return False, None
            case b"-":
                raise RuntimeError(rest.decode())
            case _:
                return False, rest

    def close(self) -> None:
        self.listening.cancel()
        self._writer.close()
