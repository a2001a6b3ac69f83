"""Broken: it looks as it should, but what was said stays in a global when the room moves."""

from fastapi import FastAPI, WebSocket

from tenure import Member, Relay

member = Member("rooms")
app = FastAPI(lifespan=member.lifespan)
app.add_middleware(Relay, member=member, key="/rooms/{room}")
kept: dict[str, list[str]] = {}
rooms: dict[str, list[WebSocket]] = {}


@app.get("/rooms/{room}")
async def said(room: str) -> list[str]:
    async with member.owner.guard(room):
        return kept.get(room, [])


@app.websocket("/rooms/{room}")
async def talk(websocket: WebSocket, room: str, name: str) -> None:
    await websocket.accept()
    there = rooms.setdefault(room, [])
    there.append(websocket)
    try:
        async for text in websocket.iter_text():
            line = f"{name}: {text}"
            async with member.owner.guard(room):
                kept[room] = [*kept.get(room, []), line][-100:]
            for each in list(there):
                await each.send_text(line)
    finally:
        there.remove(websocket)
