"""Another handle of a connection: it stays open when its event loop closes the first."""

import asyncio
import os
import socket as sockets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol


class HasHandle(Protocol):
    """A socket, or what an event loop shows of one."""

    def fileno(self) -> int:
        """The number of its handle."""
        ...


def another_handle(known: HasHandle | None) -> sockets.socket | None:
    """Duplicate the connection's handle: no event loop takes the duplicate away, and uvloop's own
    handle shuts nothing down. None if the connection has ended already.
    """
    try:
        return None if known is None else sockets.socket(fileno=os.dup(known.fileno()))
    except OSError:
        return None


async def handle_when_written(
    transport: asyncio.Transport, drained: Callable[[], Awaitable[object]], seconds: float
) -> sockets.socket | None:
    """Another handle, once the kernel has all that was written to the first; None if the other end
    does not read that in time, or the connection has ended. `drained` waits until the protocol may
    write.
    """
    transport.set_write_buffer_limits(0)
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await drained()
    transport.set_write_buffer_limits()
    if transport.get_write_buffer_size() or transport.is_closing():
        return None
    return another_handle(transport.get_extra_info("socket"))
