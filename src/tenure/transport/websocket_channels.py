"""Channels over WebSocket: one connection each, one binary frame a message.

A quiet connection is pinged, as those to managers are: the other host may have vanished. Nothing is
compressed: messages are packed already, and the network is faster than compression. A peer that
connects and opens no channel is disconnected after some seconds.
"""

import asyncio
from contextlib import AsyncExitStack, suppress

import aiohttp
from aiohttp import WSCloseCode, hdrs, web
from msgspec.structs import replace

from tenure.base.instants import seconds
from tenure.base.origin import parse
from tenure.errors import ConfigurationError
from tenure.transport.bounded_port import log_refused
from tenure.transport.channels import Channel, ChannelLost, Serve
from tenure.transport.connection_limits import ConnectionLimits
from tenure.transport.contract import PING_SECONDS
from tenure.transport.credentials import NOTHING, Credentials
from tenure.transport.dialled_socket import DialledSocket
from tenure.transport.fair_turns import FRAMES_A_TURN, FairTurns
from tenure.transport.frame_socket import CLOSE_SECONDS
from tenure.transport.guarded_app import check_proof, guard_app
from tenure.transport.handshakes import NoHandshake, answer_handshake
from tenure.transport.http_listener import HttpListener
from tenure.transport.pool_secret import PoolSecret
from tenure.transport.port_guard import PortGuard
from tenure.transport.proving import proof_for
from tenure.transport.rate_bound import RateBound
from tenure.transport.redirects import follow_nothing
from tenure.transport.socket_channel import SocketChannel
from tenure.transport.unfinished_messages import UnfinishedMessages
from tenure.transport.urls import url_at
from tenure.transport.websocket import CONNECT_SECONDS, reason
from tenure.transport.websocket_door import MESSAGES_A_SECOND, MESSAGES_AT_ONCE
from tenure.wire.limits import HAND_OFF_BYTES

PATH = "/v1/hand-off"
SILENCE_SECONDS = 5.0
"""The time in which a connection must open a channel: a socket is cheap for a peer, and an owner
has a limited number.
"""
CHANNEL_LIMITS = ConnectionLimits(silent_seconds=SILENCE_SECONDS)
NO_REQUESTS = """\
This port is for other processes of its pool, and answers no requests. Was this request sent on by
a gateway? Then its route names a pool of entities, or of `tenure serve`. Have it name the URL at
which their server listens: --route "PATH=http://HOST:PORT".
"""


class WebSocketChannels:
    """`Channels` over aiohttp."""

    def __init__(
        self,
        credentials: Credentials = NOTHING,
        limits: ConnectionLimits = CHANNEL_LIMITS,
        secret: PoolSecret | None = None,
    ) -> None:
        self._credentials = credentials
        self._secret = secret or PoolSecret()
        self._limits = limits
        self._session: aiohttp.ClientSession | None = None
        self._open: set[SocketChannel] = set()
        self._turns = FairTurns(free=FRAMES_A_TURN)
        self._accepted: dict[SocketChannel, asyncio.Future[None]] = {}
        self._door: HttpListener | None = None
        self._is_closed = False

    async def listen(self, where: str, serve: Serve, address: str | None = None) -> str:
        guard = PortGuard(self._secret)
        unfinished = UnfinishedMessages()

        async def on_request(request: web.Request) -> web.StreamResponse:
            if hdrs.ORIGIN in request.headers:  # browsers send it, and let any page connect here
                raise web.HTTPForbidden(text="a page in a browser may not speak to this process")
            check_proof(guard, request)
            try:
                transport = answer_handshake(request)
            except NoHandshake as error:
                raise web.HTTPBadRequest(text="open a WebSocket here") from error
            except ConnectionError:  # the peer has gone already, and nobody reads an answer
                return web.Response()
            peer, pace = request.remote or "", RateBound(MESSAGES_A_SECOND, MESSAGES_AT_ONCE)
            channel = SocketChannel(transport, peer, self._turns, pace=pace)
            channel.bound_unfinished(unfinished, peer)
            answer = door.hand_over(request, channel)
            self._begin(serve, channel)
            return answer

        app = web.Application()
        app.router.add_get(PATH, on_request)
        guard_app(app, guard)
        app.router.add_route("*", "/{path:.*}", _on_other)
        door = self._door = HttpListener(
            app,
            log_refused,
            log_refused,
            replace(self._limits, knows_peers=True),
            ends_seconds=CLOSE_SECONDS,
            silent_ns=seconds(PING_SECONDS),
        )
        host, _, port = where.rpartition(":")
        bound = await door.listen(host.strip("[]"), int(port), self._credentials.for_listening())
        url = f"{self._credentials.scheme}://{host}:{bound}"
        guard.answers_to(url, address)
        return url

    def _begin(self, serve: Serve, channel: SocketChannel) -> None:
        async def run() -> None:
            try:
                with suppress(ChannelLost):  # the serving code knows already
                    await serve(channel)
            finally:
                await channel.close()

        serving = self._accepted[channel] = asyncio.ensure_future(run())
        serving.add_done_callback(lambda _: self._accepted.pop(channel))

    def _check_open(self, url: str) -> None:
        if self._is_closed:
            raise ChannelLost(f"{url}: these channels were closed")

    async def connect(self, url: str) -> Channel:
        self._check_open(url)
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS),
                ws_response_class=DialledSocket,
                middlewares=(follow_nothing,),
            )
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                headers = await proof_for(url, self._secret, self._session, self._credentials)
                opened = await self._session.ws_connect(
                    url_at(parse(url, "address"), PATH),
                    headers=headers,
                    ssl=self._credentials.to(url) or True,
                    max_msg_size=HAND_OFF_BYTES,
                )
                assert isinstance(opened, DialledSocket)
                channel = opened.take_over(
                    lambda transport: SocketChannel(transport, url, self._turns, is_dialled=True)
                )
        except (aiohttp.ClientError, OSError, ValueError, ConfigurationError) as error:
            raise ChannelLost(f"{url}: {reason(error)}") from error
        except RuntimeError as error:  # so aiohttp says that its session was closed meanwhile
            raise ChannelLost(f"{url}: {error}") from error
        try:
            self._check_open(url)
        except ChannelLost:  # they were closed meanwhile, and nobody would close this one
            channel.cut_off()
            raise
        self._open.add(channel)
        channel.left = lambda _: self._open.discard(channel)
        channel.look_for_silence(seconds(PING_SECONDS))
        return channel

    async def close(self) -> None:
        """See `Channels.close`. Cancelling it cuts short its waiting, not its closing."""
        self._is_closed = True
        async with AsyncExitStack() as stack:
            if self._session is not None:
                stack.push_async_callback(self._session.close)
            if self._door is not None:
                self._door.take_no_more()
                stack.push_async_callback(self._door.close)
            stack.push_async_callback(self._end_accepted)
            for channel in list(self._open):
                stack.push_async_callback(channel.close)

    async def _end_accepted(self) -> None:
        serving = list(self._accepted.values())
        for channel in self._accepted:
            channel.end(WSCloseCode.GOING_AWAY, "these channels were closed")
        try:
            if serving:
                await asyncio.wait(serving, timeout=CLOSE_SECONDS)
        finally:
            for each in serving:
                each.cancel()
        if serving:
            await asyncio.wait(serving)


async def _on_other(_: web.Request) -> web.Response:
    return web.Response(status=404, text=NO_REQUESTS)
