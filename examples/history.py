"""A chat room that keeps everything that was said, and who its members are, in collections.

`tenure run -- uvicorn history:app --workers 2`.
"""

from datetime import datetime

import msgspec
from fastapi import FastAPI, HTTPException

from tenure import Entities, Entity, Mapping, Series, UsageError, reading


class Message(msgspec.Struct):
    who: str
    text: str


class Part(msgspec.Struct):
    messages: list[Message]
    older: str | None


class Counts(msgspec.Struct):
    said: int = 0


class Room(Entity[Counts]):
    history = Series(Message)  # in the order in which they came
    members = Mapping(str, datetime)  # by name

    async def say(self, who: str, text: str) -> int:
        self.state.said += 1
        number = self.history.add(Message(who, text))  # in the same commit as the state
        if await self.members.get(who) is None:
            self.members.put(who, datetime.fromtimestamp(self.now()).astimezone())
        return number

    @reading
    async def read(self, older: str | None) -> Part:
        page = await self.history.page(20, newest=older is None, next=older)
        return Part(page, page.next)

    @reading
    async def people(self, after: str | None) -> list[str]:
        return list(await self.members.page(100, after=after))


rooms = Entities(Room, pool="rooms", store="sqlite:rooms.db")
app = FastAPI(lifespan=rooms.lifespan)


@app.post("/rooms/{room}")
async def say(room: str, who: str, text: str) -> int:
    return await rooms[room].say(who, text)


@app.get("/rooms/{room}")
async def read(room: str, older: str | None = None) -> object:
    try:
        return msgspec.to_builtins(await rooms[room].read(older))
    except UsageError as error:  # `older` is not what a page has given
        raise HTTPException(400, str(error)) from error


@app.get("/rooms/{room}/people")
async def people(room: str, after: str | None = None) -> list[str]:
    return await rooms[room].people(after)
