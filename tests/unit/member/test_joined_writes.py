"""A member's own listener writes the head of an answer together with its body."""

import asyncio
from collections.abc import Iterable

import pytest

from tenure.member.asgi import Receive, Scope, Send
from tenure.member.joined_writes import JoinedWrites
from tenure.member.listener import OwnListener
from tests.patience import DEADLINE_SECONDS

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"


class Written(asyncio.Transport):
    """Remembers what is written at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.parts.append(bytes(data))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        del list_of_data
        raise AssertionError("some Pythons do not say then that the peer reads nothing")

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True


@pytest.mark.asyncio
async def test_a_head_is_written_with_the_body_that_follows() -> None:
    written = Written()
    joined = JoinedWrites(written)
    for part in (HEAD, b"[]", b"more", HEAD, b"", HEAD, b"{}"):
        joined.write(part)
    assert written.parts == [HEAD + b"[]", b"more", HEAD, HEAD + b"{}"]
    await asyncio.sleep(0)
    assert len(written.parts) == 4


@pytest.mark.asyncio
async def test_what_is_no_bytes_is_written_too() -> None:
    """Starlette's answers may have bodies of `memoryview`."""
    written = Written()
    joined = JoinedWrites(written)
    for part in (HEAD, memoryview(b"{"), memoryview(b"}"), bytearray(b"more")):
        joined.write(part)
    assert written.parts == [HEAD + b"{", b"}", b"more"]


@pytest.mark.asyncio
async def test_a_head_alone_waits_for_no_more_than_a_pass() -> None:
    """Of a stream of events, the first may come much later."""
    written = Written()
    joined = JoinedWrites(written)
    joined.write(HEAD)
    assert written.parts == []
    await asyncio.sleep(0)
    assert written.parts == [HEAD]
    joined.write(b"event")
    assert written.parts == [HEAD, b"event"]


@pytest.mark.asyncio
async def test_what_is_kept_is_written_before_the_connection_ends() -> None:
    """An answer to HEAD has no body."""
    written = Written()
    joined = JoinedWrites(written)
    joined.write(HEAD)
    assert not joined.is_closing()
    joined.close()
    assert joined.is_closing()
    assert written.parts == [HEAD]


@pytest.mark.asyncio
async def test_nothing_is_written_to_a_connection_that_has_ended() -> None:
    """A closed transport of uvloop raises."""
    written = Written()
    joined = JoinedWrites(written)
    joined.write(HEAD)
    written.close()
    await asyncio.sleep(0)
    assert written.parts == []


@pytest.mark.asyncio
@pytest.mark.parametrize("last", [b"", b"connection: close\r\n"])
async def test_a_listener_sends_a_head_before_the_application_has_a_body(last: bytes) -> None:
    goes_on = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await goes_on.wait()
        await send({"type": "http.response.body", "body": b"body"})

    listener = OwnListener(app, "127.0.0.1:0")
    await listener.start()
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            host, port = listener.url.removeprefix("http://").split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET / HTTP/1.1\r\nhost: here\r\n" + last + b"\r\n")
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 OK")
            goes_on.set()
            assert await reader.readuntil(b"0\r\n\r\n") == b"4\r\nbody\r\n0\r\n\r\n"
            writer.close()
    finally:
        await listener.stop()
