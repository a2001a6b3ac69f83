"""The chat room of `chat.py`, for aiohttp."""

from typing import Any

from aiohttp import WSMsgType, web

from tenure import AiohttpRelay, Member, OwnedState

lines: OwnedState[list[str]] = OwnedState(value_type=list[str])
member = Member("rooms", hand_off=lines)
routes = web.RouteTableDef()
rooms: dict[str, list[web.WebSocketResponse[Any]]] = {}


@routes.get("/rooms/{room}")
async def either(request: web.Request) -> web.StreamResponse:
    if request.headers.get("Upgrade") == "websocket":
        return await talk(request, request.match_info["room"], request.query["name"])
    async with lines.at(request.match_info["room"]) as it:
        return web.json_response(it.value or [])


@routes.post("/rooms/{room}")
async def echo(request: web.Request) -> web.StreamResponse:
    """Answer what was sent, in two parts."""
    sent = await request.read()
    answer = web.StreamResponse(headers={"X-Length": str(len(sent))})
    await answer.prepare(request)
    await answer.write(sent[:3])
    await answer.write_eof(sent[3:])
    return answer


async def talk(request: web.Request, room: str, name: str) -> web.StreamResponse:
    websocket: web.WebSocketResponse[Any] = web.WebSocketResponse(heartbeat=20)
    await websocket.prepare(request)
    there = rooms.setdefault(room, [])
    there.append(websocket)
    try:
        async for message in websocket:
            if message.type is not WSMsgType.TEXT:
                continue
            line = f"{name}: {message.data}"
            async with lines.at(room) as it:
                it.value = [*(it.value or []), line][-100:]
            for each in list(there):
                await each.send_str(line)
    finally:
        there.remove(websocket)
    return websocket


app = web.Application(middlewares=[AiohttpRelay(member=member, key="/rooms/{room}")])
app.cleanup_ctx.append(member.cleanup_ctx)
app.add_routes(routes)
