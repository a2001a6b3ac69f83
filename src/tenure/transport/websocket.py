"""Messages over WebSocket: one connection to each manager, one binary frame a message.

Between nodes large messages have a second connection. What one client of a node reads may be 30 MiB
large; on the same connection another client's answer would wait until all that is sent and read,
and so would the answer to a ping, without which the connection seems to be dead.

A connection whose other end vanished without a word (a host that lost its power) looks alive for as
long as the kernel repeats its packets, which is minutes. Leases are shorter than that. So the
kernel is told to repeat them for seconds only, and a quiet connection is pinged, and closed when
nothing comes back.
"""

import asyncio
import logging
import socket as sockets
from collections.abc import Callable
from functools import partial
from typing import Generic, NoReturn

import aiohttp
import msgspec

from tenure.errors import ConfigurationError, RemoteProtocolError
from tenure.runtime.read_size import SmallBlocksSocket
from tenure.transport.contract import (
    SELDOM_SECONDS,
    UNHEARD_SECONDS,
    Lost,
    M,
    NeverConnected,
    Role,
)
from tenure.transport.credentials import NOTHING, TOKEN, TOKEN_FILE, Credentials
from tenure.transport.outgoing import Outgoing
from tenure.transport.pool_secret import PoolSecret
from tenure.transport.proving import proof_for
from tenure.transport.redirects import follow_nothing
from tenure.wire.limits import MESSAGE_BYTES
from tenure.wire.versions import SUBPROTOCOLS, agreed

CONNECT_SECONDS = 5.0
"""How long it may take to connect and be answered. After this time another manager is asked anyway.
"""
CLOSE_SECONDS = 1.0
"""How long a closing connection waits for the other end to close, too."""
TLS_ENDS_SECONDS = 0.25
"""The time for TLS connections to say good-bye. aiohttp closes them without waiting, and if the
loop ends first, open sockets are left behind.
"""
REASON_BYTES = 123
"""The room for a reason in a WebSocket close frame (RFC 6455, 5.5)."""

logger = logging.getLogger("tenure.transport")


class WebSocketTransport(Generic[M]):
    """A `Transport` over aiohttp."""

    def __init__(
        self,
        role: Role[M],
        credentials: Credentials = NOTHING,
        secret: PoolSecret | None = None,
    ) -> None:
        self.role = role
        self.secret = secret if role.proves else None
        self.credentials = credentials
        self.on_bytes: Callable[[str], None] | None = None
        """Called with a manager's URL when bytes have come from there, perhaps not a whole message.
        """
        self._links: dict[tuple[str, bool], _Link[M]] = {}
        """By the manager's URL, and whether it carries what is large."""
        self._ending: set[asyncio.Task[None]] = set()
        self._session: aiohttp.ClientSession | None = None
        self._has_used_tls = False

    def start(self, deliver: Callable[[str, M], None], lost: Lost) -> None:
        self.deliver = deliver
        self.lost = lost
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS),
            ws_response_class=SmallBlocksSocket,
            middlewares=(follow_nothing,),
        )

    def send(self, manager: str, message: msgspec.Struct) -> None:
        outgoing = Outgoing(message, self.role.encode)
        if self._session is None:
            return
        continues = self.role.continues(message)
        is_large = bool(self.role.small_bytes) and (
            continues or outgoing.size > self.role.small_bytes
        )
        self._link(self._session, manager, is_large=is_large).put(outgoing, continues=continues)

    def _link(self, session: aiohttp.ClientSession, manager: str, *, is_large: bool) -> "_Link[M]":
        link = self._links.get((manager, is_large))
        if link is None:
            self._has_used_tls |= manager.startswith("https:")
            link = self._links[manager, is_large] = _Link(self, session, manager, is_large=is_large)
            link.task = asyncio.get_running_loop().create_task(self._run(link))
            self._ending.add(link.task)
            link.task.add_done_callback(self._ending.discard)
        return link

    async def _run(self, link: "_Link[M]") -> None:
        why = await link.talk()
        if self.has(link):
            del self._links[link.manager, link.is_large]
            self.lost(link.manager, why)

    def has(self, link: "_Link[M]") -> bool:
        """Whether `link` is a present connection to its manager."""
        return self._links.get((link.manager, link.is_large)) is link

    async def close(self) -> None:
        session, self._session = self._session, None
        self._links.clear()
        for task in self._ending:
            task.cancel()
        if self._ending:
            await asyncio.wait(self._ending)
        if session is not None:
            await session.close()
            if self._has_used_tls:
                await asyncio.sleep(TLS_ENDS_SECONDS)


class _Link(Generic[M]):
    """One connection, from its making to its end."""

    def __init__(
        self,
        transport: WebSocketTransport[M],
        session: aiohttp.ClientSession,
        manager: str,
        *,
        is_large: bool,
    ) -> None:
        self.transport = transport
        self.session = session
        self.manager = manager
        self.is_large = is_large
        self.task: asyncio.Task[None] | None = None
        self._waiting: asyncio.Queue[Outgoing] = asyncio.Queue(transport.role.waiting)
        self._waiting_bytes = 0
        """The bytes that were put here, and are not on their way."""
        self._overflow: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def put(self, outgoing: Outgoing, *, continues: bool = False) -> None:
        most = self.transport.role.waiting_bytes
        if most is not None and self._waiting_bytes > most and not continues:
            self._give_up(f"it has not read {self._waiting_bytes} bytes")
        if self._overflow.done():
            return  # nothing that is put here is sent any more
        if self._waiting.full():
            self._give_up(f"it has not read {self._waiting.qsize()} messages")
        else:
            self._waiting.put_nowait(outgoing)
            self._waiting_bytes += outgoing.size

    def _give_up(self, why: str) -> None:
        if not self._overflow.done():
            self._overflow.set_result(why)

    async def talk(self) -> str:
        """Connect, carry messages until the connection ends, and return the reason why it ended."""
        credentials = self.transport.credentials
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                proof = await self._proof()
                socket = await self.session.ws_connect(
                    self.manager + self.transport.role.path,
                    protocols=SUBPROTOCOLS,
                    headers={**credentials.headers(self.manager), **proof},
                    ssl=credentials.to(self.manager) or True,
                    max_msg_size=MESSAGE_BYTES,
                    # Behind a large message no ping is answered soon.
                    heartbeat=SELDOM_SECONDS if self.is_large else self.transport.role.ping_seconds,
                    timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_SECONDS),
                )
        except (aiohttp.ClientError, OSError, ConfigurationError) as error:
            return NeverConnected(reason(error))
        async with socket:
            _give_up_unheard(socket)
            on_bytes = self.transport.on_bytes
            if on_bytes is not None and isinstance(socket, SmallBlocksSocket):
                socket.on_bytes(partial(on_bytes, self.manager))
            try:
                version = agreed([socket.protocol] if socket.protocol else [])
            except RemoteProtocolError as error:
                return NeverConnected(error)
            return await self._carry(socket, version)

    async def _proof(self) -> dict[str, str]:
        secret, credentials = self.transport.secret, self.transport.credentials
        if secret is None:
            return {}
        return await proof_for(self.manager, secret, self.session, credentials)

    async def _carry(self, socket: aiohttp.ClientWebSocketResponse, version: int) -> str:
        reader = asyncio.create_task(self._read(socket, version))
        writer = asyncio.create_task(self._write(socket, version))
        ends = (self._overflow, reader, writer)
        try:
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            return next(end.result() for end in ends if end in done)
        finally:
            reader.cancel()
            writer.cancel()
            await asyncio.wait((reader, writer))

    async def _write(self, socket: aiohttp.ClientWebSocketResponse, version: int) -> str:
        try:
            while True:
                outgoing = await self._waiting.get()
                data = outgoing.data(version)
                if data is not None:
                    await socket.send_bytes(data)
                self._waiting_bytes -= outgoing.size
        except (aiohttp.ClientError, OSError) as error:
            return reason(error)

    async def _read(self, socket: aiohttp.ClientWebSocketResponse, version: int) -> str:
        while True:
            frame = await socket.receive()
            try:
                match frame.type:
                    case aiohttp.WSMsgType.BINARY:
                        message = self.transport.role.decode(frame.data, version)
                    case aiohttp.WSMsgType.TEXT:
                        message = _binary_only()
                    case _:
                        return _ending(socket, frame)
            except RemoteProtocolError as error:
                logger.warning("closing the connection to %s: %s", self.manager, error)
                text = str(error).encode()[:REASON_BYTES]
                cut = text.decode(errors="ignore").encode()
                await socket.close(code=aiohttp.WSCloseCode.PROTOCOL_ERROR, message=cut)
                return f"it sent what cannot be read: {error}"
            if self.transport.has(self):
                self.transport.deliver(self.manager, message)


def _give_up_unheard(socket: aiohttp.ClientWebSocketResponse) -> None:
    option: int | None = getattr(sockets, "TCP_USER_TIMEOUT", None)
    raw = socket.get_extra_info("socket")
    if option is not None and raw is not None:  # without the option, only the pings notice
        raw.setsockopt(sockets.IPPROTO_TCP, option, round(UNHEARD_SECONDS * 1000))


def _binary_only() -> NoReturn:
    raise RemoteProtocolError("a text frame, where messages are binary")


def _ending(socket: aiohttp.ClientWebSocketResponse, frame: aiohttp.WSMessage) -> str:
    if frame.type is aiohttp.WSMsgType.ERROR:
        return f"the connection broke: {frame.data}"
    error = socket.exception()
    if error is not None:
        return reason(error)
    code = socket.close_code
    if frame.extra:
        return f"it closed the connection ({code}: {frame.extra})"
    return f"it closed the connection ({code})"


def reason(error: BaseException) -> str:
    """The reason why a connection could not be made, or broke, for people to read."""
    match error:
        case aiohttp.WSServerHandshakeError(status=401):
            return f"it wants a token that counts: set {TOKEN} or {TOKEN_FILE}"
        case aiohttp.WSServerHandshakeError(status=403):
            return "the token is for another role, or another pool"
        case aiohttp.WSServerHandshakeError(status=428):
            return "it wants a proof that this process belongs to the pool, which managers tell it"
        case aiohttp.WSServerHandshakeError():
            return f"answered HTTP {error.status}: something else listens there"
        case aiohttp.ClientConnectorDNSError():
            return "no such host"
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
            return f"TLS failed: {error}"
        case aiohttp.ClientConnectorError(os_error=ConnectionRefusedError()):
            return "connection refused: nothing listens there"
        case TimeoutError():
            return f"no answer within {CONNECT_SECONDS:g} s"
        case _:
            return str(error) or type(error).__name__
