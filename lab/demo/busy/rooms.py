"""The rooms that the busy pool serves: those of the guides, with names and labels by hand.

Every worker is a process of its own, which takes connections from a socket that all of them share:
so each can be killed, and replaced by one of another version, as in a deploy.
"""

import os

import msgspec
from fastapi import FastAPI, WebSocket

from tenure import Entities, Entity, Socket

POOL = "rooms"
NAME, VERSION, ZONE = "BUSY_NAME", "BUSY_VERSION", "BUSY_ZONE"
KEPT_LINES = 20


class RoomLines(msgspec.Struct):
    """All that a room keeps."""

    last: list[str] = []


class BusyRoom(Entity[RoomLines]):
    """One room."""

    async def on_connect(self, socket: Socket[str]) -> None:
        for line in self.state.last:
            socket.send(line)

    async def on_message(self, socket: Socket[str], text: str) -> None:
        line = f"{socket.attachment}: {text}"
        self.state.last = [*self.state.last, line][-KEPT_LINES:]
        self.broadcast(line)


rooms = Entities(
    BusyRoom,
    pool=POOL,
    store="columns:",
    name=os.environ[NAME],
    labels={"version": os.environ[VERSION], "zone": os.environ[ZONE]},
)
app = FastAPI(lifespan=rooms.lifespan)


@app.websocket("/rooms/{room}")
async def talk(websocket: WebSocket, room: str, name: str) -> None:
    """Take a visitor into a room."""
    await rooms[room].attach(websocket, attachment=name)
