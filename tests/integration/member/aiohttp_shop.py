"""The same service as `shop`, for aiohttp's servers.

python -m tests.integration.member.aiohttp_shop PORT
"""

import asyncio
import hashlib
import os
import sys
from contextlib import suppress
from typing import Any

from aiohttp import WSMsgType, web

from tenure import AiohttpRelay, KeyedState, LeaseLost, Member, owned

carts: KeyedState[list[str]] = KeyedState(value_type=list[str])
member = Member("carts", hand_off=carts)
routes = web.RouteTableDef()
lease_of = owned("user")


@routes.get("/health")
async def health(request: web.Request) -> web.Response:
    return web.json_response(os.getpid())


@routes.get("/carts/{user}", allow_head=False)
async def read(request: web.Request) -> web.Response:
    await lease_of(request)
    return web.json_response(carts.get(request.match_info["user"], []))


@routes.post("/carts/{user}")
async def add(request: web.Request) -> web.Response:
    lease, user = await lease_of(request), request.match_info["user"]
    article = request.query["article"]
    if article not in carts.get(user, []):
        carts[user] = [*carts.get(user, []), article]
    if not member.owner.holds(lease):
        raise LeaseLost(user)
    return web.json_response(len(carts[user]))


@routes.get("/carts/{user}/pid")
async def pid(request: web.Request) -> web.Response:
    lease = await lease_of(request)
    return web.json_response(os.getpid(), headers={"Lease-Number": str(lease.number)})


@routes.route("*", "/carts/{user}/echo")
async def echo(request: web.Request) -> web.Response:
    body = await request.read()
    return web.json_response(
        {
            "size": len(body),
            "hash": hashlib.sha256(body).hexdigest(),
            "method": request.method,
            "query": request.rel_url.raw_query_string,
            "host": request.headers["host"],
            "client": request.remote,
            "greeting": "hello",
            "ours": [name for name in request.headers if name.lower().startswith("tenure")],
            "cookie": request.headers.get("cookie"),
            "pid": os.getpid(),
        }
    )


@routes.get("/carts/{user}/cookies")
async def cookies(request: web.Request) -> web.Response:
    response = web.Response()
    response.set_cookie("a", "1")
    response.set_cookie("b", "2")
    return response


@routes.get("/carts/{user}/lines")
async def lines(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for i in range(int(request.query["count"])):
        await response.write(f"{i}\n".encode())
        await asyncio.sleep(0.001)
    await response.write_eof()
    return response


streaming = 0


@routes.get("/carts/{user}/streaming")
async def how_many(request: web.Request) -> web.Response:
    return web.json_response(streaming)


@routes.get("/carts/{user}/events")
async def events(request: web.Request) -> web.StreamResponse:
    """Send events without end."""
    global streaming  # noqa: PLW0603  # it is what the test asks for
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    streaming += 1
    try:
        while True:
            await response.write(b"data: tick\n\n")
            await asyncio.sleep(0.01)
    except ConnectionError:
        return response
    finally:
        streaming -= 1


@routes.get("/carts/{user}/breaks")
async def breaks(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    await response.write(b"half")
    await asyncio.sleep(0.05)
    raise RuntimeError("on purpose")


@routes.post("/carts/{user}/lost")
async def lost(request: web.Request) -> web.Response:
    raise LeaseLost(request.match_info["user"])


@routes.get("/carts/{user}/talk")
async def talk(request: web.Request) -> web.StreamResponse:
    offered = request.headers.get("Sec-WebSocket-Protocol", "").split(",")
    socket: web.WebSocketResponse[Any] = web.WebSocketResponse(protocols=offered[:1])
    await socket.prepare(request)
    await socket.send_json(os.getpid())
    with suppress(ConnectionError):
        async for message in socket:
            if message.data == "bye":
                await socket.close(code=4001)
            elif message.type is WSMsgType.TEXT:
                await socket.send_str(message.data)
            else:
                await socket.send_bytes(message.data)
    return socket


@routes.get("/carts/{user}/forbidden")
async def forbidden(request: web.Request) -> web.Response:
    raise web.HTTPForbidden


app = web.Application(
    middlewares=[AiohttpRelay(member=member, key="/carts/{user}", ready="/ready")],
    client_max_size=1 << 24,
)
app.cleanup_ctx.append(member.cleanup_ctx)
app.add_routes(routes)


if __name__ == "__main__":
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None)
