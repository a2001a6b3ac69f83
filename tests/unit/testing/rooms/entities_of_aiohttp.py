"""A chat room as an entity, for aiohttp."""

from aiohttp import web

from tenure import Entities
from tests.unit.testing.rooms.entities import Room

rooms = Entities(Room, pool="rooms")
routes = web.RouteTableDef()


@routes.get("/rooms/{room}")
async def either(request: web.Request) -> web.StreamResponse:
    room = rooms[request.match_info["room"]]
    if request.headers.get("Upgrade") == "websocket":
        answer: web.StreamResponse = await room.attach(request, attachment=request.query["name"])
        return answer
    return web.json_response(await room.said())


app = web.Application()
app.cleanup_ctx.append(rooms.cleanup_ctx)
app.add_routes(routes)
