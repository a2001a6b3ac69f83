"""Requests through a gateway, byte by byte: what comes through, and what is refused."""

import asyncio
from contextlib import suppress

import pytest

from tenure.transport.connection_limits import ConnectionLimits
from tests.unit.gateway.front import END, OK, Behind, front

pytestmark = pytest.mark.asyncio

GET = b"GET /a?b=c HTTP/1.1\r\nHost: shop\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: shop\r\n"
WEBSOCKET = b"GET / HTTP/1.1\r\nHost: shop\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
HANDSHAKE = b"Sec-WebSocket-Key: a\r\nSec-WebSocket-Version: 13\r\n\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n"


class Echo(Behind):
    """Answers with the body, in chunks, as it comes."""

    async def answer(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        if b"transfer-encoding: chunked" not in head:
            writer.write(b"0\r\n\r\n")
            return
        while (line := await reader.readline()) != b"0\r\n":
            part = await reader.readexactly(int(line, 16) + 2)
            writer.write(line + part)
        await reader.readline()
        writer.write(b"0\r\n\r\n")


async def test_a_request_and_its_answer_pass() -> None:
    behind = Behind()
    async with front(behind) as it:
        client = await it.client()
        for step in (1, 7, 1000):  # however it is cut
            for at in range(0, len(GET), step):
                client.say(GET[at : at + step])
                await asyncio.sleep(0)
            assert await client.head() == b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"
            assert await client.part(2) == b"ok"
    assert behind.connections == 1, "it is kept"
    first, *headers = behind.heads[0].split(b"\r\n")
    assert first == b"GET /a?b=c HTTP/1.1"
    assert headers[:2] == [b"host: shop", b"x-forwarded-for: 127.0.0.1"]


async def test_requests_that_come_together_are_answered_in_order() -> None:
    class Numbered(Behind):
        async def answer(
            self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n" + head[5:6])

    asked = [b"GET /%d HTTP/1.1\r\nHost: shop\r\n\r\n" % n for n in range(9)]
    async with front(Numbered()) as it:
        got = await it.answer(b"".join(asked) + LAST.replace(b" / ", b" /9 "))
    assert [each[:1] for each in got.split(END)[1:]] == [b"%d" % n for n in range(10)]


async def test_a_client_that_sends_too_many_at_once_is_cut_off() -> None:
    async with front(Behind()) as it:
        assert (await it.answer(GET * 40)).count(b"200 OK") < 40


async def test_an_old_client_gets_what_it_understands() -> None:
    async with front(Echo()) as it:
        got = await it.answer(b"GET / HTTP/1.0\r\n\r\n")
        assert b"transfer-encoding" not in got
        assert b"connection: close" in got
    async with front(Behind()) as it:
        client = await it.client()
        client.say(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        assert b"connection: keep-alive" in await client.head()


async def test_head_has_no_body_and_the_next_request_is_answered() -> None:
    class Says(Behind):
        async def answer(
            self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            writer.write(OK[:-2] if head.startswith(b"HEAD") else OK)

    async with front(Says()) as it:
        client = await it.client()
        client.say(b"HEAD / HTTP/1.1\r\nHost: shop\r\n\r\n" + LAST)
        assert b"content-length: 2" in await client.head()
        assert (await client.all()).endswith(b"ok")


# --- bodies ---------------------------------------------------------------------------------------


async def test_a_body_goes_to_and_fro_as_it_comes() -> None:
    async with front(Echo()) as it:
        client = await it.client()
        client.say(CHUNKED + b"\r\n")
        assert b"200 OK" in await client.head()
        for part in (b"a", b"bc", b"d" * 100):
            client.say(b"%x;ext=1\r\n%b\r\n" % (len(part), part))
            said = b"%x\r\n%b\r\n" % (len(part), part)
            assert await client.part(len(said)) == said
        client.say(b"0\r\n\r\n")
        assert await client.part(5) == b"0\r\n\r\n"


async def test_who_is_asked_to_wait_for_it_is_told_to_go_on() -> None:
    async with front(Behind()) as it:
        client = await it.client()
        client.say(POST + b"Content-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        assert await client.head() == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.say(b"abc")
        assert b"200 OK" in await client.head()


async def test_who_does_not_read_holds_up_who_sends() -> None:
    part, count = b"x" * 1_000_000, 40
    written = 0

    class Large(Behind):
        async def answer(
            self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            nonlocal written
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (len(part) * count))
            for _ in range(count):
                writer.write(part)
                await writer.drain()
                written += 1
                self.came.set()

    behind = Large()
    async with front(behind) as it:
        client = await it.client()
        client.say(LAST)
        head = await client.head()
        assert b"200 OK" in head
        seen = -1
        while written != seen:  # until it goes no further
            seen = written
            for _ in range(1000):
                await asyncio.sleep(0)
        assert written < count, "what the kernel and two buffers take, and no more"
        assert len(await client.all()) == len(part) * count


async def test_who_asks_again_and_reads_nothing_is_answered_no_more() -> None:
    """Each answer is small enough to be taken whole, and would be kept until it is read."""
    size, asked = 50_000, 1000

    class Large(Behind):
        async def answer(
            self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size + b"x" * size)

    behind = Large()
    async with front(behind) as it:
        client = await it.client()
        client.say(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n" * 2)
        for _ in range(asked // 2 - 1):
            seen = len(behind.heads)
            client.say(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n" * 2)
            for _ in range(1000):
                if len(behind.heads) >= seen + 2:
                    break
                await asyncio.sleep(0)
            else:
                break
        assert len(behind.heads) < asked / 2, "what the kernel and one buffer take, and no more"
        for _ in range(len(behind.heads)):
            assert b"200 OK" in await client.head()
            await client.part(size)


async def test_who_goes_in_the_middle_takes_the_request_along() -> None:
    gone = asyncio.Event()

    class Waits(Behind):
        async def answer(
            self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n")
            await reader.read()
            gone.set()

    async with front(Waits()) as it:
        client = await it.client()
        client.say(GET)
        await client.head()
        client.writer.close()
        async with asyncio.timeout(10):
            await gone.wait()


async def test_an_answer_that_breaks_off_is_not_taken_for_a_whole_one() -> None:
    class Breaks(Behind):
        async def answer(
            self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n")
            writer.close()

    async with front(Breaks()) as it:
        client = await it.client()
        client.say(GET)
        assert b"200 OK" in await client.head()
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await client.part(100)


# --- refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (CHUNKED + b"Content-Length: 3\r\n\r\n0\r\n\r\n", 400),
        (POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (POST + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400),
        (POST + b"Content-Length: +3\r\n\r\nabc", 400),
        (POST + b"Content-Length: 3, 3\r\n\r\nabc", 400),
        (POST + b"X: a\r\n b\r\n\r\n", 400),
        (POST + b"X: a\rb\r\n\r\n", 400),
        (POST + b"X: a\nY: b\r\n\r\n", 400),
        (POST + b"X: a\x00b\r\n\r\n", 400),
        (POST + b"X : a\r\n\r\n", 400),
        (POST + b": a\r\n\r\n", 400),
        (POST + b"Host: other\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (POST + b"Transfer-Encoding: gzip\r\n\r\nabc", 501),
        (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
        (POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 400),
        (POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501),
        (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501),
        (POST + b"Upgrade: h2c\r\nConnection: upgrade\r\nContent-Length: 3\r\n\r\nabc", 400),
        (WEBSOCKET + b"Sec-WebSocket-Version: 13\r\n\r\n", 400),
        (WEBSOCKET + b"Sec-WebSocket-Key: a\r\nSec-WebSocket-Version: 8\r\n\r\n", 400),
        (WEBSOCKET + 2 * b"Sec-WebSocket-Key: a\r\n" + b"Sec-WebSocket-Version: 13\r\n\r\n", 400),
        (WEBSOCKET.replace(b"Conn", b"Proxy-Conn") + HANDSHAKE, 400),
        (b"GET /\r\n\r\n", 505),
        (b"GET / HTTP/1.2\r\nHost: shop\r\n\r\n", 400),
        (b"GET http://other/ HTTP/1.1\r\nHost: shop\r\n\r\n", 400),
        (b"OPTIONS * HTTP/1.1\r\nHost: shop\r\n\r\n", 400),
        (b"CONNECT other:80 HTTP/1.1\r\nHost: shop\r\n\r\n", 400),
        (b"GET /a b HTTP/1.1\r\nHost: shop\r\n\r\n", 400),
        (b"GET /\xff HTTP/1.1\r\nHost: shop\r\n\r\n", 400),
        (b"EVIL / HTTP/1.1\r\nHost: shop\r\n\r\n", 400),
        (b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: shop\r\n\r\n", 414),
        (POST + b"X: y\r\n" * 300 + b"\r\n", 431),
        (POST + b"X: " + b"y" * 70_000, 431),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    ],
)
async def test_what_may_be_read_in_two_ways_is_refused_and_nothing_of_it_passed_on(
    said: bytes, status: int
) -> None:
    behind = Behind()
    async with front(behind) as it:
        got = await it.answer(said + GET)
    assert got.startswith(b"HTTP/1.1 %d " % status)
    assert b"tenure-outcome: not-begun" in got
    assert got.count(b"HTTP/1.1 ") == 1
    assert behind.heads == []


@pytest.mark.parametrize(
    "said",
    [
        b"3\r\nabc\r\n0\r\nX: y\r\n\r\n",  # a trailer
        b"0x3\r\nabc\r\n0\r\n\r\n",
        b"3\nabc\r\n0\r\n\r\n",
        b"fffffffffffffffff\r\nabc",
        b"3\r\nabcd\r\n0\r\n\r\n",
        b"3;" + b"x" * 5000,  # an extension without an end
    ],
)
async def test_a_body_that_may_be_read_in_two_ways_breaks_off(said: bytes) -> None:
    behind = Echo()
    async with front(behind) as it:
        client = await it.client()
        client.say(CHUNKED + b"\r\n" + said + GET)
        with suppress(ConnectionResetError):
            assert not (await client.all()).endswith(b"0\r\n\r\n")
    assert len(behind.heads) <= 1, "what follows is no request"


async def test_who_says_nothing_and_who_is_slow_is_let_go() -> None:
    limits = ConnectionLimits(silent_seconds=0.2, stuck_seconds=0.2)
    async with front(Behind(), limits=limits) as it:
        quick = await it.client()
        quick.say(GET)
        await quick.head()
        for said in (b"", b"GET / HTTP/1.1\r\nX: ", POST + b"Content-Length: 1000\r\n\r\nabc"):
            slow = await it.client()
            slow.say(said)
            with suppress(ConnectionResetError):
                assert await slow.all() == b""
        await quick.part(2)
        quick.say(GET)
        assert b"200 OK" in await quick.head(), "others are served"


# --- owners that fail -----------------------------------------------------------------------------


class Dies(Behind):
    """Reads requests, and closes."""

    async def answer(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writer.close()


async def test_what_may_have_been_done_is_not_sent_again_and_its_outcome_is_unknown() -> None:
    behind = Dies()
    async with front(behind) as it:
        got = await it.answer(POST + b"Content-Length: 2\r\nConnection: close\r\n\r\nhi")
    assert got.startswith(b"HTTP/1.1 502 ")
    assert b"tenure-outcome: unknown" in got
    assert b"it may have carried the request out, or not" in got
    assert len(behind.heads) == 1


async def test_what_was_not_begun_is_sent_again_until_the_deadline() -> None:
    behind = Behind()
    async with front(behind, deadline=0.3) as it:
        it.gateway.reroute(
            type(it.gateway._routes).read([("x", "/=http://127.0.0.1:1")])  # nobody is there
        )
        got = await it.answer(POST + b"Content-Length: 2\r\nConnection: close\r\n\r\nhi")
    assert got.startswith(b"HTTP/1.1 502 ")
    assert b"tenure-outcome: not-begun" in got


async def test_a_client_says_how_long_it_waits() -> None:
    async with front(Behind(), deadline=1000.0) as it:
        it.gateway.reroute(type(it.gateway._routes).read([("x", "/=http://127.0.0.1:1")]))
        got = await it.answer(LAST.replace(b"\r\n\r\n", b"\r\nPrefer: wait=0\r\n\r\n"))
    assert got.startswith(b"HTTP/1.1 502 ")


async def test_an_owner_that_does_not_answer_is_given_up() -> None:
    class Silent(Behind):
        async def answer(
            self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            await reader.read()
            writer.close()

    async with front(Silent(), answer_seconds=0.2) as it:
        got = await it.answer(POST + b"Content-Length: 0\r\nConnection: close\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 504 ")
    assert b"tenure-outcome: unknown" in got


@pytest.mark.parametrize(
    "said",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\ncontent-length: -2\r\n\r\nab",
        b"HTTP/1.1 9999 OK\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/2.0 200 OK\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx y: 0\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: a\r\n b\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: a\nset-cookie: b\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: a\0b\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 300_000,
        b"HTTP/1.1 000 OK\r\ncontent-length: 0\r\n\r\n",
    ],
)
async def test_an_owner_that_answers_nonsense_is_not_passed_on(said: bytes) -> None:
    class Nonsense(Behind):
        async def answer(
            self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            writer.write(said)

    async with front(Nonsense()) as it:
        got = await it.answer(POST + b"Content-Length: 0\r\nConnection: close\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 502 ")
    assert b"tenure-outcome: unknown" in got


async def test_a_request_that_is_at_work_is_answered_before_the_gateway_ends() -> None:
    go_on = asyncio.Event()

    class Waits(Behind):
        async def answer(
            self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            await go_on.wait()
            writer.write(OK)

    behind = Waits()
    async with front(behind) as it:
        idle, busy = await it.client(), await it.client()
        busy.say(GET)
        await behind.came.wait()
        [port] = it.gateway._ports
        closing = asyncio.ensure_future(port.close(10.0))
        assert await idle.all() == b""
        go_on.set()
        got = await busy.all()
        await closing
    assert got.endswith(b"ok")


async def test_who_has_just_connected_is_answered_before_the_gateway_ends() -> None:
    async with front(Behind()) as it:
        asked, new, half = [await it.client() for _ in range(3)]
        half.say(GET[:9])
        asked.say(GET)
        await asked.head()  # so the others' connections were taken, too
        assert await asked.part(2) == b"ok"
        [port] = it.gateway._ports
        closing = asyncio.ensure_future(port.close(10.0))
        assert await asked.all() == b"", "its next request may as well go elsewhere"
        new.say(GET)
        half.say(GET[9:])
        for each in (new, half):
            assert (await each.all()).endswith(b"ok")
        await closing
