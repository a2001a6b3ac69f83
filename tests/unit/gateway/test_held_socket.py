"""A WebSocket that ends at the gateway keeps no more of one client than any other port."""

import asyncio

import pytest

from tenure.gateway.client_request import ClientRequest
from tenure.gateway.held_socket import GONE, HeldSocket
from tenure.gateway.request_reader import RequestHead
from tenure.transport import unfinished_messages
from tenure.transport.unfinished_messages import UnfinishedMessages
from tests.unit.transport.test_message_watch import frame

pytestmark = pytest.mark.asyncio
MIB = 1 << 20


class Connection:
    """See `Carrier`: a connection to which nothing is written, and which can be lost."""

    def __init__(self) -> None:
        self.request: ClientRequest
        self.is_aborted = False

    def write(self, data: bytes) -> None:
        pass

    async def drained(self) -> None:
        pass

    def read_on(self, *, goes_on: bool) -> None:
        pass

    def switched(self) -> None:
        pass

    def close(self) -> None:
        pass

    def finished(self, request: ClientRequest) -> None:
        pass

    def break_off(self) -> None:
        self.is_aborted = True
        self.request.lose()


def held(
    unfinished: UnfinishedMessages, address: str, token: bytes = b""
) -> tuple[Connection, HeldSocket]:
    headers = [(b"authorization", token)] if token else []
    head = RequestHead("GET", b"/", headers, "1.1", False, False, True, b"websocket")
    connection = Connection()
    connection.request = ClientRequest(head, connection, (address, 1), "http")
    return connection, HeldSocket(connection.request, unfinished)


@pytest.mark.parametrize("token", [b"", b"Bearer one"])
async def test_unfinished_messages_of_one_address_or_token_are_bounded_together(
    monkeypatch: pytest.MonkeyPatch, token: bytes
) -> None:
    monkeypatch.setattr(unfinished_messages, "KEPT_BYTES", 4 * MIB)
    unfinished = UnfinishedMessages()
    address = "10.0.0.{}" if token else "10.0.0.1"
    sockets = [held(unfinished, address.format(at), token) for at in range(20)]
    other, at_other = held(unfinished, "10.0.1.1", b"Bearer another")
    readings = []
    for connection, socket in [*sockets, (other, at_other)]:
        readings.append(asyncio.ensure_future(socket.receive()))
        connection.request.add(frame(b"x" * MIB)[:-1])
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    kept = [not connection.is_aborted for connection, _ in sockets]
    assert kept == [False] * 17 + [True] * 3
    assert not other.is_aborted
    assert [await each for each in readings[:17]] == [GONE] * 17
    other.request.add(b"x")
    assert await readings[-1] == {"type": "websocket.receive", "bytes": b"x" * MIB}
    for connection, _ in sockets[17:]:
        connection.request.lose()
    await asyncio.gather(*readings)
    for _, socket in sockets:
        socket.end()
    at_other.end()
    assert len(unfinished) == 0
