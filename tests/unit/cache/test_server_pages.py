"""A cache server shows its state at its own port: what it shows, to whom, and to whom not."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import aiohttp
import msgspec
import pytest

from tenure import Cache, CacheServer, Credentials, OutcomeUnknown, Volume
from tenure.base.hosts import is_of_no_site
from tenure.cache import cache_server
from tenure.cache.cache_engine import PATH
from tenure.cache.object_keys import ObjectKeys
from tenure.cache.server_pages import VolumeAnswer
from tenure.protocol.lease.reports import TierReport
from tenure.protocol.volume.messages import Fetch, Fetched, Reconnect, Reconnected
from tenure.testing.cluster import ClusterEnvironment
from tenure.transport.doors import Door, Listener, ShowsPage
from tenure.transport.in_process import MemoryDoor, MemoryNetwork
from tenure.wire.versions import NEWEST, SUBPROTOCOLS
from tenure.wire.volume import decode_to_cache, encode_volume
from tests.certificates import Authority
from tests.patience import DEADLINE_SECONDS
from tests.unit.cache.stage import Stage, stage

KEY = "row <b>7</b>"


class Shown(NamedTuple):
    volume: Volume[str]
    server: CacheServer
    session: aiohttp.ClientSession

    async def get(self, path: str, **headers: str) -> tuple[int, str]:
        async with self.session.get(self.server.url + path, headers=headers) as response:
            return response.status, await response.text()

    async def read(self) -> VolumeAnswer:
        status, text = await self.get("/v1/status")
        assert status == 200
        return msgspec.json.decode(text, type=VolumeAnswer)


@asynccontextmanager
async def shown() -> AsyncIterator[Shown]:
    volume: Volume[str] = Volume({KEY: "old"}.get, value_type=str, term=2.0)
    async with (
        asyncio.timeout(DEADLINE_SECONDS),
        CacheServer(volume, listen="127.0.0.1:0") as server,
        aiohttp.ClientSession() as session,
    ):
        yield Shown(volume, server, session)


async def silent_reader(at: Shown) -> aiohttp.ClientWebSocketResponse:
    """A cache that has read the key, and says nothing any more."""
    socket = await at.session.ws_connect(at.server.url + PATH, protocols=SUBPROTOCOLS)
    await socket.send_bytes(encode_volume(Reconnect(client=7, sequence=1, history=0), NEWEST))
    on_record = decode_to_cache(await socket.receive_bytes(), NEWEST)
    assert isinstance(on_record, Reconnected)
    key, reader = ObjectKeys(str, "alone").key(KEY), on_record.reader
    fetch = Fetch(client=7, epoch=on_record.epoch, reader=reader, sequence=2, key=key)
    await socket.send_bytes(encode_volume(fetch, NEWEST))
    assert isinstance(decode_to_cache(await socket.receive_bytes(), NEWEST), Fetched)
    return socket


@pytest.mark.asyncio
async def test_readers_are_counted_and_a_write_says_for_whom_it_waits() -> None:
    async with shown() as at, Cache(at.server.url, value_type=str) as cache:
        assert await cache.get(KEY) == "old"
        assert (await at.read()).volume.readers == 1
        socket = await silent_reader(at)

        async def write() -> None:
            async with at.volume.write(KEY):
                pass

        writing = asyncio.ensure_future(write())
        name = socket.get_extra_info("sockname")
        wanted = [(KEY, (f"{name[0]}:{name[1]}",))]
        waiting: list[tuple[str, tuple[str, ...]]] = []
        while waiting != wanted:  # the other one lets go of it at once
            waiting = [(each.keys, each.readers) for each in (await at.read()).volume.waiting]
        _, page = await at.get("/")
        assert "row &lt;b&gt;7&lt;/b&gt;" in page
        assert "<b>" not in page
        _, metrics = await at.get("/metrics")
        assert f'tenure_server_volume_writes{{url="{at.server.url}"}} 1.0' in metrics
        await socket.close()
        await writing
        assert (await at.read()).volume.waiting == ()
        assert "No write is waiting." in (await at.get("/"))[1]


@pytest.mark.asyncio
async def test_pages_of_other_sites_see_nothing_and_there_is_nothing_else() -> None:
    async with shown() as at:
        assert (await at.get("/healthz"))[0] == 200
        for path in ("/", "/v1/status", "/metrics", "/healthz"):
            assert (await at.get(path, Host="evil.example"))[0] == 403
            assert (await at.get(path, Origin="http://evil.example"))[0] == 403
        for path in ("/v1", "/v1/status/x", "//", "/%2e%2e/etc/passwd", "/index.html"):
            assert (await at.get(path))[0] == 404, path
        async with at.session.post(at.server.url + "/v1/status") as response:
            assert response.status == 405
        async with at.session.get(at.server.url + "/") as response:
            assert response.headers["Content-Security-Policy"].startswith("default-src 'none'")


class EarlyDoor(MemoryDoor):
    """Somebody asks for a page while it is being opened."""

    def __init__(self, network: MemoryNetwork) -> None:
        super().__init__(network)
        self.pages: list[object] = []
        self._page: ShowsPage

    def show(self, page: ShowsPage) -> None:
        self._page = page

    async def open(self, where: str, listener: Listener, address: str | None = None) -> str:
        self.pages.append(self._page("/", ""))
        url = await super().open(where, listener)
        self.pages.append(self._page("/healthz", ""))
        return url


class EarlyEnvironment(ClusterEnvironment):
    """Its doors are asked early."""

    def __init__(self, it: Stage) -> None:
        super().__init__(it.cluster)
        self.opened = EarlyDoor(it.network)

    def door(self, path: str) -> Door:
        del path
        return self.opened


@pytest.mark.asyncio
async def test_before_a_server_has_begun_it_shows_nothing() -> None:
    """Its port is open a little earlier."""
    async with stage() as it:
        environment = EarlyEnvironment(it)
        async with CacheServer(it.volume(), _environment=environment):
            assert environment.opened.pages == [None, None]


@pytest.mark.asyncio
async def test_a_server_that_is_too_busy_to_say_how_it_is_says_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with stage() as it, it.server(it.volume()) as server:
        gate = threading.Event()
        monkeypatch.setattr(cache_server, "TELL_SECONDS", 0.01)
        server._engine.shell.call(lambda: _wait(gate))
        try:
            assert server.tiers() == TierReport()
        finally:
            gate.set()
        monkeypatch.setattr(cache_server, "TELL_SECONDS", DEADLINE_SECONDS)
        assert server.tiers().volume is not None


def _wait(gate: threading.Event) -> None:
    gate.wait(DEADLINE_SECONDS)


@pytest.mark.asyncio
async def test_of_a_write_of_many_objects_the_first_few_are_shown() -> None:
    async with stage() as it, it.server(it.volume()) as server:
        writing = asyncio.ensure_future(server.volume.changed(*"abcdefg"))
        await it.turn(0)
        volume = server.tiers().volume
        assert volume is not None
        assert [each.keys for each in volume.waiting] == ["a, b, c, d, e"]
        await it.after(4, writing)


@pytest.mark.asyncio
async def test_a_write_whose_key_is_of_another_type_is_shown_too() -> None:
    """The key is shown by its bytes; the reader that asked for it is told what is wrong."""
    async with stage() as it, it.server(it.volume()) as server:
        cache = await it.enter(key_type=bytes)
        writing = asyncio.ensure_future(cache.write(b"\xff\x00", "new"))
        await it.turn(0.1)
        volume = server.tiers().volume
        assert volume is not None
        (shown,) = volume.waiting
        assert "ff00" in shown.keys
        with pytest.raises(OutcomeUnknown, match="KeyTypeError"):
            await it.after(4, writing)


def test_who_asks_callers_for_certificates_may_be_reached_by_anybody(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    mine = authority.sign("cache-server")
    credentials = Credentials(ca=authority.file, cert=mine.cert, key=mine.key, mutual=True)
    volume: Volume[str] = Volume({KEY: "old"}.get, value_type=str)
    assert CacheServer(volume, listen="0.0.0.0:7500", credentials=credentials).listen


@pytest.mark.parametrize(
    ("host", "is_so"),
    [
        ("127.0.0.1:7500", True),
        ("[::1]:7500", True),
        ("localhost", True),
        ("cache-1:7500", True),
        ("evil.example", False),
        ("127.0.0.1.evil.example:80", False),
        ("", False),
        ("[evil.example]", False),
    ],
)
def test_a_name_with_a_dot_may_be_a_sites(host: str, *, is_so: bool) -> None:
    assert is_of_no_site(host) == is_so
