"""Rooms of a chat, as users write them, and a WebSocket of the application's own."""

import os

import msgspec
from fastapi import FastAPI, WebSocket

from tenure import Entities, Entity, Socket


class Lines(msgspec.Struct):
    count: int = 0


class Room(Entity[Lines]):
    async def on_message(self, socket: Socket[str], text: str) -> None:
        self.state.count += 1
        self.broadcast(f"{self.state.count} {socket.attachment}: {text}")

    async def pid(self) -> int:
        return os.getpid()


rooms = Entities(Room, pool="rooms")
app = FastAPI(lifespan=rooms.lifespan)


@app.websocket("/rooms/{room}/{name}")
async def enter(websocket: WebSocket, room: str, name: str) -> None:
    if name == "mallory":
        await websocket.close(1008)
    else:
        await rooms[room].attach(websocket, attachment=name)


@app.websocket("/echo")
async def echo(websocket: WebSocket) -> None:
    await websocket.accept("chat")
    async for text in websocket.iter_text():
        await websocket.send_text(text)
        if text == "bye":
            await websocket.close(4000)
            return


@app.get("/rooms/{room}/pid")
async def pid(room: str) -> int:
    return await rooms[room].pid()
