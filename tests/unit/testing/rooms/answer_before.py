"""Broken: what was said goes out before it is kept."""

import asyncio

from fastapi import FastAPI, WebSocket

from tenure import Member, OwnedState, Relay

lines: OwnedState[list[str]] = OwnedState(value_type=list[str])
member = Member("rooms", hand_off=lines)
app = FastAPI(lifespan=member.lifespan)
app.add_middleware(Relay, member=member, key="/rooms/{room}")
rooms: dict[str, list[WebSocket]] = {}


@app.get("/rooms/{room}")
async def said(room: str) -> list[str]:
    async with lines.at(room) as it:
        return it.value or []


@app.websocket("/rooms/{room}")
async def talk(websocket: WebSocket, room: str, name: str) -> None:
    await websocket.accept()
    there = rooms.setdefault(room, [])
    there.append(websocket)
    try:
        async for text in websocket.iter_text():
            line = f"{name}: {text}"
            async with lines.at(room) as it:
                it.value = [*(it.value or []), line][-100:]
                for each in list(there):
                    await each.send_text(line)
                await asyncio.sleep(0.05)  # tells a search engine
    finally:
        there.remove(websocket)
