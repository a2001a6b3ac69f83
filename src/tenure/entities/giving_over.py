"""Giving a WebSocket over to the gateway that has sent its handshake on, with each framework."""

from collections.abc import Sequence
from typing import Any

from tenure.entities.edge import checked_attachment
from tenure.entities.socket_offer import OFFER, TAKE, SocketOffer, TakenSocket

EXTENSION = "websocket.http.response"
"""Where a server does not know how to answer a handshake, the socket stays in this process."""


def offers_of(websocket: Any) -> Sequence[str]:  # noqa: ANN401  # of Starlette, or a web.Request
    """The offers of gateways in a handshake, if it can be answered."""
    headers = getattr(websocket, "headers", None)
    if headers is None:
        return ()
    scope = getattr(websocket, "scope", None)
    if scope is None:  # of aiohttp
        return headers.getall(OFFER, ())  # type: ignore[no-any-return]
    if EXTENSION not in (scope.get("extensions") or {}):
        return ()
    return headers.getlist(OFFER)  # type: ignore[no-any-return]


async def give(websocket: Any, made: SocketOffer, socket: TakenSocket) -> Any:  # noqa: ANN401
    """Answer the offer in a handshake; returns what a handler of aiohttp returns."""
    checked_attachment(socket.attachment)
    header = made.answer(socket)
    if getattr(websocket, "scope", None) is None:
        from aiohttp import web  # noqa: PLC0415  # loads a server

        return web.Response(headers={TAKE: header})
    headers = [(TAKE.encode(), header.encode()), (b"content-length", b"0")]
    await websocket.send({"type": f"{EXTENSION}.start", "status": 200, "headers": headers})
    await websocket.send({"type": f"{EXTENSION}.body", "body": b""})
    return None
