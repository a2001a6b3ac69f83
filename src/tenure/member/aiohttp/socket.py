"""A WebSocket of aiohttp's servers, with the messages of ASGI."""

from typing import Any, TypeAlias

from aiohttp import WSMsgType, web

from tenure.member.asgi import Message

AnySocket: TypeAlias = "web.WebSocketResponse[Any]"


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
        self.response: AnySocket = web.WebSocketResponse()

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
