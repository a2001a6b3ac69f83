"""A dialled socket: aiohttp connects, and then lets go of the connection (see `handshakes`).

Otherwise each message would pass through a task, a queue and several coroutines.
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from aiohttp import ClientWebSocketResponse

from tenure.runtime.read_size import read_small_blocks
from tenure.transport.frame_socket import FrameSocket

S = TypeVar("S", bound=FrameSocket)


class DialledSocket(ClientWebSocketResponse):
    """A WebSocket that aiohttp has opened, until it is taken over: sessions take its class."""

    def __init__(self, *args: Any, **named: Any) -> None:  # noqa: ANN401  # those of aiohttp
        super().__init__(*args, **named)
        assert self._response.connection is not None
        handler = self._response.connection.protocol
        assert handler is not None
        # aiohttp would read what came right behind the handshake as soon as this returns.
        self._came_before, handler._tail = handler._tail, b""  # noqa: SLF001 - it tells nobody

    def take_over(self, make: Callable[[asyncio.Transport], S]) -> S:
        """Let what `make` makes read everything that arrives from now on."""
        connection = self._response.connection
        assert connection is not None
        handler, transport = connection.protocol, connection.transport
        assert handler is not None
        if transport is None or transport.is_closing():
            raise ConnectionError("the server has gone")
        socket = make(transport)
        read_small_blocks(transport)
        transport.set_protocol(socket)
        handler.transport = None
        self._response.close()  # without its transport, the handler closes nothing
        transport.resume_reading()  # if more came than aiohttp keeps
        if self._came_before:
            socket.data_received(self._came_before)  # which may pause it again
        return socket
