"""A WebSocket of aiohttp's servers, with what an edge uses of Starlette's."""

from typing import Any

from aiohttp import WSMsgType, web


class AiohttpSocket:
    """Accepts the request of a WebSocket; `response` is what its handler returns."""

    def __init__(self, request: web.BaseRequest) -> None:
        self._request = request
        self.response: web.WebSocketResponse[Any] = web.WebSocketResponse()

    async def accept(self) -> None:
        """Shake hands. Raises what aiohttp answers a request that opens no WebSocket with."""
        await self.response.prepare(self._request)

    async def receive(self) -> dict[str, Any]:
        """What the client sends."""
        message = await self.response.receive()
        if message.type is WSMsgType.TEXT:
            return {"type": "websocket.receive", "text": message.data}
        if message.type is WSMsgType.BINARY:
            return {"type": "websocket.receive", "bytes": message.data}
        return {"type": "websocket.disconnect", "code": self.response.close_code}

    async def send(self, message: dict[str, Any]) -> None:
        """Send a frame. Raises ConnectionError where the client has gone."""
        text = message.get("text")
        if text is not None:
            await self.response.send_str(text)
        else:
            await self.response.send_bytes(message["bytes"])

    async def close(self, *, code: int) -> None:
        """Close it."""
        await self.response.close(code=code)
