"""Every port that this library listens on speaks TLS, asks for certificates where it is told to,
and shows a new one without a restart. SECURITY.md has a table of them.
"""

import ast
import asyncio
import re
import shutil
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from tenure.cli.service_gate import service_port
from tenure.manager.config import ManagerSettings
from tenure.manager.service import ManagerService
from tenure.member.aiohttp_listener import AiohttpListener
from tenure.member.listener import OwnListener, bound
from tenure.services.documents.service import Documents
from tenure.services.feeds.service import Feeds
from tenure.services.service import ServiceSettings
from tenure.services.serving import served
from tenure.transport import tls
from tenure.transport.credentials import Credentials
from tenure.transport.websocket_channels import WebSocketChannels
from tenure.transport.websocket_door import WebSocketDoor
from tests.certificates import Authority
from tests.repo.reading import ROOT
from tests.unit.manager.serving import serving

Opened = Callable[[Credentials], AbstractAsyncContextManager[str]]


@asynccontextmanager
async def manager(credentials: Credentials) -> AsyncIterator[str]:
    settings = ManagerSettings(
        port=0,
        journal="memory",
        tls_cert=Path(credentials.cert or ""),
        tls_key=Path(credentials.key or ""),
        tls_client_ca=Path(credentials.ca or "") if credentials.mutual else None,
    )
    async with ManagerService(settings) as service:
        yield service.url


@asynccontextmanager
async def channels(credentials: Credentials) -> AsyncIterator[str]:
    async def serve(_: object) -> None:
        await asyncio.Event().wait()

    listening = WebSocketChannels(credentials)
    yield await listening.listen("127.0.0.1:0", serve)
    await listening.close()


class Nobody:
    """A listener whom nobody reaches."""

    def connected(self, connection: object) -> None: ...
    def received(self, connection: object, data: bytes) -> None: ...
    def disconnected(self, connection: object) -> None: ...


@asynccontextmanager
async def door(credentials: Credentials) -> AsyncIterator[str]:
    listening = WebSocketDoor("/v1/x", credentials)
    yield await listening.open("127.0.0.1:0", Nobody())
    await listening.close("it is over")


@asynccontextmanager
async def asgi(credentials: Credentials) -> AsyncIterator[str]:
    async def app(scope: object, receive: object, send: object) -> None: ...

    listening = OwnListener(app, "127.0.0.1:0", credentials)
    await listening.start()
    yield listening.url
    await listening.stop()


@asynccontextmanager
async def aiohttp(credentials: Credentials) -> AsyncIterator[str]:
    listening = AiohttpListener(web.Application(), bound("127.0.0.1:0"), str, credentials)
    await listening.start()
    yield listening.url
    await listening.stop()


@asynccontextmanager
async def service(credentials: Credentials) -> AsyncIterator[str]:
    async with serving() as serves:
        settings = ServiceSettings(pool="documents", managers=serves.service.url)
        documents = Documents(settings, watchdog=None)
        async with served(
            documents, "127.0.0.1", 0, service_port, tls=credentials.for_listening()
        ) as url:
            yield url


@asynccontextmanager
async def feeds(credentials: Credentials) -> AsyncIterator[str]:
    settings = ServiceSettings(pool="feeds", managers="http://127.0.0.1:1")
    async with Feeds(settings, credentials=credentials).private(service_port) as url:
        yield url


LISTENERS: dict[str, Opened] = {
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
    "member/aiohttp_listener.py": "the member of aiohttp",
    "transport/datagram.py": "gossip",
    "transport/http_listener.py": "the manager, channels, doors and services",
}
CALLS = {"create_server", "start_server", "create_datagram_endpoint", "SockSite", "TCPSite"}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


async def shown(url: str, context: ssl.SSLContext) -> bytes:
    """The certificate that a listener shows to who is let in. Raises OSError for who is not."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(
        parts.hostname, parts.port, ssl=context, server_hostname="127.0.0.1"
    )
    try:
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        if not await reader.read(1):  # with TLS 1.3 who has no certificate learns it only here
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
