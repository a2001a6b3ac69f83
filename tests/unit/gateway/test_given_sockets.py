"""What a server behind a gateway may claim of a socket: only an answer to an offer of the same
handshake attaches a client, and everything else is refused with an answer.
"""

import asyncio
import base64
from collections.abc import Callable

import pytest

from tenure.client.refusals import HttpAnswer
from tenure.entities.edge import Edge
from tenure.entities.socket_offer import SocketOffer, TakenSocket, offer, offered, told
from tenure.gateway.client_request import ClientRequest
from tenure.gateway.passed_connection import PassedSocket
from tenure.member.asgi import respond
from tenure.protocol.lease.port_proof import PortProof
from tenure.transport.pool_secret import PoolSecret
from tests.unit.gateway.front import Behind, Front, front

pytestmark = pytest.mark.asyncio

KEY = base64.b64encode(b"k" * 16)
HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: shop\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + KEY + b"\r\n\r\n"
)
ANN = TakenSocket("rooms", "attic", "ann")
SECRET = PoolSecret()
SECRET.told(PortProof(secret=b"s" * 32, is_wanted=True))


class Nobody(Edge):
    """An edge without sockets."""

    def __init__(self) -> None:
        """It needs nothing."""

    def close_all(self) -> None:
        """There are none."""


class Holds:
    """Sockets of a pool that end here: says who was attached, and lets the client go."""

    def __init__(self, pool: str) -> None:
        self.edge: Edge = Nobody()
        self.attached: list[TakenSocket] = []
        self._pool = pool
        self._drawn = 0

    async def offer(self, seconds: float) -> SocketOffer | None:
        self._drawn += 1
        return offer(self._pool, SECRET, f"{self._drawn:032x}")

    async def attach(self, request: ClientRequest, taken: TakenSocket) -> None:
        self.attached.append(taken)
        await respond(request.send, HttpAnswer(200, {}, "attached"))

    async def go_on(self, request: ClientRequest, passed: PassedSocket) -> None:
        raise AssertionError("none was passed on")

    async def close(self) -> None:
        """It listens to nobody."""


class Gives(Behind):
    """Answers a handshake with whatever `said` makes of the offers in it."""

    def __init__(self, said: Callable[[list[str]], str]) -> None:
        super().__init__()
        self._said = said

    async def answer(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        lines = (each.partition(": ") for each in head.decode().split("\r\n"))
        said = self._said([value for name, _, value in lines if name == "tenure-sockets"])
        answer = f"HTTP/1.1 200 OK\r\ntenure-socket: {said}\r\ncontent-length: 0\r\n\r\n"
        writer.write(answer.encode())


def answered(offers: list[str], taken: TakenSocket = ANN) -> str:
    """As `attach` answers in a process of the pool."""
    found = offered(offers, taken.pool, SECRET)
    assert found is not None
    return found.answer(taken)


async def status(it: Front) -> bytes:
    client = await it.client()
    client.say(HANDSHAKE)
    return (await client.head()).split(b" ")[1]


async def test_a_socket_that_a_process_of_the_pool_gives_over_is_attached() -> None:
    rooms, carts = Holds("rooms"), Holds("carts")
    async with front(Gives(answered)) as it:
        it.gateway.hold("carts", carts)
        it.gateway.hold("rooms", rooms)
        assert await status(it) == b"200"
    assert (rooms.attached, carts.attached) == ([ANN], [])


async def test_an_answer_counts_in_its_own_handshake_only() -> None:
    rooms, made = Holds("rooms"), list[str]()

    def first_again(offers: list[str]) -> str:
        made.append(answered(offers))
        return made[0]

    async with front(Gives(first_again)) as it:
        it.gateway.hold("rooms", rooms)
        assert [await status(it) for _ in range(3)] == [b"200", b"502", b"502"]
    assert rooms.attached == [ANN]


@pytest.mark.parametrize("pool", ["rooms", "carts"])
async def test_what_answers_no_offer_is_refused_and_logged(
    pool: str, caplog: pytest.LogCaptureFixture
) -> None:
    rooms = Holds("rooms")
    forged = told(TakenSocket(pool, "attic", "ADMIN"))
    for said in (forged, f"{'0' * 64} {forged}", "nonsense", ""):
        caplog.clear()
        async with front(Gives(lambda _, said=said: said)) as it:  # type: ignore[misc]
            it.gateway.hold("rooms", rooms)
            client = await it.client()
            client.say(HANDSHAKE)
            head = await client.head()
            assert head.startswith(b"HTTP/1.1 502 ")
            assert b"tenure-outcome: unknown" in head
            assert b"tenure-socket" not in head
            assert f"{it.behind} gave a socket over" in caplog.text
    assert rooms.attached == []


async def test_a_gateway_that_holds_no_sockets_is_given_none() -> None:
    async with front(Gives(lambda _: told(ANN))) as it:
        assert await status(it) == b"502"
