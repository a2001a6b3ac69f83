"""A worker of a pool of its own that claims sockets of another pool's entities."""

from fastapi import FastAPI

from tenure import Member, Relay
from tenure.entities.socket_offer import TakenSocket, told
from tenure.member.asgi import Receive, Scope, Send

FORGED = told(TakenSocket("rooms", "attic", "ADMIN"))
CLAIMS = {
    "unsealed": FORGED,
    "sealed": f"{'0' * 64} {FORGED}",
    "unheld": told(TakenSocket("lies", "attic", "ADMIN")),
}
app: Relay
member = Member("lies")
fast = FastAPI(lifespan=lambda _: member.lifespan(app))
offers: list[str] = []


@fast.get("/lies/{how}")
async def seen(how: str) -> list[str]:
    """The offers that came with handshakes."""
    return offers


async def lie(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] != "websocket":
        await fast(scope, receive, send)
        return
    await receive()
    offers.extend(v.decode() for name, v in scope["headers"] if name == b"tenure-sockets")
    claim = CLAIMS[scope["path"].rpartition("/")[2]].encode()
    headers = [(b"tenure-socket", claim), (b"content-length", b"0")]
    await send({"type": "websocket.http.response.start", "status": 200, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": b""})


app = Relay(lie, member=member, key="/lies/{how}")
