"""Attackers of the benchmark `hostile` that say what they have achieved: where a server has the
fault that they look for, they say so.
"""

import asyncio
import json
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from benchmarks._attacked_services import Withdrawal
from benchmarks._attacks import withdrawn
from benchmarks._attacks.attempt import Attack, Attempt, Shown
from benchmarks._attacks.feeders import inward_sources
from benchmarks._attacks.visitors import elsewhere, slashes
from benchmarks._attacks.withdrawn import resumptions
from tenure.transport import tls
from tenure.transport.tls import ServerTls

pytestmark = pytest.mark.asyncio
Answer = Callable[[str, bytes], Awaitable[str]]
"""What is said of a request: by the target of its head, and its body."""


@asynccontextmanager
async def serving(answer: Answer, context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A server of HTTP that has a fault; its port."""
    serving: set[asyncio.Task[None]] = set()

    async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        serving.add(task)
        with suppress(EOFError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                _, is_told, size = head.partition("Content-Length: ")
                body = await reader.readexactly(int(size.split()[0]) if is_told else 0)
                writer.write((await answer(head.split()[1], body)).encode())
        await closed(writer)

    server = await asyncio.start_server(on_connection, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]
        if serving:
            await asyncio.wait(serving)


async def closed(writer: asyncio.StreamWriter) -> None:
    """Close a connection, and wait until it is."""
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


async def achieved(by: Attack, answer: Answer) -> int:
    """How often one attempt achieves what it is after."""
    reached: Counter[str] = Counter()
    async with serving(answer) as port:
        url = f"http://127.0.0.1:{port}"
        it = Attempt(url, 0, "127.0.0.1", reach=lambda: reached.update("1"))
        try:
            await by(it)
        finally:
            it.abort()
    return reached.total()


async def visit(url: str) -> None:
    """Connect to whatever host this names."""
    to = urlsplit(url)
    with suppress(OSError, ValueError):
        _, writer = await asyncio.open_connection(to.hostname, to.port)
        await closed(writer)


def said(status: int, *headers: str) -> str:
    lines = f"HTTP/1.1 {status} It is\r\nContent-Length: 0\r\n", *headers, "\r\n"
    return "".join(lines)


async def test_a_target_that_leads_elsewhere_is_found() -> None:
    async def joined(target: str, body: bytes) -> str:
        """Join the URL of a member and the target as text, and go there."""
        del body
        await visit("http://127.0.0.1:1" + target)
        return said(502)

    async def refused(target: str, body: bytes) -> str:
        del target, body
        return said(400)

    assert await achieved(elsewhere, joined) > 0
    assert await achieved(elsewhere, refused) == 0


async def test_a_key_that_only_the_router_sees_is_found() -> None:
    async def decodes_late(target: str, body: bytes) -> str:
        """Find the owner by the target as it is spelled, and serve the key that it means."""
        del body
        found = target.startswith("/carts/") and "%" not in target
        return said(200, f"Served-By: {'owner' if found else 'another'}\r\n")

    async def decodes_first(target: str, body: bytes) -> str:
        del body
        return said(200 if unquote(target).count("/") == 2 else 404, "Served-By: owner\r\n")

    assert await achieved(slashes, decodes_late) > 0
    assert await achieved(slashes, decodes_first) == 0


async def test_a_source_that_leads_inwards_is_found() -> None:
    async def asks(target: str, body: bytes) -> str:
        del target
        if b"2130706433" in body:
            port = urlsplit(json.loads(body)["url"]).port
            await visit(f"http://127.0.0.1:{port}")
        return said(201)

    async def refuses(target: str, body: bytes) -> str:
        del target, body
        return said(422)

    assert await achieved(inward_sources, asks) == 1
    assert await achieved(inward_sources, refuses) == 0


class Resuming(ServerTls):
    """Hands out tickets, by which a session is resumed."""

    def _make(self) -> ssl.SSLContext:
        made = super()._make()
        made.num_tickets = 2
        made.options &= ~ssl.OP_NO_TICKET
        return made


async def healthy(target: str, body: bytes) -> str:
    del target, body
    return said(200)


@pytest.mark.parametrize(("kind", "count"), [(Resuming, 1), (ServerTls, 0)])
async def test_a_session_that_is_resumed_after_the_withdrawal_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[ServerTls], count: int
) -> None:
    monkeypatch.setattr(tls, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(withdrawn, "_kept", {})
    withdrawal, reached = Withdrawal(tmp_path), Counter[str]()
    server = kind(*withdrawal.server, withdrawal.taken)
    async with serving(healthy, server.context()) as port:
        shows = Shown(str(withdrawal.identity))
        it = Attempt(
            f"https://127.0.0.1:{port}", 0, "127.0.0.1", shows, lambda: reached.update("1")
        )
        await resumptions(it)
        assert not reached, "it is let in by its certificate"
        withdrawal.withdraw()
        await resumptions(it)
        assert reached.total() == count
        withdrawal.let_in()
        await resumptions(it)
        assert reached.total() == count
