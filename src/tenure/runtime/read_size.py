"""How much of a socket is read at once.

asyncio asks for 256 KiB each time. The C library maps a block of that size, and gives it back, for
each message that comes, which costs more than a small message does otherwise. Where less is asked
for, the block is found in memory that the process has already. uvloop has a buffer of its own, and
so has TLS. See docs/decisions/0033-smaller-reads.md.
"""

import asyncio
from typing import Any

from aiohttp import ClientResponse, ClientWebSocketResponse
from aiohttp.connector import Connection

READ_BYTES = 120 * 1024
"""As much as may be: large answers come in fewer reads. glibc and musl map blocks of 128 KiB."""


def read_small_blocks(transport: asyncio.BaseTransport | None) -> None:
    """Have a connection read at most READ_BYTES at once."""
    if transport is not None and hasattr(transport, "max_size"):
        transport.max_size = READ_BYTES


class SmallBlocksResponse(ClientResponse):
    """An answer that is read in small blocks: aiohttp's sessions take its class."""

    async def start(self, connection: Connection) -> ClientResponse:
        """Read the answer from its connection, which later answers may use, too."""
        read_small_blocks(connection.transport)
        return await super().start(connection)


class SmallBlocksSocket(ClientWebSocketResponse):
    """A client's WebSocket that reads small blocks: aiohttp's sessions take its class."""

    def __init__(self, *args: Any, **named: Any) -> None:  # noqa: ANN401  # those of aiohttp
        super().__init__(*args, **named)
        for each in (*args, *named.values()):  # among them the answer, whose connection this is
            if isinstance(each, ClientResponse) and each.connection is not None:
                read_small_blocks(each.connection.transport)
