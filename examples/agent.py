"""An agent's session: one run at a time, which anybody may watch, and stop.

`tenure run -- uvicorn agent:app --workers 2`. What the user says is kept before the model is asked,
because that costs money; a session whose worker dies goes on at another one.
"""

import asyncio
from collections.abc import AsyncIterator

import msgspec
from fastapi import FastAPI, WebSocket

from tenure import Entities, Entity, Socket, reading


async def answer(messages: list[dict[str, str]]) -> AsyncIterator[str]:
    """Stands for a model: it repeats what it was told."""
    for word in messages[-1]["text"].split():
        await asyncio.sleep(0.01)
        yield f"{word} "


class Talk(msgspec.Struct):
    messages: list[dict[str, str]] = []


class Session(Entity[Talk]):
    async def on_activate(self) -> None:
        self.stopped = asyncio.Event()

    async def on_message(self, socket: Socket[None], text: str) -> None:
        await self.say(text)

    async def say(self, text: str) -> str:  # a second one waits: no two runs in one session
        self.stopped.clear()
        if not self.is_repeat:  # otherwise it was cut after the commit, and is sent again
            self.state.messages.append({"role": "user", "text": text})
            await self.commit()  # durable before it costs money
        words = []
        async for word in answer(self.state.messages):
            if self.stopped.is_set():
                break
            words.append(word)
            self.broadcast(word, early=True)  # may be seen and then not kept
        self.state.messages.append({"role": "assistant", "text": "".join(words)})
        return "".join(words)

    @reading
    async def stop(self) -> None:  # comes in beside the run
        self.stopped.set()

    @reading
    async def messages(self) -> list[dict[str, str]]:
        return self.state.messages


sessions = Entities(Session, pool="sessions", store="sqlite:sessions.db", turn=300, settle=60)
app = FastAPI(lifespan=sessions.lifespan)


@app.post("/sessions/{session}")
async def say(session: str, text: str) -> str:
    return await sessions[session].say(text)


@app.post("/sessions/{session}/stop")
async def stop(session: str) -> None:
    await sessions[session].stop()


@app.websocket("/sessions/{session}")
async def talk(websocket: WebSocket, session: str) -> None:
    await sessions[session].attach(websocket)
