"""A chat room for each key, with FastAPI: `tenure run -- uvicorn chat:app --workers 2`.

Whichever worker a client is connected to, it talks to the one room, and stays connected when the
room moves to another worker.
"""

from pathlib import Path

import msgspec
from fastapi import FastAPI, WebSocket
from fastapi.responses import FileResponse

from tenure import Entities, Entity, Socket, reading


class Lines(msgspec.Struct):
    last: list[str] = []


class Room(Entity[Lines]):
    async def on_connect(self, socket: Socket[str]) -> None:
        for line in self.state.last:
            socket.send(line)

    async def on_message(self, socket: Socket[str], text: str) -> None:
        line = f"{socket.attachment}: {text}"
        self.state.last = [*self.state.last, line][-100:]
        self.broadcast(line)  # goes out when the line is kept, and the room is still ours

    @reading
    async def people(self) -> list[str]:
        return sorted(socket.attachment for socket in self.sockets)


rooms = Entities(Room, pool="rooms", store="sqlite:rooms.db")  # the store survives crashes
app = FastAPI(lifespan=rooms.lifespan)


@app.get("/")
async def page() -> FileResponse:
    return FileResponse(Path(__file__).with_name("chat.html"))


@app.get("/rooms/{room}/people")
async def people(room: str) -> list[str]:
    return await rooms[room].people()  # here, or at its owner


@app.websocket("/rooms/{room}")
async def talk(websocket: WebSocket, room: str, name: str) -> None:
    await rooms[room].attach(websocket, attachment=name)
