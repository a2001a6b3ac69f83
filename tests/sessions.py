"""HTTP sessions of tests, and the proof that nobody leaves an open connection behind.

aiohttp's session closes the transports of its WebSockets, not the connections themselves. Those are
released when the response is collected, unless something ties both into a cycle, as a kept
traceback does: then the collector may come to the connection first, in some later test, which fails
of a ResourceWarning that it has nothing to do with.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp.connector import Connection


@asynccontextmanager
async def client_session(base_url: str | None = None) -> AsyncIterator[aiohttp.ClientSession]:
    """A session that ends its WebSockets, too, without a word to the other end."""
    opened: list[Any] = []

    class Remembered(aiohttp.ClientWebSocketResponse):
        def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401
            super().__init__(*args, **options)
            opened.append(self)

    async with aiohttp.ClientSession(base_url, ws_response_class=Remembered) as session:
        try:
            yield session
        finally:
            for socket in opened:
                socket._response.close()


class OpenConnections:
    """Connections of clients, from one test to the next."""

    def __init__(self) -> None:
        self._made: list[Any] = []

    def watch(self) -> None:
        """Remember all that are made from here on."""
        made, make = self._made, Connection.__init__

        def remember(connection: Connection, *args: Any) -> None:  # noqa: ANN401
            make(connection, *args)
            made.append(connection)

        Connection.__init__ = remember  # type: ignore[method-assign, assignment]

    def left(self) -> list[str]:
        """Return those that nobody has closed although their event loop has ended, and
        close them.
        """
        open_ = [each for each in self._made if each._protocol is not None]
        left = [each for each in open_ if each._loop.is_closed()]
        self._made[:] = [each for each in open_ if not each._loop.is_closed()]
        said = list(map(repr, left))
        for each in left:
            each._protocol = None  # its transport went with the loop; the collector says nothing
        return said
