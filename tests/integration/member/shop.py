"""A web service of carts, as users write it: served by whatever server the tests run."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request, Response, WebSocket
from fastapi.responses import StreamingResponse
from starlette.websockets import WebSocketDisconnect

from tenure import KeyedState, Lease, LeaseLost, Member, Relay, owned

carts: KeyedState[list[str]] = KeyedState(value_type=list[str])
member = Member("carts", hand_off=carts)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[Mapping[str, Any]]:
    async with member.serving(app):
        yield {"greeting": "hello"}


app = FastAPI(lifespan=lifespan)
app.add_middleware(Relay, member=member, key="/carts/{user}", ready="/ready")
Owned = Annotated[Lease, Depends(owned("user"))]


@app.get("/health")
async def health() -> int:
    return os.getpid()


@app.get("/carts/{user}")
async def read(user: str, lease: Owned) -> list[str]:
    return carts.get(user, [])


@app.post("/carts/{user}")
async def add(user: str, article: str, lease: Owned) -> int:
    if article not in carts.get(user, []):
        carts[user] = [*carts.get(user, []), article]
    if not member.owner.holds(lease):
        raise LeaseLost(user)
    return len(carts[user])


@app.get("/carts/{user}/pid")
async def pid(user: str, lease: Owned, response: Response) -> int:
    response.headers["Lease-Number"] = str(lease.number)
    return os.getpid()


@app.api_route("/carts/{user}/echo", methods=["POST", "PUT", "DELETE", "PATCH"])
async def echo(request: Request) -> dict[str, Any]:
    body = await request.body()
    return {
        "size": len(body),
        "hash": hashlib.sha256(body).hexdigest(),
        "method": request.method,
        "query": request.url.query,
        "host": request.headers["host"],
        "client": request.client and request.client.host,
        "greeting": request.state.greeting,
        "ours": [name for name in request.headers if name.startswith("tenure")],
        "cookie": request.headers.get("cookie"),
        "pid": os.getpid(),
    }


@app.get("/carts/{user}/cookies")
async def cookies(response: Response) -> None:
    response.set_cookie("a", "1")
    response.set_cookie("b", "2")


@app.get("/carts/{user}/lines")
async def lines(count: int) -> StreamingResponse:
    async def body() -> AsyncIterator[str]:
        for i in range(count):
            yield f"{i}\n"
            await asyncio.sleep(0.001)

    return StreamingResponse(body())


streaming = 0


@app.get("/carts/{user}/streaming")
async def how_many() -> int:
    return streaming


@app.get("/carts/{user}/events")
async def events() -> StreamingResponse:
    """Send events without end."""

    async def body() -> AsyncIterator[str]:
        global streaming  # noqa: PLW0603  # it is what the test asks for
        streaming += 1
        try:
            while True:
                yield "data: tick\n\n"
                await asyncio.sleep(0.01)
        finally:
            streaming -= 1

    return StreamingResponse(body(), media_type="text/event-stream")


@app.get("/carts/{user}/breaks")
async def breaks() -> StreamingResponse:
    async def body() -> AsyncIterator[str]:
        yield "half"
        await asyncio.sleep(0.05)
        raise RuntimeError("on purpose")

    return StreamingResponse(body())


@app.post("/carts/{user}/lost")
async def lost(user: str) -> None:
    raise LeaseLost(user)


@app.websocket("/carts/{user}/talk")
async def talk(websocket: WebSocket, user: str) -> None:
    offered = websocket.scope["subprotocols"]
    await websocket.accept(subprotocol=offered[0] if offered else None)
    await websocket.send_json(os.getpid())
    try:
        while True:
            message = await websocket.receive()
            if message["type"] == "websocket.disconnect":
                return
            if message.get("text") == "bye":
                await websocket.close(4001)
                return
            await websocket.send(
                {
                    "type": "websocket.send",
                    "text": message.get("text"),
                    "bytes": message.get("bytes"),
                }
            )
    except WebSocketDisconnect:
        return


@app.websocket("/carts/{user}/forbidden")
async def forbidden(websocket: WebSocket) -> None:
    await websocket.close()
