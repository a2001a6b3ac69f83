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
from collections import deque
from collections.abc import Callable
from typing import Generic

import aiohttp
import msgspec
from aiohttp import WSCloseCode

from tenure.base.instants import seconds
from tenure.errors import ConfigurationError, RemoteProtocolError
from tenure.transport.contract import SELDOM_SECONDS, UNHEARD_SECONDS, Lost, M, NeverConnected, Role
from tenure.transport.credentials import NOTHING, TOKEN, TOKEN_FILE, Credentials
from tenure.transport.dialled_socket import DialledSocket
from tenure.transport.fair_turns import FRAMES_A_TURN, FairTurns
from tenure.transport.frame_socket import FrameSocket
from tenure.transport.outgoing import Outgoing
from tenure.transport.pool_secret import PoolSecret
from tenure.transport.proving import proof_for
from tenure.transport.redirects import follow_nothing
from tenure.transport.websocket_frames import FrameError, masked_frame
from tenure.wire.limits import MESSAGE_BYTES
from tenure.wire.versions import SUBPROTOCOLS, agreed

CONNECT_SECONDS = 5.0
"""How long it may take to connect and be answered. After this time another manager is asked anyway.
"""
TLS_ENDS_SECONDS = 0.25
"""The time for TLS connections to say good-bye. aiohttp closes them without waiting, and if the
loop ends first, open sockets are left behind.
"""
JOINED_BYTES = 64 << 10
"""As much of what was sent in one turn of the loop goes out in one piece."""
LAG_BYTES = 1 << 20
"""How much may wait for a server that asks whether this process is there, and reads no answer."""

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
        self.turns = FairTurns(free=FRAMES_A_TURN)

    def start(self, deliver: Callable[[str, M], None], lost: Lost) -> None:
        self.deliver = deliver
        self.lost = lost
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS),
            ws_response_class=DialledSocket,
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
        self._socket: _ServerSocket[M] | None = None
        self._waiting: deque[Outgoing] = deque()
        self._waiting_bytes = 0
        """The bytes that were put here, and are not on their way."""
        self._goes_out = False
        """Whether what waits goes out at the end of this turn of the loop."""
        self._gave_up = ""

    def put(self, outgoing: Outgoing, *, continues: bool = False) -> None:
        role = self.transport.role
        most = role.waiting_bytes
        if most is not None and self._waiting_bytes > most and not continues:
            self._give_up(f"it has not read {self._waiting_bytes} bytes")
        elif len(self._waiting) >= role.waiting:
            self._give_up(f"it has not read {len(self._waiting)} messages")
        if self._gave_up:
            return  # nothing that is put here is sent any more
        self._waiting.append(outgoing)
        self._waiting_bytes += outgoing.size
        if not self._goes_out and self._socket is not None:
            self._goes_out = True
            asyncio.get_running_loop().call_soon(self.go_out)

    def _give_up(self, why: str) -> None:
        self._gave_up = self._gave_up or why
        if self._socket is not None:
            self._socket.transport.abort()

    def go_out(self) -> None:
        """Send what waits, all that was sent in one turn of the loop in one piece, as long as the
        kernel takes it.
        """
        self._goes_out = False
        socket = self._socket
        while socket is not None and self._waiting and socket.may_write:
            frames, size = [], 0
            while self._waiting and size < JOINED_BYTES:
                outgoing = self._waiting.popleft()
                self._waiting_bytes -= outgoing.size
                data = outgoing.data(socket.version)
                if data is not None:
                    frames.append(masked_frame(data))
                    size += len(data)
            socket.send_frame(b"".join(frames))

    async def talk(self) -> str:
        """Connect, carry messages until the connection ends, and return the reason why it ended."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._connect()
            if self._socket is not None and not self._gave_up:
                self.go_out()
                await self._socket.gone()
            return self._gave_up or (self._socket.why if self._socket else "")
        except (aiohttp.ClientError, OSError, ConfigurationError) as error:
            return NeverConnected(reason(error))
        except RemoteProtocolError as error:
            return NeverConnected(error)
        finally:
            if self._socket is not None:
                self._socket.end(WSCloseCode.OK, "")
                await self._socket.gone()

    async def _connect(self) -> None:
        role, credentials = self.transport.role, self.transport.credentials
        proof = await self._proof()
        opened = await self.session.ws_connect(
            self.manager + role.path,
            protocols=SUBPROTOCOLS,
            headers={**credentials.headers(self.manager), **proof},
            ssl=credentials.to(self.manager) or True,
            max_msg_size=MESSAGE_BYTES,
        )
        assert isinstance(opened, DialledSocket)
        try:
            version = agreed([opened.protocol] if opened.protocol else [])
        except RemoteProtocolError:
            await opened.close()
            raise
        self._socket = opened.take_over(lambda connection: _ServerSocket(connection, version, self))
        # Behind a large message no ping is answered soon.
        ping_seconds = SELDOM_SECONDS if self.is_large else role.ping_seconds
        self._socket.look_for_silence(seconds(ping_seconds))

    async def _proof(self) -> dict[str, str]:
        secret, credentials = self.transport.secret, self.transport.credentials
        if secret is None:
            return {}
        return await proof_for(self.manager, secret, self.session, credentials)


class _ServerSocket(FrameSocket, Generic[M]):
    """The WebSocket of a link."""

    __slots__ = ("_link", "may_write")

    def __init__(self, transport: asyncio.Transport, version: int, link: _Link[M]) -> None:
        super().__init__(
            transport,
            version,
            most_bytes=MESSAGE_BYTES,
            lag_bytes=LAG_BYTES,
            turns=link.transport.turns,
            is_dialled=True,
        )
        self._link = link
        self.may_write = True
        """Whether the server reads as much as it is sent."""
        _give_up_unheard(transport)

    def data_received(self, data: bytes) -> None:
        """Something has come, perhaps not a whole message."""
        if self._link.transport.on_bytes is not None:
            self._link.transport.on_bytes(self._link.manager)
        super().data_received(data)

    def on_message(self, data: bytes) -> None:
        link = self._link
        try:
            message = link.transport.role.decode(data, self.version)
        except RemoteProtocolError as error:
            self._refuse(error)
            self.end(WSCloseCode.PROTOCOL_ERROR, str(error))
            return
        if link.transport.has(link):
            link.transport.deliver(link.manager, message)

    def on_refused(self, error: FrameError) -> None:
        self._refuse(error)

    def _refuse(self, error: Exception) -> None:
        logger.warning("closing the connection to %s: %s", self._link.manager, error)
        self.why = self.why or f"it sent what cannot be read: {error}"

    def pause_writing(self) -> None:
        """The server reads too little."""
        self.may_write = False

    def resume_writing(self) -> None:
        """The server has read on."""
        self.may_write = True
        self._link.go_out()


def _give_up_unheard(transport: asyncio.Transport) -> None:
    option: int | None = getattr(sockets, "TCP_USER_TIMEOUT", None)
    raw = transport.get_extra_info("socket")
    if option is not None and raw is not None:  # without the option, only the pings notice
        raw.setsockopt(sockets.IPPROTO_TCP, option, round(UNHEARD_SECONDS * 1000))


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
