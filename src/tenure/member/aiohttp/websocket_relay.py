"""A WebSocket, relayed to the member that owns its key, frame by frame until one side closes.

When the owner closes with 1012 because the key goes elsewhere, or the owner is gone without a word,
the relay closes the client with 1012 too, which asks it to connect again: a WebSocket never
continues silently at another owner.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from aiohttp import ClientError, ClientWebSocketResponse, WSMsgType, WSServerHandshakeError
from aiohttp.client_exceptions import ClientConnectorError

from tenure.base.keys import UserKey
from tenure.client.refusals import HttpAnswer, refusal
from tenure.errors import TenureError
from tenure.member.asgi import (
    MESSAGE_BYTES,
    SERVICE_RESTART,
    Receive,
    Scope,
    Send,
    deny,
    header,
    raw_path,
    text_of,
)
from tenure.member.http_relay import ServeHere
from tenure.member.member import Member
from tenure.routing.router import Router
from tenure.routing.trying import Attempted, InDoubt, Refused, Unsent, Wanted, judge
from tenure.transport.proving import Unproven
from tenure.transport.urls import url_at

HANDSHAKE = b"sec-websocket-"
"""The prefix of headers between the two ends of one connection."""
PROTOCOL = b"sec-websocket-protocol"
OPENING = "GET"
"""The method by which a WebSocket is opened; doing so twice is harmless."""
HEARTBEAT_SECONDS = 20.0
"""Seconds between pings to the owner. A hung owner keeps its connections; if it does not answer for
half of this, which is as long as its own watchdog waits, it is given up.
"""
KINDS = {WSMsgType.TEXT: "text", WSMsgType.BINARY: "bytes"}
"""What is passed on. Everything else that is received ends the connection."""
ABNORMAL = 1006
NO_CODE = 1005
"""Codes that libraries report if the other side sent no code, and that no side may send."""


async def relay_websocket(
    member: Member,
    router: Router,
    scope: Scope,
    receive: Receive,
    send: Send,
    key: UserKey,
    serve_here: ServeHere,
) -> None:
    """Have the owner of `key` serve it, or `serve_here` if this member owns the key by then."""
    try:
        came = await opened(member, router, scope, key)
    except WSServerHandshakeError as error:
        await deny(scope, send, HttpAnswer(error.status, {}, "refused by the owner of the key"))
        return
    except TenureError as error:
        answer = refusal(error)
        if answer is None:
            raise
        await deny(scope, send, answer)
        return
    if came is None:
        await serve_here(receive)
        return
    async with came as socket:
        await receive()  # websocket.connect
        await send({"type": "websocket.accept", "subprotocol": socket.protocol, "headers": []})
        await to_and_fro(socket, receive, send)


async def opened(
    member: Member, router: Router, scope: Scope, key: UserKey
) -> "ClientWebSocketResponse[Any] | None":
    """A WebSocket to the owner; None if this member owns the key by now."""
    wanted = Wanted(key, OPENING, scope["path"], has_idempotency_key=False)

    async def attempt(address: str, _: float) -> "ClientWebSocketResponse[Any] | Attempted | None":
        if member.check(key) is not None:
            return None
        if address == member.owner.address:
            return Refused(None)
        return await opened_at(member, router, scope, wanted, address)

    return await router.ask(wanted, attempt, lambda _: True)


async def opened_at(
    member: Member, router: Router, scope: Scope, wanted: Wanted, address: str
) -> "ClientWebSocketResponse[Any] | Attempted":
    """Try once to open it."""
    protocols = (header(scope["headers"], PROTOCOL) or b"").decode("latin-1").split(",")
    headers = [
        (text_of(name), text_of(value))
        for name, value in member.passed_headers(scope)
        if not name.startswith(HANDSHAKE)
    ]
    origin = router.origin(address)
    limit = router.limit_of(wanted, address, None)
    try:
        with limit:
            url = url_at(origin, raw_path(scope), scope["query_string"].decode("latin-1"))
            proof = await member.forwarding.proof(address, member.session)
            return await member.session.ws_connect(
                url,
                ssl=member.credentials.to(f"{origin.scheme}://{origin.authority}") or True,
                headers=[*headers, *proof.items()],
                protocols=[each.strip() for each in protocols if each.strip()],
                max_msg_size=MESSAGE_BYTES,
                compress=0,
                heartbeat=HEARTBEAT_SECONDS,
            )
    except WSServerHandshakeError as error:
        said: Mapping[str, str] = error.headers or {}
        came = judge(error.status, said.get)
        if came is None:
            raise
        return came
    except (ClientConnectorError, Unproven) as error:
        return Unsent(str(error))
    except (ClientError, OSError) as error:
        return limit.ended_it() or InDoubt(f"the connection broke: {error!r}")


async def to_and_fro(socket: "ClientWebSocketResponse[Any]", receive: Receive, send: Send) -> None:
    """Pass frames on until one side closes."""
    there = asyncio.ensure_future(_to_owner(socket, receive))
    try:
        while (kind := KINDS.get((message := await socket.receive()).type)) is not None:
            await send({"type": "websocket.send", kind: message.data})
        if not there.done():
            code = socket.close_code
            told = SERVICE_RESTART if code in (None, ABNORMAL) else code
            told = 1000 if told == NO_CODE else told
            await send({"type": "websocket.close", "code": told, "reason": ""})
    finally:
        there.cancel()
        await asyncio.wait({there})


async def _to_owner(socket: "ClientWebSocketResponse[Any]", receive: Receive) -> None:
    while (message := await receive())["type"] == "websocket.receive":
        text = message.get("text")
        try:
            if text is not None:
                await socket.send_str(text)
            else:
                await socket.send_bytes(message["bytes"])
        except (ClientError, ConnectionError):
            return  # the loop that reads learns the reason, and tells the client
    code = message.get("code") or 1000
    await socket.close(code=1000 if code in (NO_CODE, ABNORMAL) else code)
