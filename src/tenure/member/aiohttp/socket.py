"""A WebSocket of aiohttp's servers, with the messages of ASGI."""

from collections.abc import Callable
from typing import Any, TypeAlias

from aiohttp import WebSocketError, WSMsgType, hdrs, web

from tenure.member.asgi import Message
from tenure.transport.message_watch import MessageWatch
from tenure.transport.unfinished_messages import UnfinishedMessages
from tenure.transport.websocket_frames import FrameError

AnySocket: TypeAlias = "web.WebSocketResponse[Any]"
UNFINISHED = UnfinishedMessages()
"""What all sockets of this process keep that are served here for others."""


class WatchedSocket(web.WebSocketResponse):
    """A WebSocket of which it is counted what the client has sent of messages that are not whole.
    aiohttp keeps up to `max_msg_size` of them for each connection, and does not say how much.
    """

    watch: MessageWatch

    def _post_start(self, request: web.BaseRequest, protocol: str | None, writer: Any) -> None:  # noqa: ANN401
        handler = request.protocol
        token = request.headers.get(hdrs.AUTHORIZATION)
        whose = (str(request.remote), *([token] if token else []))
        self.watch = MessageWatch(UNFINISHED, whose, self._abort_of(request))
        came_before = handler._message_tail  # noqa: SLF001 - what came right behind the handshake
        super()._post_start(request, protocol, writer)
        # Nobody else is given what comes.
        watched = _Watched(handler._payload_parser, self.watch, self._refuse)  # noqa: SLF001
        handler._payload_parser = watched  # noqa: SLF001
        watched.count(came_before)

    def _refuse(self, refused: FrameError) -> None:
        # As aiohttp's own parser says it: whoever receives next closes the socket with the code.
        if self._reader is not None:
            self._reader.set_exception(WebSocketError(refused.code, str(refused)))

    @staticmethod
    def _abort_of(request: web.BaseRequest) -> Any:  # noqa: ANN401 - a function
        def abort() -> None:
            if request.transport is not None:
                request.transport.abort()

        return abort

    async def receive(self, timeout: float | None = None) -> Any:  # noqa: ANN401, ASYNC109  # as it is
        """The next message; the one before was passed on."""
        self.watch.hold(0)
        message = await super().receive(timeout)
        if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
            self.watch.hold(len(message.data))
        return message


class _Watched:
    """The parser of a connection, whose bytes are counted first."""

    def __init__(
        self,
        parser: Any,  # noqa: ANN401 - in C, or not
        watch: MessageWatch,
        refuse: Callable[[FrameError], None],
    ) -> None:
        self._parser = parser
        self._watch = watch
        self._refuse = refuse
        self._is_refused = False

    def count(self, data: bytes) -> None:
        """Refuse the client if it may not send this."""
        try:
            self._watch.feed(data)
        except FrameError as refused:
            self._is_refused = True
            self._refuse(refused)

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        if not self._is_refused:
            self.count(data)
        if self._is_refused:
            return True, b""  # nothing follows
        found: tuple[bool, bytes] = self._parser.feed_data(data)
        return found

    def feed_eof(self) -> None:
        self._watch.end()
        self._parser.feed_eof()


async def receive_frame(socket: AnySocket) -> Message:
    """The next frame that the client sends."""
    message = await socket.receive()
    if message.type is WSMsgType.TEXT:
        return {"type": "websocket.receive", "text": message.data}
    if message.type is WSMsgType.BINARY:
        return {"type": "websocket.receive", "bytes": message.data}
    return {"type": "websocket.disconnect", "code": socket.close_code}


async def send_frame(socket: AnySocket, message: Message) -> None:
    """Send a frame. Raises ConnectionError where the client has gone."""
    text = message.get("text")
    if text is not None:
        await socket.send_str(text)
    else:
        await socket.send_bytes(message["bytes"])


class AiohttpSocket:
    """Accepts the request of a WebSocket; `response` is what its handler returns."""

    def __init__(self, request: web.BaseRequest) -> None:
        self._request = request
        self.response: AnySocket = WatchedSocket()

    async def accept(self) -> None:
        """Shake hands. Raises aiohttp's refusal of a request that does not open a WebSocket."""
        await self.response.prepare(self._request)

    async def receive(self) -> Message:
        """The next frame that the client sends."""
        return await receive_frame(self.response)

    async def send(self, message: Message) -> None:
        """Send a frame. Raises ConnectionError where the client has gone."""
        await send_frame(self.response, message)

    async def close(self, *, code: int) -> None:
        await self.response.close(code=code)
