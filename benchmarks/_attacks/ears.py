"""An ear: a listener of the attacker's, on loopback, to which nobody may be led."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from benchmarks._attacks.attempt import Attempt


@asynccontextmanager
async def ear(it: Attempt) -> AsyncIterator[int]:
    """Its port. The attempt has achieved what it was after when somebody connects."""

    async def on_visit(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        it.reach()
        writer.close()
        await writer.wait_closed()

    listening = await asyncio.start_server(on_visit, "127.0.0.1", 0)
    async with listening:
        yield listening.sockets[0].getsockname()[1]
