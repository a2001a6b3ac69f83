"""Broken: every process keeps its own rooms, whichever process owns them."""

from fastapi import FastAPI, WebSocket

from tenure import Member

member = Member("rooms")
app = FastAPI(lifespan=member.lifespan)
kept: dict[str, list[str]] = {}
rooms: dict[str, list[WebSocket]] = {}


@app.get("/rooms/{room}")
async def said(room: str) -> list[str]:
    return kept.get(room, [])


@app.websocket("/rooms/{room}")
async def talk(websocket: WebSocket, room: str, name: str) -> None:
    await websocket.accept()
    there = rooms.setdefault(room, [])
    there.append(websocket)
    try:
        async for text in websocket.iter_text():
            line = f"{name}: {text}"
            kept[room] = [*kept.get(room, []), line][-100:]
            for each in list(there):
                await each.send_text(line)
    finally:
        there.remove(websocket)
