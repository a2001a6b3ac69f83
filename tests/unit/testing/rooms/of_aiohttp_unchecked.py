"""Broken: a room for aiohttp that answers for whatever it is asked, and holds nothing of it."""

from aiohttp import web

from tenure import Member

member = Member("rooms")
kept: dict[str, list[str]] = {}


async def said(request: web.Request) -> web.Response:
    return web.json_response(kept.get(request.match_info["room"], []))


app = web.Application()
app.cleanup_ctx.append(member.cleanup_ctx)
app.router.add_get("/rooms/{room}", said)
