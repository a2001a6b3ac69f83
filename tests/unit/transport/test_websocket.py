"""WebSocket's own: why a connection fails, in words, and what is closed with what reason."""

import asyncio
import gc
import os
import socket
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from hashlib import sha1
from pathlib import Path
from typing import NoReturn, TypeAlias
from unittest.mock import Mock

import pytest
from aiohttp import WSCloseCode, web

from tenure.errors import RemoteProtocolError
from tenure.protocol.lease.messages import Hello, Poke
from tenure.runtime.read_size import READ_BYTES
from tenure.transport import websocket
from tenure.transport.contract import OWNER, WAITING_MESSAGES, Role
from tenure.transport.websocket import WebSocketTransport
from tenure.transport.websocket_frames import REASON_BYTES, frame
from tenure.wire import versions
from tenure.wire.frame import framed
from tenure.wire.lease import HeardByOwner, encode
from tenure.wire.versions import NEWEST
from tests.patience import DEADLINE_SECONDS, until
from tests.unit.transport.test_last_ping import ACCEPTING

pytestmark = pytest.mark.asyncio

HELLO = Hello(pool="rooms", token=1)
LARGE = 20 << 20
"""More than the kernel keeps for who does not read."""
Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def server(handler: Handler, path: str = OWNER.path) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_get(path, handler)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def client(
    role: Role[HeardByOwner] = OWNER,
) -> AsyncIterator[tuple[WebSocketTransport[HeardByOwner], asyncio.Queue[str]]]:
    transport = WebSocketTransport(role)
    losses: asyncio.Queue[str] = asyncio.Queue()
    transport.start(lambda *_: None, lambda _, why: losses.put_nowait(why))
    try:
        yield transport, losses
    finally:
        await transport.close()


async def why_lost(url: str, times: int = 1, role: Role[HeardByOwner] = OWNER) -> str:
    async with client(role) as (transport, losses):
        for _ in range(times):
            transport.send(url, HELLO)
        return await losses.get()


async def test_nothing_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        why = await why_lost(f"http://127.0.0.1:{port}")
    assert why == "connection refused: nothing listens there"


async def test_no_such_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(*args: object, **kwargs: object) -> object:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    assert await why_lost("http://manager.invalid:7400") == "no such host"


async def test_something_else_listens() -> None:
    async def page(request: web.Request) -> web.StreamResponse:
        return web.Response(text="hello")

    async with server(page, "/") as url:
        assert await why_lost(url) == "answered HTTP 404: something else listens there"
    async with server(page) as url:
        assert await why_lost(url) == "answered HTTP 200: something else listens there"


async def test_nobody_is_sent_on_to_another_place() -> None:
    async def elsewhere(request: web.Request) -> web.StreamResponse:
        raise web.HTTPTemporaryRedirect(inside)

    asked: list[str] = []

    async def secret(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        return web.Response(text="for its neighbours only")

    async with server(secret, "/inside") as other, server(elsewhere) as url:
        inside = f"{other}/inside"
        assert await why_lost(url) == "answered HTTP 307: something else listens there"
    assert asked == []


async def test_who_accepts_and_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "CONNECT_SECONDS", 0.01)

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    listening = await asyncio.start_server(silent, "127.0.0.1", 0)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        assert await why_lost(f"http://127.0.0.1:{port}") == "no answer within 0.01 s"


async def test_tls_where_there_is_none() -> None:
    async def page(request: web.Request) -> web.StreamResponse:
        return web.Response(text="hello")

    async with server(page) as url:
        why = await why_lost(url.replace("http:", "https:"))
    assert "ssl" in why.lower()


async def test_the_reason_with_which_a_manager_closes_is_told() -> None:
    async def closing(request: web.Request) -> web.StreamResponse:
        answer = web.WebSocketResponse()
        await answer.prepare(request)
        await answer.close(code=WSCloseCode.SERVICE_RESTART, message=b"going down")
        return answer

    async with server(closing) as url:
        assert await why_lost(url) == "it closed the connection (1012: going down)"


async def test_a_manager_that_speaks_newer_versions_only_is_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Here it is this side that does, once the first version is dropped."""
    monkeypatch.setattr(versions, "OLDEST", 2)

    async def first(request: web.Request) -> web.StreamResponse:
        answer = web.WebSocketResponse()
        await answer.prepare(request)
        await answer.receive()
        return answer

    async with server(first) as url:
        assert await why_lost(url) == (
            "no protocol version in common: one side speaks 1, the other 2 to 3; "
            "upgrade tenure on the first"
        )


async def test_more_than_may_wait_closes_the_connection() -> None:
    async def deaf(request: web.Request) -> web.StreamResponse:
        answer = web.WebSocketResponse()
        await answer.prepare(request)
        await answer.receive()
        return answer

    async with server(deaf) as url:
        why = await why_lost(url, WAITING_MESSAGES + 1)
    assert why == f"it has not read {WAITING_MESSAGES} messages"


@pytest.mark.parametrize("continues", [False, True])
async def test_more_bytes_than_may_wait_close_the_connection_unless_they_go_on(
    continues: bool,
) -> None:
    async def deaf(request: web.Request) -> web.StreamResponse:
        answer = web.WebSocketResponse()
        await answer.prepare(request)
        await answer.receive()
        return answer

    size = len(OWNER.encode(HELLO, NEWEST))
    bounded = OWNER._replace(waiting_bytes=3 * size, continues=lambda _: continues)
    async with server(deaf) as url:
        why = await why_lost(url, WAITING_MESSAGES + 1, bounded)
    waits = f"{WAITING_MESSAGES} messages" if continues else f"{4 * size} bytes"
    assert why == f"it has not read {waits}"


@pytest.mark.parametrize("goes_on", [False, True])
async def test_small_messages_do_not_wait_while_a_larger_one_is_not_read(goes_on: bool) -> None:
    """Another client's answer does not wait behind what one client reads. What goes on with a
    larger message comes after it.
    """
    read: asyncio.Queue[int] = asyncio.Queue()
    reads_large = asyncio.Event()
    connections: list[web.Request] = []

    async def reading(request: web.Request) -> web.StreamResponse:
        answer = web.WebSocketResponse(max_msg_size=0)
        await answer.prepare(request)
        connections.append(request)
        if len(connections) == 1:  # where the first message went, which is large
            await reads_large.wait()
        async for said in answer:
            read.put_nowait(len(said.data))
        return answer

    small = len(OWNER.encode(HELLO, NEWEST))
    role = OWNER._replace(
        encode=framed,
        small_bytes=small,
        waiting_bytes=None,
        continues=lambda each: goes_on and each is HELLO,
    )
    large = [Hello(pool="x" * size, token=1) for size in (LARGE, LARGE + 1)]
    async with (
        asyncio.timeout(DEADLINE_SECONDS),
        server(reading) as url,
        client(role) as (transport, _),
    ):
        for each in large:
            transport.send(url, each)
        await until(lambda: bool(connections))
        transport.send(url, HELLO)
        if not goes_on:
            assert await read.get() == small
        reads_large.set()
        found = [await read.get() for _ in range(3 if goes_on else 2)]
    sizes = [len(framed(each, NEWEST)) for each in large]
    assert found == ([*sizes, small] if goes_on else sizes)


async def test_what_is_sent_in_one_turn_of_the_loop_goes_out_in_one_piece() -> None:
    read: asyncio.Queue[bytes] = asyncio.Queue()

    async def reading(request: web.Request) -> web.StreamResponse:
        answer = web.WebSocketResponse()
        await answer.prepare(request)
        async for said in answer:
            read.put_nowait(said.data)
        return answer

    async with server(reading) as url, client() as (transport, _):
        transport.send(url, HELLO)
        await read.get()
        [link] = transport._links.values()
        assert link._socket is not None
        connection = link._socket.transport
        connection.write = write = Mock(wraps=connection.write)  # type: ignore[method-assign]
        for _ in range(10):
            transport.send(url, HELLO)
        assert [await read.get() for _ in range(10)] == 10 * [encode(HELLO, 1)]
        assert write.call_count == 1


async def test_what_comes_right_behind_the_handshake_is_read() -> None:
    async def sending(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = (await reader.readuntil(b"\r\n\r\n")).decode()
        key = next(x for x in request.splitlines() if x.lower().startswith("sec-websocket-key"))
        accepted = sha1(key.split()[1].encode() + ACCEPTING, usedforsecurity=False).digest()
        head = "HTTP/1.1 101 A\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-Websocket-Accept"
        said = frame(encode(Poke(), 1)) * 2
        writer.write(f"{head}: {b64encode(accepted).decode()}\r\n\r\n".encode() + said[:-1])
        await reader.readexactly(1)  # it has sent something, and so has read what came before
        writer.write(said[-1:])
        await reader.read()
        writer.close()

    delivered: asyncio.Queue[HeardByOwner] = asyncio.Queue()
    transport = WebSocketTransport(OWNER)
    transport.start(lambda _, said: delivered.put_nowait(said), lambda *_: None)
    async with await asyncio.start_server(sending, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        transport.send(f"http://127.0.0.1:{port}", HELLO)
        assert [await delivered.get(), await delivered.get()] == [Poke(), Poke()]
        await transport.close()


async def test_bytes_of_a_message_are_told_before_it_is_whole() -> None:
    """A peer that sends for seconds is not silent."""
    goes_on, whole = asyncio.Event(), Poke()

    async def sending(request: web.Request) -> web.StreamResponse:
        answer = web.WebSocketResponse()
        await answer.prepare(request)
        await answer.receive()
        data = bytes(2 * READ_BYTES)
        head = b"\x82\x7f" + len(data).to_bytes(8)
        assert request.transport is not None
        request.transport.write(head + data[1:])
        await goes_on.wait()
        request.transport.write(data[:1])
        await answer.receive()
        return answer

    delivered: asyncio.Queue[HeardByOwner] = asyncio.Queue()
    heard: asyncio.Queue[str] = asyncio.Queue()
    transport = WebSocketTransport(OWNER._replace(decode=lambda _data, _version: whole))
    transport.on_bytes = heard.put_nowait
    transport.start(lambda _, said: delivered.put_nowait(said), lambda *_: None)
    async with server(sending) as url:
        transport.send(url, HELLO)
        assert await heard.get() == url
        assert delivered.empty()
        goes_on.set()
        assert await delivered.get() is whole
        await transport.close()


async def closes_with(
    send: Callable[[web.WebSocketResponse], Awaitable[None]], role: Role[HeardByOwner] = OWNER
) -> tuple[str, str]:
    """Return what the client says of it, and with what code and reason it closes."""
    closed: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def sending(request: web.Request) -> web.StreamResponse:
        answer = web.WebSocketResponse()
        await answer.prepare(request)
        await answer.receive()
        await send(answer)
        frame = await answer.receive()
        closed.set_result(f"{frame.data} {frame.extra}")
        return answer

    async with server(sending) as url:
        return await why_lost(url, role=role), await closed


async def test_a_text_frame_closes_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    why, closed = await closes_with(lambda answer: answer.send_str("{}"))
    assert why == "it sent what cannot be read: a text frame, where messages are binary"
    assert closed == "1003 a text frame, where messages are binary"
    assert "closing the connection to http://127.0.0.1" in caplog.text


async def test_a_message_that_is_too_large_closes_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(websocket, "MESSAGE_BYTES", 100)
    why, closed = await closes_with(lambda answer: answer.send_bytes(b"\x01" * 200))
    assert "more than 100 bytes" in why
    assert closed.startswith("1009")


async def test_a_reason_is_cut_to_what_a_close_frame_has_room_for() -> None:
    def decode(data: object, version: int) -> NoReturn:
        raise RemoteProtocolError("é" * 100)

    role = OWNER._replace(decode=decode)
    _, closed = await closes_with(lambda answer: answer.send_bytes(b"x"), role)
    assert closed == "1002 " + "é" * (REASON_BYTES // 2)


async def test_a_connection_that_is_silent_to_pings_is_given_up() -> None:

    async def frozen(request: web.Request) -> web.StreamResponse:
        answer = web.WebSocketResponse(autoping=False)
        await answer.prepare(request)
        await answer.send_bytes(encode(Poke(), 1))
        while not answer.closed:
            frame = await answer.receive()
            if frame.type not in (web.WSMsgType.BINARY, web.WSMsgType.PING):
                break
        return answer

    async with server(frozen) as url:
        why = await why_lost(url, role=OWNER._replace(ping_seconds=0.02))
    assert why


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="of Linux")
async def test_the_kernel_gives_up_what_does_not_reach_a_manager() -> None:
    found: list[int] = []

    async def looking(request: web.Request) -> web.StreamResponse:
        answer = web.WebSocketResponse()
        await answer.prepare(request)
        await answer.receive()  # what is sent comes after the option
        found.append(user_timeout(answer.get_extra_info("peername")))
        await answer.close()
        return answer

    async with server(looking) as url:
        await why_lost(url)
    assert found == [6000]


def user_timeout(address: tuple[str, int]) -> int:
    """Return the user timeout of this process's socket that is bound to the address, in
    milliseconds.
    """
    for path in Path("/proc/self/fd").iterdir():
        with suppress(OSError), socket.socket(fileno=os.dup(int(path.name))) as one:
            if one.family == socket.AF_INET and one.getsockname() == address:
                return one.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
    raise AssertionError(f"no socket is bound to {address}")


async def test_closing_while_it_connects_leaves_nothing_open() -> None:
    """It may close at every step of connecting; a connection that stays open would fail the test
    that collects it.
    """
    arrived, ended = 0, 0

    async def handler(request: web.Request) -> web.WebSocketResponse:
        nonlocal arrived, ended
        arrived += 1
        try:
            socket = web.WebSocketResponse(protocols=versions.SUBPROTOCOLS)
            await socket.prepare(request)
            await socket.receive()
            return socket
        finally:
            ended += 1

    async with server(handler) as url:
        for steps in range(40):
            async with client() as (transport, _):
                transport.send(url, HELLO)
                for _ in range(steps):
                    await asyncio.sleep(0)
        await until(lambda: ended >= arrived)
    gc.collect()  # once: among the objects of a whole run each collection takes a second
    assert arrived > 10
