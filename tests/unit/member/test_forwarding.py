"""Requests over kept connections, against a server that answers with the bytes it is told."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any
from unittest.mock import Mock

import pytest

from tenure.base.origin import Origin, parse
from tenure.member import forwarded_answer, forwarding
from tenure.member.forwarded_answer import ForwardedAnswer
from tenure.member.forwarding import KeptConnections, NotConnected
from tests.patience import DEADLINE_SECONDS, until

pytestmark = pytest.mark.asyncio

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Server:
    """Answers each request with the next script: parts, None to close."""

    def __init__(self, *scripts: Iterable[bytes | None]) -> None:
        self.scripts = list(scripts)
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []
        self.connections = 0
        self.tasks: set[asyncio.Task[None]] = set()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.tasks.add(asyncio.ensure_future(self.serve(reader, writer)))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with suppress(ConnectionError):
            await self._serve(reader, writer)
        writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while self.scripts:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
                await self._read_body(head, reader)
            except asyncio.IncompleteReadError as error:
                self.bodies.append(error.partial)
                break
            self.heads.append(head)
            for part in self.scripts.pop(0):
                if part is None:
                    writer.close()
                    return
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0)

    async def _read_body(self, head: bytes, reader: asyncio.StreamReader) -> None:
        if b"chunked" in head:
            self.bodies.append(await reader.readuntil(b"0\r\n\r\n"))
        elif b"content-length: " in head:
            length = int(head.partition(b"content-length: ")[2].partition(b"\r")[0])
            self.bodies.append(await reader.readexactly(length))


@asynccontextmanager
async def asking(server: Server) -> AsyncIterator[tuple[KeptConnections, Origin]]:
    listening = await asyncio.start_server(server.accept, "127.0.0.1", 0)
    kept = KeptConnections()
    port = listening.sockets[0].getsockname()[1]
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            yield kept, parse(f"http://127.0.0.1:{port}/inner", "address")
    finally:
        kept.close()
        listening.close()
        if server.tasks:
            await asyncio.wait(server.tasks, timeout=DEADLINE_SECONDS)


async def ask(
    kept: KeptConnections,
    origin: Origin,
    method: str = "GET",
    headers: Iterable[tuple[bytes, bytes]] = (),
    body: "bytes | AsyncIterator[bytes]" = b"",
) -> ForwardedAnswer:
    return await kept.ask(origin, method, "/inner/carts/ann?a=b", list(headers), body)


async def read(answer: ForwardedAnswer) -> bytes:
    try:
        return b"".join([part async for part in answer])
    finally:
        answer.close()


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("said", "body"),
    [
        (OK, b"ok"),
        (b"HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n", b""),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n", b""),
        (b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + OK, b"ok"),
        (CHUNKED + b"3\r\nabc\r\n2;name=value\r\nde\r\n0\r\n\r\n", b"abcde"),
        (CHUNKED + b"A\r\n0123456789\r\n0\r\ntrailer: x\r\nmore: y\r\n\r\n", b"0123456789"),
        (CHUNKED + b"0\r\n\r\n", b""),
    ],
)
@pytest.mark.parametrize("step", [1, 3, 1000])
async def test_an_answer_is_read_however_it_is_cut(said: bytes, body: bytes, step: int) -> None:
    pieces = [said[i : i + step] for i in range(0, len(said), step)]
    server = Server(pieces, [OK])
    async with asking(server) as (kept, origin):
        assert await read(await ask(kept, origin)) == body
        assert await read(await ask(kept, origin)) == b"ok"
        assert server.connections == 1, "it is kept"


class CountedBytes(bytes):
    """Counts the bytes that are copied out of it."""

    copied = 0

    def __getitem__(self, part: Any) -> Any:  # noqa: ANN401
        found = super().__getitem__(part)
        CountedBytes.copied += len(found)
        return CountedBytes(found)

    def partition(self, by: Any) -> Any:  # noqa: ANN401
        return tuple(self[at:end] for at, end in _cuts(self, by))


def _cuts(data: bytes, by: bytes) -> list[tuple[int, int]]:
    at = data.find(by)
    middle = len(data) if at < 0 else at
    return [(0, middle), (middle, middle + len(by)), (middle + len(by), len(data))]


async def test_a_body_in_chunks_of_one_byte_is_not_copied_for_each_of_them() -> None:
    answer = ForwardedAnswer(Mock(asyncio.Transport), lambda _: None, has_body=True)
    answer.feed(CHUNKED)
    said = CountedBytes(b"1\r\nx\r\n" * 10_000)
    answer.feed(said)
    answer.feed(b"0\r\n\r\n")
    assert answer.whole() == b"x" * 10_000
    assert CountedBytes.copied <= 2 * len(said)


async def test_an_answer_that_has_come_whole_is_there_at_once() -> None:
    async with asking(Server([OK])) as (kept, origin):
        answer = await ask(kept, origin)
        assert (answer.status, answer.headers) == (200, [(b"content-length", b"2")])
        assert answer.whole() == b"ok"
        assert answer.whole() is None, "once"


async def test_the_answer_to_head_has_no_body_whatever_it_says() -> None:
    server = Server([b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n"], [OK])
    async with asking(server) as (kept, origin):
        assert await read(await ask(kept, origin, "HEAD")) == b""
        assert await read(await ask(kept, origin)) == b"ok"


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
async def test_a_body_without_a_length_ends_with_its_connection(version: bytes) -> None:
    server = Server([b"HTTP/%b 200 OK\r\n\r\nall" % version, b" of it", None])
    async with asking(server) as (kept, origin):
        assert await read(await ask(kept, origin)) == b"all of it"


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-le",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabc",
        CHUNKED + b"3\r\nabc",
        CHUNKED + b"3\r\nabc\r\n",
        CHUNKED + b"3\r\nabc\r\n0\r\n",
    ],
)
async def test_what_breaks_off_is_not_taken_for_the_end(said: bytes) -> None:
    async with asking(Server([said, None])) as (kept, origin):
        with pytest.raises(ConnectionResetError, match="the connection broke"):
            await read(await ask(kept, origin))


@pytest.mark.parametrize(
    "said",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        CHUNKED + b"0x3\r\nabc\r\n",
        CHUNKED + b"\r\nabc\r\n",
        CHUNKED + b"3\r\nabcd\r\n",
    ],
)
async def test_what_is_not_http_breaks_the_connection(said: bytes) -> None:
    server = Server([said], [OK])
    async with asking(server) as (kept, origin):
        with pytest.raises(ConnectionError, match=r"is not HTTP/1\.1"):
            await read(await ask(kept, origin))
        assert await read(await ask(kept, origin)) == b"ok"
        assert server.connections == 2


async def test_a_head_and_a_line_without_an_end_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forwarded_answer, "MOST_HEAD_BYTES", 100)
    for said in (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200, CHUNKED + b"0" * 200):
        async with asking(Server([said])) as (kept, origin):
            with pytest.raises(ConnectionError, match=r"more than 100|does not end"):
                await read(await ask(kept, origin))


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
        OK + b"and more than it said",
    ],
)
async def test_a_connection_that_goes_no_further_is_not_kept(said: bytes) -> None:
    server = Server([said], [OK])
    async with asking(server) as (kept, origin):
        assert await read(await ask(kept, origin)) == b"ok"
        assert await read(await ask(kept, origin)) == b"ok"
        assert server.connections == 2


async def test_a_connection_that_was_idle_too_long_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Server([OK], [OK], [OK])
    async with asking(server) as (kept, origin):
        for _ in range(2):
            assert await read(await ask(kept, origin)) == b"ok"
        assert server.connections == 1
        monkeypatch.setattr(forwarding, "KEEP_ALIVE_SECONDS", 0.0)
        assert await read(await ask(kept, origin)) == b"ok"
        assert server.connections == 2


async def test_nobody_there_is_told_from_a_connection_that_breaks() -> None:
    kept = KeptConnections()
    with pytest.raises(NotConnected):
        await ask(kept, parse("http://127.0.0.1:1", "address"))


# --- requests -------------------------------------------------------------------------------------


async def parts_of(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def test_a_request_is_passed_on_as_the_bytes_that_it_is() -> None:
    server = Server([OK])
    async with asking(server) as (kept, origin):
        headers = [(b"host", b"shop"), (b"x", b"\xff\xfe"), (b"content-length", b"9")]
        await read(await ask(kept, origin, "POST", headers, b"tea"))
    passed = b"host: shop\r\nx: \xff\xfe\r\ncontent-length: 3\r\n\r\n"
    assert server.heads == [b"POST /inner/carts/ann?a=b HTTP/1.1\r\n" + passed]
    assert server.bodies == [b"tea"]


@pytest.mark.parametrize("break_in", ["ann\r\nevil: 1", "ann HTTP/1.1", "ann\n"])
async def test_a_target_that_would_be_read_as_more_is_not_sent(break_in: str) -> None:
    async with asking(Server()) as (kept, origin):
        with pytest.raises(ValueError, match="cannot be sent on"):
            await kept.ask(origin, "GET", f"/carts/{break_in}", [], b"")
        with pytest.raises(ValueError, match="cannot be sent on"):
            await kept.ask(origin, "GET", "/", [(b"x", break_in.encode() + b"\r\ny")], b"")


async def test_a_body_of_unknown_length_goes_in_chunks() -> None:
    server = Server([OK], [OK])
    async with asking(server) as (kept, origin):
        assert await read(await ask(kept, origin, "POST", (), parts_of(b"ab", b"", b"c"))) == b"ok"
        assert await read(await ask(kept, origin)) == b"ok"
    assert server.bodies == [b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"]
    assert server.connections == 1


async def test_a_body_of_known_length_goes_as_it_comes() -> None:
    server = Server([OK])
    async with asking(server) as (kept, origin):
        length = [(b"content-length", b"3")]
        assert await read(await ask(kept, origin, "PUT", length, parts_of(b"a", b"bc"))) == b"ok"
    assert server.bodies == [b"abc"]


@pytest.mark.parametrize("length", [b"2", b"4"])
async def test_a_body_of_another_length_than_it_says_breaks_off(length: bytes) -> None:
    async with asking(Server([OK])) as (kept, origin):
        with pytest.raises(ConnectionResetError, match="its body has another length"):
            await ask(kept, origin, "PUT", [(b"content-length", length)], parts_of(b"a", b"bc"))


async def test_a_client_that_goes_in_the_middle_takes_the_connection_along() -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionAbortedError("the client has gone")

    server = Server([OK])
    async with asking(server) as (kept, origin):
        with pytest.raises(ConnectionResetError, match="the client has gone"):
            await ask(kept, origin, "PUT", (), broken())
        await until(lambda: server.bodies)
    assert server.bodies == [b"4\r\nhalf\r\n"]


async def test_an_answer_before_the_request_has_ended_is_passed_on() -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"more"
            await asyncio.sleep(0.001)

    class Early(Server):
        async def _read_body(self, head: bytes, reader: asyncio.StreamReader) -> None:
            """It does not want it."""

    server = Early([b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n"], [OK])
    async with asking(server) as (kept, origin):
        answer = await ask(kept, origin, "PUT", (), endless())
        assert (answer.status, await read(answer)) == (413, b"")
        assert await read(await ask(kept, origin)) == b"ok"
    assert server.connections == 2, "the rest of the request is in the other"


async def test_who_does_not_read_an_answer_holds_up_who_sends_it() -> None:
    part, count = bytes(1_000_000), 30
    writes = 0

    def body() -> Iterable[bytes]:
        nonlocal writes
        yield b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (len(part) * count)
        for writes in range(1, count + 1):  # noqa: B007  # it is looked at outside
            yield part

    async with asking(Server(body())) as (kept, origin):
        answer = await ask(kept, origin)
        before = -1
        while before != writes:
            before = writes
            await asyncio.sleep(0.05)
        assert writes < count, "what the kernel takes, and no more"
        assert len(await read(answer)) == len(part) * count


async def test_who_gives_up_leaves_no_connection_behind() -> None:
    begun: Callable[[], None]
    asked = asyncio.Event()
    begun = asked.set

    class Silent(Server):
        async def _read_body(self, head: bytes, reader: asyncio.StreamReader) -> None:
            begun()
            await reader.read()
            self.bodies.append(b"it was closed")

    server = Silent([OK])
    async with asking(server) as (kept, origin):
        waiting = asyncio.ensure_future(ask(kept, origin))
        await asked.wait()
        waiting.cancel()
        await asyncio.wait({waiting})
        await until(lambda: server.bodies)
