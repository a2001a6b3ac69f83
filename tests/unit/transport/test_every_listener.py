"""Every port on which this library listens speaks TLS, asks for certificates if it is told to,
shows a new one without a restart, and bounds what strangers can take of it.

SECURITY.md has a table of them.
"""

import ast
import asyncio
import re
import shutil
import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from tenure.cli.service_gate import ServiceGate, service_port
from tenure.manager.access.pages import OwnNames
from tenure.manager.config import ManagerSettings
from tenure.manager.limits import ManagerLimits
from tenure.manager.service import ManagerService
from tenure.member.aiohttp.listener import AiohttpDoor, AiohttpListener
from tenure.member.asgi import Receive, Scope, Send
from tenure.member.listener import OwnListener
from tenure.services.documents.service import Documents
from tenure.services.feeds.service import Feeds
from tenure.services.service import ServiceSettings
from tenure.services.serving import served
from tenure.transport import tls
from tenure.transport.bounded_port import LEAST_BYTES, TakenConnection
from tenure.transport.connection_limits import ConnectionLimits
from tenure.transport.credentials import NOTHING, Credentials
from tenure.transport.websocket_channels import WebSocketChannels
from tenure.transport.websocket_door import WebSocketDoor
from tests.certificates import Authority
from tests.patience import DEADLINE_SECONDS, until
from tests.repo.reading import ROOT
from tests.unit.manager.serving import serving
from tests.unit.transport.passing_on import passing_on

LIMITS = ConnectionLimits()
FEW = ConnectionLimits(connections=6, of_a_peer=6, silent_of_a_peer=6)
SHORT = ConnectionLimits(silent_of_a_peer=3, silent_seconds=0.3, stuck_seconds=0.3)
LARGE = b"0" * 20_000_000


class Opened(Protocol):
    """Listens, with these limits."""

    def __call__(
        self, credentials: Credentials, limits: ConnectionLimits = LIMITS
    ) -> AbstractAsyncContextManager[str]: ...


@asynccontextmanager
async def manager(
    credentials: Credentials, limits: ConnectionLimits = LIMITS
) -> AsyncIterator[str]:
    settings = ManagerSettings(
        port=0,
        journal="memory",
        tls_cert=Path(credentials.cert) if credentials.cert else None,
        tls_key=Path(credentials.key) if credentials.key else None,
        tls_client_ca=Path(credentials.ca or "") if credentials.mutual else None,
        limits=ManagerLimits(
            connections=limits.connections,
            connections_of_a_peer=limits.of_a_peer,
            silent_of_a_peer=limits.silent_of_a_peer,
            silent_seconds=limits.silent_seconds,
            stuck_seconds=limits.stuck_seconds,
        ),
    )
    async with ManagerService(settings) as service:
        yield service.url


@asynccontextmanager
async def channels(
    credentials: Credentials, limits: ConnectionLimits = LIMITS
) -> AsyncIterator[str]:
    async def serve(_: object) -> None:
        await asyncio.Event().wait()

    listening = WebSocketChannels(credentials, limits)
    yield await listening.listen("127.0.0.1:0", serve)
    await listening.close()


class Nobody:
    """A listener whom nobody reaches."""

    def connected(self, connection: object) -> None: ...
    def received(self, connection: object, data: bytes) -> None: ...
    def disconnected(self, connection: object) -> None: ...


@asynccontextmanager
async def door(credentials: Credentials, limits: ConnectionLimits = LIMITS) -> AsyncIterator[str]:
    listening = WebSocketDoor("/v1/x", credentials, limits=limits)
    yield await listening.open("127.0.0.1:0", Nobody())
    await listening.close("it is over")


@asynccontextmanager
async def asgi(credentials: Credentials, limits: ConnectionLimits = LIMITS) -> AsyncIterator[str]:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        body = LARGE if scope["path"] == "/large" else b""
        start = {"type": "http.response.start", "status": 200}
        await send({**start, "headers": [(b"content-length", b"%d" % len(body))]})
        await send({"type": "http.response.body", "body": body})

    listening = OwnListener(app, "127.0.0.1:0", credentials, limits)
    await listening.start()
    yield listening.url
    await listening.stop()


@asynccontextmanager
async def aiohttp(
    credentials: Credentials, limits: ConnectionLimits = LIMITS
) -> AsyncIterator[str]:
    async def answer(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=LARGE if request.path == "/large" else b"")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    app.pre_freeze()
    app.freeze()
    listening = AiohttpListener(AiohttpDoor(app, str), "127.0.0.1:0", credentials, limits)
    await listening.start()
    yield listening.url
    await listening.stop()


@asynccontextmanager
async def service(
    credentials: Credentials, limits: ConnectionLimits = LIMITS
) -> AsyncIterator[str]:
    async with serving() as serves:
        settings = ServiceSettings(pool="documents", managers=serves.service.url)
        documents = Documents(settings, watchdog=None)
        names = OwnNames("service", "http://127.0.0.1", (), is_loopback=True)
        async with served(
            documents,
            "127.0.0.1",
            0,
            partial(service_port, limits=limits),
            check=ServiceGate("documents", names, None),
            tls=credentials.for_listening(),
        ) as url:
            yield url


@asynccontextmanager
async def feeds(credentials: Credentials, limits: ConnectionLimits = LIMITS) -> AsyncIterator[str]:
    settings = ServiceSettings(pool="feeds", managers="http://127.0.0.1:1")
    async with Feeds(settings, credentials=credentials).private(
        partial(service_port, limits=limits)
    ) as url:
        yield url


@asynccontextmanager
async def gateway(
    credentials: Credentials, limits: ConnectionLimits = LIMITS
) -> AsyncIterator[str]:
    async with aiohttp(NOTHING) as behind, passing_on(behind, credentials, limits) as url:
        yield url


LISTENERS: dict[str, Opened] = {
    "gateway": gateway,
    "manager": manager,
    "hand-off of an owner": channels,
    "port of entities": channels,
    "cache server, volume": door,
    "member of ASGI": asgi,
    "member of aiohttp": aiohttp,
    "store node": door,
    "service of `tenure serve`": service,
    "port of feeds": feeds,
}
WITHOUT_TLS = {"gossip of a store node"}
LISTENING = {
    "cli/demo/owner.py": "the demo's service, on loopback",
    "manager/listening.py": "the manager",
    "transport/datagram.py": "gossip",
    "transport/http_listener.py": "the manager, channels, doors and services",
}
CALLS = {"create_server", "start_server", "create_datagram_endpoint", "SockSite", "TCPSite"}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


async def shown(url: str, context: ssl.SSLContext) -> bytes:
    """Return the certificate that a listener shows to a peer that it admits. Raises OSError for
    others.
    """
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(
        parts.hostname, parts.port, ssl=context, server_hostname="127.0.0.1"
    )
    try:
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        if not await reader.read(1):  # with TLS 1.3 a peer without one learns it only here
            raise ConnectionError("closed")
        found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return found
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


@pytest.mark.asyncio
@pytest.mark.parametrize("name", LISTENERS)
async def test_it_speaks_tls_and_shows_a_new_certificate_without_a_restart(
    name: str, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls, "LOOK_SECONDS", 0)
    first, second = authority.sign("first"), authority.sign("second")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    shutil.copy(first.cert, cert)
    shutil.copy(first.key, key)
    trusting = ssl.create_default_context(cafile=str(authority.file))
    async with LISTENERS[name](Credentials(cert=cert, key=key)) as url, asyncio.timeout(60):
        assert url.startswith("https://")
        before = await shown(url, trusting)
        assert before == ssl.PEM_cert_to_DER_cert(first.cert.read_text())
        second.cert.replace(cert)
        second.key.replace(key)
        assert await shown(url, trusting) == ssl.PEM_cert_to_DER_cert(cert.read_text())


@pytest.mark.asyncio
@pytest.mark.parametrize("name", LISTENERS)
async def test_told_to_it_lets_in_nobody_without_a_certificate_of_its_authority(
    name: str, authority: Authority, tmp_path: Path
) -> None:
    own, client = authority.sign("own"), authority.sign("client")
    forged = Authority(tmp_path, "other").sign("forged")
    credentials = Credentials(ca=authority.file, cert=own.cert, key=own.key, mutual=True)

    def context(identity: object = None) -> ssl.SSLContext:
        made = ssl.create_default_context(cafile=str(authority.file))
        if identity is not None:
            made.load_cert_chain(identity.cert, identity.key)  # type: ignore[attr-defined]
        return made

    async with LISTENERS[name](credentials) as url, asyncio.timeout(60):
        for stranger in (context(), context(forged)):
            with pytest.raises(OSError):  # noqa: PT011 - of TLS, or that the connection is gone
                await shown(url, stranger)
        assert await shown(url, context(client))


@asynccontextmanager
async def connected(url: str, said: bytes = b"") -> AsyncIterator[asyncio.StreamReader]:
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=1000)
    writer.write(said)
    try:
        yield reader
    finally:
        writer.transport.abort()


async def ended(reader: asyncio.StreamReader) -> bytes:
    """Read until the connection ends, however it ends, and return what came."""
    came = b""
    with suppress(ConnectionError):
        while more := await reader.read(1 << 20):
            came += more
    return came


@pytest.mark.asyncio
@pytest.mark.parametrize("name", LISTENERS)
async def test_it_lets_go_who_says_nothing_and_half_of_a_header(name: str) -> None:
    async with (
        asyncio.timeout(DEADLINE_SECONDS),
        LISTENERS[name](NOTHING, SHORT) as url,
        AsyncExitStack() as stack,
    ):
        said = [b"", b"GET / HTTP/1.1\r\nHo", b"", b""]
        silent = [await stack.enter_async_context(connected(url, each)) for each in said]
        first = asyncio.create_task(ended(silent[0]))
        others = [asyncio.create_task(ended(each)) for each in silent[1:]]
        await asyncio.wait([first, *others], return_when=asyncio.FIRST_COMPLETED)
        assert first.done(), "more than three were silent, so the first of them gives way"
        assert [b"", *await asyncio.gather(*others)] == [b""] * 4


@pytest.mark.asyncio
@pytest.mark.parametrize("name", LISTENERS)
async def test_it_lets_go_who_never_agrees_on_tls(name: str, authority: Authority) -> None:
    own = authority.sign("own")
    limits = ConnectionLimits(silent_seconds=0.3)
    async with (
        asyncio.timeout(DEADLINE_SECONDS / 2),  # asyncio itself waits for a minute
        LISTENERS[name](Credentials(cert=own.cert, key=own.key), limits) as url,
        connected(url) as silent,
        connected(url, b"\x16\x03\x01") as half,
    ):
        assert [await ended(each) for each in (silent, half)] == [b"", b""]


@pytest.mark.asyncio
@pytest.mark.parametrize("name", LISTENERS)
async def test_it_takes_only_so_many_connections(name: str) -> None:
    """Each makes a request, and stays."""
    async with (
        asyncio.timeout(DEADLINE_SECONDS),
        LISTENERS[name](NOTHING, FEW) as url,
        AsyncExitStack() as stack,
    ):
        answers = []
        for _ in range(7):
            head = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
            reader = await stack.enter_async_context(connected(url, head))
            answers.append((await reader.readuntil(b"\r\n\r\n")).split()[1])
            if len(answers) == 7:
                assert b"there are 6 connections already" in await ended(reader)
        assert b"503" not in answers[:6]
        assert answers[6] == b"503"


MEMBERS = ("member of ASGI", "member of aiohttp", "gateway")
SOCKETS = {
    "manager": "/v1/owner",
    "hand-off of an owner": "/v1/hand-off",
    "port of entities": "/v1/hand-off",
    "cache server, volume": "/v1/x",
    "store node": "/v1/x",
}
"""The paths at which listeners accept WebSockets. Members have none of their own: they pass on what
a page may ask anyway.
"""


@pytest.mark.asyncio
@pytest.mark.parametrize("name", [each for each in LISTENERS if each not in MEMBERS])
async def test_no_page_of_another_site_speaks_to_it(name: str) -> None:
    """Browsers let any page open a WebSocket to this machine, and post what is no JSON."""
    asked = {
        "GET": f"GET {SOCKETS.get(name, '/limits')} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n",
        "POST": "POST /feeds/a/bodies HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\n"
        "Content-Length: 0\r\n",
    }
    async with asyncio.timeout(DEADLINE_SECONDS), LISTENERS[name](NOTHING) as url:
        for head in [asked["GET"]] if name in SOCKETS else asked.values():
            said = f"{head}Origin: http://evil.example\r\n\r\n".encode()
            said = said.replace(b"Host: 127.0.0.1", b"Host: " + urlsplit(url).netloc.encode())
            async with connected(url, said) as reader:
                assert (await reader.readline()).split()[1] == b"403", head


TAKE_BODIES = ("manager", *MEMBERS, "service of `tenure serve`", "port of feeds")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("name", "is_first"),
    # After a later one, aiohttp reads ten seconds more of what it has refused already.
    [*((name, True) for name in TAKE_BODIES), *((name, False) for name in MEMBERS)],
)
async def test_it_lets_go_who_does_not_finish_a_body(
    name: str,
    is_first: bool,
) -> None:
    """Whether it is the first request of its connection or a later one."""
    before = b"" if is_first else b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    begun = b"POST /feeds/a/bodies HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{"
    async with (
        asyncio.timeout(DEADLINE_SECONDS),
        LISTENERS[name](NOTHING, SHORT) as url,
        connected(url, before + begun) as reader,
    ):
        answers = re.findall(rb"HTTP/1.1 (\d+)", await ended(reader))
        assert len(answers) <= (1 if is_first else 2)
        assert b"200" not in answers[0 if is_first else 1 :]


@pytest.mark.asyncio
@pytest.mark.parametrize("name", MEMBERS)
async def test_a_member_lets_go_who_sends_a_body_byte_by_byte(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "tenure.transport")
    head = b"Host: localhost\r\nContent-Length: 1000000\r\n\r\n"
    async with asyncio.timeout(DEADLINE_SECONDS), LISTENERS[name](NOTHING, SHORT) as url:
        parts = urlsplit(url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")  # it is no longer a newcomer
        assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
        writer.write(b"POST / HTTP/1.1\r\n" + head)
        told = f"sent less than {LEAST_BYTES} bytes of a request"
        while told not in caplog.text:
            writer.write(b"x")
            await asyncio.sleep(0.01)
        await ended(reader)
        writer.close()


@pytest.mark.asyncio
async def test_a_member_does_not_take_its_own_slowness_for_that_of_a_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It does not read the part of a body that it does not take, and then nobody can send it."""
    looks, stuck = 0, TakenConnection.stuck

    def counted(self: TakenConnection, *arguments: Any) -> str:  # noqa: ANN401
        nonlocal looks
        looks += 1
        return stuck(self, *arguments)

    monkeypatch.setattr(TakenConnection, "stuck", counted)

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        enough = looks + 5
        await until(lambda: looks >= enough)
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    limits = ConnectionLimits(stuck_seconds=1)  # on a busy machine this client is slow, too
    listening = OwnListener(slow, "127.0.0.1:0", NOTHING, limits)
    await listening.start()
    said = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(LARGE)
    async with asyncio.timeout(DEADLINE_SECONDS), connected(listening.url, said + LARGE) as reader:
        assert b" 200 " in await reader.readuntil(b"\r\n")
    await listening.stop()


@pytest.mark.asyncio
@pytest.mark.parametrize("name", MEMBERS)
async def test_a_member_lets_go_who_reads_nothing_of_an_answer(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "tenure.transport")
    async with (
        asyncio.timeout(DEADLINE_SECONDS),
        LISTENERS[name](NOTHING, SHORT) as url,
        connected(url, b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n") as reader,
    ):
        await until(lambda: "read nothing of its answer" in caplog.text)
        assert len(await ended(reader)) < len(LARGE)


@pytest.mark.asyncio
async def test_half_a_header_after_a_request_does_not_keep_a_connection_for_ever() -> None:
    """Uvicorn's own limit for a connection between two requests ends with the first byte."""
    async with (
        asyncio.timeout(DEADLINE_SECONDS),
        LISTENERS["member of ASGI"](NOTHING, SHORT) as url,
    ):
        parts = urlsplit(url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
        writer.write(b"GET / HT")
        assert await ended(reader) == b""
        writer.close()


def test_the_table_of_listeners_has_these_and_no_others() -> None:
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    table = text[text.index("| listener |") :].partition("\n\n")[0]
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines()[2:]]
    assert {row[0] for row in rows if row[2] == "yes"} == set(LISTENERS)
    assert {row[0] for row in rows if re.match("no", row[2])} == WITHOUT_TLS


def test_no_other_file_of_the_library_listens() -> None:
    """A port that nobody thought of here would have no TLS."""
    source = ROOT / "src" / "tenure"
    found = set()
    for path in source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in CALLS:
                found.add(str(path.relative_to(source)))
    assert found == set(LISTENING)
