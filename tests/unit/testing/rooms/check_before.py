"""Broken: it checks whether it owns the room before it begins, but not when it is done."""

import asyncio

from fastapi import FastAPI, WebSocket

from tenure import Member, NotOwner, Relay

member = Member("rooms")
app = FastAPI(lifespan=member.lifespan)
app.add_middleware(Relay, member=member, key="/rooms/{room}")
kept: dict[str, list[str]] = {}
rooms: dict[str, list[WebSocket]] = {}


@app.get("/rooms/{room}")
async def said(room: str) -> list[str]:
    if member.check(room) is None:
        raise NotOwner(room)
    await asyncio.sleep(0.05)  # asks a database
    return kept.get(room, [])


@app.websocket("/rooms/{room}")
async def talk(websocket: WebSocket, room: str, name: str) -> None:
    await websocket.accept()
    there = rooms.setdefault(room, [])
    there.append(websocket)
    try:
        async for text in websocket.iter_text():
            if member.check(room) is None:
                return
            await asyncio.sleep(0.05)
            line = f"{name}: {text}"
            kept[room] = [*kept.get(room, []), line][-100:]
            for each in list(there):
                await each.send_text(line)
    finally:
        there.remove(websocket)
