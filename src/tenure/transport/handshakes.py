"""How a server begins a WebSocket: aiohttp reads the request, and then lets go of the connection.

So the request passes all checks of any other request. What aiohttp keeps for the socket after that
is large: the request, the response, a task with its call stack, a parser, a queue, and two timers.
At rest that is nearly all that a connection costs. So the connection is taken from aiohttp after
the handshake.
"""

import asyncio
import base64
import hashlib

from aiohttp import hdrs, web

from tenure.transport.frame_socket import FrameSocket

_KEY_SUFFIX = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class NoHandshake(ValueError):
    """A request that does not begin a WebSocket."""


class _HandedOver(web.StreamResponse):
    """The response that aiohttp gets, after which it leaves the connection alone."""

    async def prepare(self, request: web.BaseRequest) -> None:
        """Do nothing: the request was answered already."""

    async def write_eof(self, data: bytes = b"") -> None:
        """Do nothing: the connection continues."""


class _Rest:
    """Takes the bytes that come after the request."""

    def __init__(self, socket: FrameSocket) -> None:
        self._socket = socket

    def feed_data(self, data: bytes) -> None:
        """See aiohttp's `WebSocketReader`."""
        self._socket.data_received(data)

    def feed_eof(self) -> None:
        """See aiohttp's `WebSocketReader`."""


def answer_handshake(request: web.Request, *protocols: str) -> asyncio.Transport:
    """Agree to a WebSocket that speaks the first of these protocols that the client offers.

    Raises NoHandshake if the request does not begin a WebSocket, and ConnectionError if the client
    has gone.
    """
    said = request.headers.get(hdrs.SEC_WEBSOCKET_PROTOCOL, "")
    offered = [each.strip() for each in said.split(",")]
    try:
        # As if all were ours: aiohttp logs those that are not, as many and as long as they are.
        begins = web.WebSocketResponse(protocols=offered).can_prepare(request)
    except ValueError as error:  # a key that is not in ASCII
        raise NoHandshake(str(error)) from error
    # aiohttp gives a HEAD to the handler of a GET, and no answer to one has anything after its head
    if not begins or request.can_read_body or request.method != hdrs.METH_GET:
        raise NoHandshake("the headers do not begin a WebSocket")
    transport = request.transport
    if transport is None or transport.is_closing():
        raise ConnectionError("the client has gone")
    key = request.headers[hdrs.SEC_WEBSOCKET_KEY].encode()
    accepted = base64.b64encode(hashlib.sha1(key + _KEY_SUFFIX, usedforsecurity=False).digest())
    found = next((each for each in offered if each in protocols), "")
    chosen = f"Sec-WebSocket-Protocol: {found}\r\n" if found else ""
    head = (
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
        f"Sec-WebSocket-Accept: {accepted.decode()}\r\n{chosen}\r\n"
    )
    try:
        transport.write(head.encode())
    except RuntimeError as error:  # uvloop: the handle is closed, and `is_closing` does not say so
        request.protocol.force_close()  # otherwise aiohttp writes to it, too, and logs two stacks
        raise ConnectionError("the client has gone") from error
    return transport


def hand_over(request: web.Request, socket: FrameSocket) -> web.StreamResponse:
    """Let `socket` read everything that arrives on the request's connection from now on. The
    request's handler must return what this returns.

    aiohttp has no way to let go of a connection. What it does when it loses one is what we want,
    except that it closes the connection.
    """
    handler = request.protocol
    socket.transport.set_protocol(socket)
    handler.transport = None
    socket.transport.resume_reading()  # if more came after the request than aiohttp keeps
    handler.set_parser(_Rest(socket))  # type: ignore[arg-type]
    handler.connection_lost(None)
    return _HandedOver()
