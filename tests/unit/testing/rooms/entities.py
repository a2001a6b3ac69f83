"""A chat room as an entity."""

import msgspec
from fastapi import FastAPI, WebSocket

from tenure import Entities, Entity, Socket, reading


class Lines(msgspec.Struct):
    last: list[str] = []


class Room(Entity[Lines]):
    async def on_message(self, socket: Socket[str], text: str) -> None:
        line = f"{socket.attachment}: {text}"
        self.state.last = [*self.state.last, line][-100:]
        self.broadcast(line)

    @reading
    async def said(self) -> list[str]:
        return self.state.last


rooms = Entities(Room, pool="rooms")
app = FastAPI(lifespan=rooms.lifespan)


@app.get("/rooms/{room}")
async def said(room: str) -> list[str]:
    return await rooms[room].said()


@app.websocket("/rooms/{room}")
async def talk(websocket: WebSocket, room: str, name: str) -> None:
    await rooms[room].attach(websocket, attachment=name)
