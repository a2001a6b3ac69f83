"""Every transport passes the public suite."""

import asyncio
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import WSCloseCode, WSMsgType, web

from lab.contracts.transport import Arrived, TransportContract
from tenure.runtime.clock import boot_clock
from tenure.transport.contract import LOOKUP, OWNER, Role, Transport
from tenure.transport.doors import Connection
from tenure.transport.faulty import Faults, FaultyTransport
from tenure.transport.in_process import MemoryNetwork, MemoryTransport
from tenure.transport.websocket import WebSocketTransport
from tenure.wire.lease import decode_to_manager
from tenure.wire.versions import NEWEST, agreed, subprotocol


class MemoryPeer:
    def __init__(self, network: MemoryNetwork, url: str, newest: int) -> None:
        self.network = network
        self.url = url
        self.connections: list[Connection] = []
        self.arrived: asyncio.Queue[Arrived] = asyncio.Queue()
        self.gone: dict[Connection, asyncio.Event] = {}
        network.listen(url, self, newest)

    def connected(self, connection: Connection) -> None:
        self.connections.append(connection)
        self.gone[connection] = asyncio.Event()

    def received(self, connection: Connection, data: bytes) -> None:
        number = self.connections.index(connection)
        version = connection.version
        self.arrived.put_nowait(Arrived(number, decode_to_manager(data, version), version))

    def disconnected(self, connection: Connection) -> None:
        self.gone[connection].set()

    async def receive(self) -> Arrived:
        return await self.arrived.get()

    async def send(self, connection: int, data: bytes) -> None:
        self.connections[connection].send(data)

    async def closed(self, connection: int) -> None:
        await self.gone[self.connections[connection]].wait()

    async def drop(self, connection: int) -> None:
        self.connections[connection].close("dropped")

    async def listen(self, newest: int = NEWEST) -> None:
        self.network.listen(self.url, self, newest)

    async def fall_silent(self) -> None:
        self.network.fall_silent(self.url)


class MemoryWorld:
    def __init__(self) -> None:
        self.network = MemoryNetwork()
        self.peers = 0
        self.transports: list[Transport[Any]] = []

    def transport(self, role: Role[Any]) -> Transport[Any]:
        self.transports.append(self.wrapped(self.network.transport(role)))
        return self.transports[-1]

    def wrapped(self, transport: MemoryTransport[Any]) -> Transport[Any]:
        return transport

    async def peer(self, newest: int = NEWEST) -> MemoryPeer:
        self.peers += 1
        return MemoryPeer(self.network, f"http://manager-{self.peers}.test", newest)

    async def close(self) -> None:
        for transport in self.transports:
            await transport.close()


class FaultlessWorld(MemoryWorld):
    """A faulty transport that was given no faults."""

    def wrapped(self, transport: MemoryTransport[Any]) -> Transport[Any]:
        return FaultyTransport(transport, Faults(), Random(1), boot_clock)


class WebSocketPeer:
    def __init__(self) -> None:
        self.port = 0
        self.newest = NEWEST
        self.sockets: list[web.WebSocketResponse] = []
        self.arrived: asyncio.Queue[Arrived] = asyncio.Queue()
        self.gone: list[asyncio.Event] = []
        self.runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def listen(self, newest: int = NEWEST) -> None:
        self.newest = newest
        app = web.Application()
        for role in (OWNER, LOOKUP):
            app.router.add_get(role.path, self.serve)
        self.runner = web.AppRunner(app, shutdown_timeout=0)
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = self.runner.addresses[0][1]

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        # The first version had no name: a peer that speaks only that one chooses none.
        names = [subprotocol(version) for version in range(self.newest, 1, -1)]
        socket = web.WebSocketResponse(protocols=names)
        await socket.prepare(request)
        number = len(self.sockets)
        version = agreed([socket.ws_protocol] if socket.ws_protocol else [])
        self.sockets.append(socket)
        self.gone.append(asyncio.Event())
        async for frame in socket:
            assert frame.type is WSMsgType.BINARY
            message = decode_to_manager(frame.data, version)
            self.arrived.put_nowait(Arrived(number, message, version))
        self.gone[number].set()
        return socket

    async def receive(self) -> Arrived:
        return await self.arrived.get()

    async def send(self, connection: int, data: bytes) -> None:
        await self.sockets[connection].send_bytes(data)

    async def closed(self, connection: int) -> None:
        await self.gone[connection].wait()

    async def drop(self, connection: int) -> None:
        await self.sockets[connection].close(code=WSCloseCode.GOING_AWAY)

    async def fall_silent(self) -> None:
        runner, self.runner = self.runner, None
        for socket in self.sockets:
            await socket.close(code=WSCloseCode.GOING_AWAY)
        if runner is not None:
            await runner.cleanup()


class WebSocketWorld:
    def __init__(self) -> None:
        self.peers: list[WebSocketPeer] = []
        self.transports: list[Transport[Any]] = []

    def transport(self, role: Role[Any]) -> Transport[Any]:
        self.transports.append(WebSocketTransport(role))
        return self.transports[-1]

    async def peer(self, newest: int = NEWEST) -> WebSocketPeer:
        self.peers.append(WebSocketPeer())
        await self.peers[-1].listen(newest)
        return self.peers[-1]

    async def close(self) -> None:
        for transport in self.transports:
            await transport.close()
        for peer in self.peers:
            await peer.fall_silent()


@pytest.mark.asyncio
class TestMemory(TransportContract):
    @pytest_asyncio.fixture
    async def world(self) -> AsyncIterator[MemoryWorld]:
        world = MemoryWorld()
        yield world
        await world.close()


@pytest.mark.asyncio
class TestFaultless(TransportContract):
    @pytest_asyncio.fixture
    async def world(self) -> AsyncIterator[FaultlessWorld]:
        world = FaultlessWorld()
        yield world
        await world.close()


@pytest.mark.asyncio
class TestWebSocket(TransportContract):
    @pytest_asyncio.fixture
    async def world(self) -> AsyncIterator[WebSocketWorld]:
        world = WebSocketWorld()
        yield world
        await world.close()
