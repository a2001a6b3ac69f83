"""Requests to other members, over HTTP/1.1 connections that are kept.

A relay passes on what one server has parsed already to another server that parses it again. A
client library between the two would parse it a third time, and make objects that nobody looks at;
that cost more than the rest of the relay. So headers are passed on as bytes, and only those parts
of an answer are read that say where its body ends (RFC 9112, 6.3).

The other end is a member's own listener.
"""

import asyncio
import socket as sockets
from collections.abc import AsyncIterable, AsyncIterator, Callable
from functools import partial
from secrets import token_hex
from typing import Protocol, cast

from aiohttp import ClientSession

from tenure.base.challenges import NONCE_BYTES, Challenge
from tenure.base.origin import Origin
from tenure.member.asgi import PROOF, RawHeaders
from tenure.member.forwarded_answer import CONTENT_LENGTH, END_OF_HEAD, ForwardedAnswer
from tenure.runtime.read_size import read_small_blocks
from tenure.transport.credentials import NOTHING, Credentials
from tenure.transport.pool_secret import PoolSecret
from tenure.transport.port_guard import PATH
from tenure.transport.proving import (
    ANSWER_BYTES,
    OK,
    PROVES_NOTHING,
    answered,
    asked_for,
    proof_for,
)
from tenure.transport.websocket import CONNECT_SECONDS

KEEP_ALIVE_SECONDS = 4.0
"""Less than the listener keeps an idle connection (5 s), so that it does not close one while we
choose it.
"""
MOST_KEPT = 100
"""How many idle connections to one member are kept; more were a burst."""


class NotConnected(ConnectionError):
    """No connection was made, and nothing sent."""


class Forwarded(Protocol):
    """An answer, from when its head is there."""

    status: int
    headers: list[tuple[bytes, bytes]]
    """The headers, with names in lower case."""

    def whole(self) -> bytes | None:
        """The whole body, if it has come already and nobody has read any of it."""
        ...

    def __aiter__(self) -> AsyncIterator[bytes]:
        """The body as it comes. Raises ConnectionError if it breaks off."""
        ...

    def close(self) -> None:
        """Drop the rest of the answer."""
        ...


class Forwarding(Protocol):
    """How a member's requests reach the others."""

    async def ask(
        self,
        origin: Origin,
        method: str,
        target: str,
        headers: RawHeaders,
        body: bytes | AsyncIterable[bytes],
    ) -> Forwarded:
        """Send a request. Raises NotConnected, or another ConnectionError if the connection
        broke.
        """
        ...

    async def proof(self, address: str, session: ClientSession) -> dict[str, str]:
        """The header by which a request that goes there over the session proves itself. Raises
        Unproven if the other end does not.
        """
        ...

    def close(self) -> None:
        """Close all connections."""
        ...


class KeptConnections:
    """See `Forwarding`. In one event loop."""

    def __init__(
        self, credentials: Credentials = NOTHING, secret: PoolSecret | None = None
    ) -> None:
        self._credentials = credentials
        self._secret = secret or PoolSecret()
        self._idle: dict[str, list[KeptConnection]] = {}
        self._busy: dict[KeptConnection, None] = {}

    async def ask(
        self,
        origin: Origin,
        method: str,
        target: str,
        headers: RawHeaders,
        body: bytes | AsyncIterable[bytes],
    ) -> "ForwardedAnswer":
        length = None if isinstance(body, bytes) else content_length(headers)
        head = head_of(origin, method, target, headers, body, length)
        connection = self._kept(origin)
        if connection is None:
            connection = await self._connected(origin)
            head = await self._proven(connection, origin, head)
        self._busy[connection] = None
        release = partial(self._release, connection)
        answer = ForwardedAnswer(connection.transport, release, has_body=method != "HEAD")
        connection.answer = answer
        answer.may_write = connection.may_write
        try:
            if isinstance(body, bytes):
                connection.transport.write(head + body)
                answer.is_sent = True
            else:
                connection.transport.write(head)
                answer.sending = asyncio.ensure_future(sent(connection, answer, body, length))
            await answer.begun
        except BaseException:
            answer.close()
            raise
        return answer

    async def go_on(self, socket: sockets.socket, unread: bytes) -> "ForwardedAnswer":
        """Go on with a connection on which another process has switched to another protocol; it has
        left `unread` of the other end. Raises OSError.
        """
        connection = KeptConnection("")
        release = partial(self._release, connection)

        def made(transport: asyncio.Transport) -> None:  # before anything is read
            connection.answer = ForwardedAnswer.switched(transport, release, unread)
            connection.answer.may_write = connection.may_write

        connection.on_made = made
        await asyncio.get_running_loop().create_connection(lambda: connection, sock=socket)
        assert connection.answer is not None, "it is made"
        self._busy[connection] = None
        return connection.answer

    async def proof(self, address: str, session: ClientSession) -> dict[str, str]:
        return await proof_for(address, self._secret, session, self._credentials)

    async def _proven(self, connection: "KeptConnection", origin: Origin, head: bytes) -> bytes:
        """The head of the first request on a connection, with the proof that is enough for all."""
        ids = self._secret.ids
        if not ids:
            return head
        self._busy[connection] = None
        transport = connection.transport
        asked = Challenge(f"{origin.scheme}://{origin.authority}", token_hex(NONCE_BYTES), "")
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                said = await asked_on(connection, origin, asked, ids)
        except BaseException as error:
            transport.abort()
            if isinstance(error, OSError | TimeoutError):
                raise NotConnected(f"{origin.authority} gives no challenge: {error!r}") from None
            raise
        finally:
            self._busy.pop(connection, None)
        shown = answered(said, asked, self._secret)
        if shown is not None:
            proof = b"\r\n%b: %b" % (PROOF, shown.encode())
            return head.removesuffix(END_OF_HEAD) + proof + END_OF_HEAD
        if self._secret.is_wanted or transport.is_closing():
            transport.abort()
            raise NotConnected(f"{origin.authority} {PROVES_NOTHING}")
        return head

    def _kept(self, origin: Origin) -> "KeptConnection | None":
        idle = self._idle.get(origin.authority, ())
        while idle:
            connection = idle.pop()
            idle_seconds = connection.loop.time() - connection.idle_since
            if not connection.is_lost and idle_seconds < KEEP_ALIVE_SECONDS:
                return connection
            connection.transport.abort()
        return None

    async def _connected(self, origin: Origin) -> "KeptConnection":
        loop = asyncio.get_running_loop()
        tls = self._credentials.to(f"{origin.scheme}://{origin.authority}")
        try:
            _, connection = await loop.create_connection(
                lambda: KeptConnection(origin.authority), origin.host, origin.port, ssl=tls
            )
        except OSError as error:
            raise NotConnected(f"no connection to {origin.authority}: {error}") from None
        return connection

    def _release(self, connection: "KeptConnection", is_usable: bool) -> None:  # noqa: FBT001
        """A connection's answer is over."""
        self._busy.pop(connection, None)
        connection.answer = None
        idle = self._idle.setdefault(connection.authority, [])
        if is_usable and not connection.is_lost and len(idle) < MOST_KEPT:
            connection.idle_since = connection.loop.time()
            idle.append(connection)
        else:
            connection.transport.abort()

    def close(self) -> None:
        for each in [*self._busy, *(each for idle in self._idle.values() for each in idle)]:
            each.transport.abort()
        self._idle.clear()


class KeptConnection(asyncio.Protocol):
    """One connection to another member."""

    transport: asyncio.Transport
    answer: "ForwardedAnswer | None" = None
    """The answer for which it waits; None while it is idle."""
    on_made: Callable[[asyncio.Transport], object] | None = None
    is_lost = False
    idle_since = 0.0

    def __init__(self, authority: str) -> None:
        self.authority = authority
        self.loop = asyncio.get_running_loop()
        self.may_write = asyncio.Event()
        self.may_write.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        read_small_blocks(transport)
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is one by its methods only
        if self.on_made is not None:
            self.on_made(self.transport)

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        if self.answer is None:
            self.transport.abort()  # no request waits for an answer
        else:
            self.answer.feed(data)

    def connection_lost(self, error: Exception | None) -> None:
        """See asyncio."""
        self.is_lost = True
        self.may_write.set()
        if self.answer is not None:
            self.answer.lost(error)

    def pause_writing(self) -> None:
        """See asyncio."""
        self.may_write.clear()

    def resume_writing(self) -> None:
        """See asyncio."""
        self.may_write.set()


async def asked_on(
    connection: KeptConnection, origin: Origin, asked: Challenge, ids: tuple[str, ...]
) -> bytes:
    """The answer to a request for a challenge on a connection. Raises ConnectionError."""
    answer = ForwardedAnswer(connection.transport, lambda _: None, has_body=True)
    connection.answer = answer
    target = f"{origin.path_to(PATH)}?{asked_for(asked.at, asked.client, ids)}"
    connection.transport.write(head_of(origin, "GET", target, (), b"", None))
    answer.is_sent = True
    await answer.begun
    said = b""
    async for part in answer:
        said += part
        if len(said) > ANSWER_BYTES:
            connection.transport.abort()
            return b""
    connection.answer = None
    return said if answer.status == OK else b""


def content_length(headers: RawHeaders) -> int | None:
    """The length of the body, according to the headers."""
    found = next((value for name, value in headers if name == CONTENT_LENGTH), b"")
    return int(found) if found.isdigit() else None


def head_of(
    origin: Origin,
    method: str,
    target: str,
    headers: RawHeaders,
    body: bytes | AsyncIterable[bytes],
    length: int | None,
) -> bytes:
    """The head of a request. Raises ValueError if it would be read as another request."""
    lines = [f"{method} {target} HTTP/1.1".encode("utf-8", "surrogateescape")]
    has_host = has_length = False
    for name, value in headers:
        if name == CONTENT_LENGTH:
            has_length = True
            continue
        has_host = has_host or name == b"host"
        lines.append(b"%b: %b" % (name, value))
    if not has_host:
        lines.append(b"host: %b" % origin.authority.encode())
    if isinstance(body, bytes):
        if body or has_length:
            lines.append(b"content-length: %d" % len(body))
    elif length is not None:
        lines.append(b"content-length: %d" % length)
    else:
        lines.append(b"transfer-encoding: chunked")
    head = b"\r\n".join(lines)
    is_one = head.count(b"\n") == head.count(b"\r") == len(lines) - 1
    if not is_one or lines[0].count(b" ") != len(("method", "target")):
        raise ValueError(f"{lines[0][:100]!r} cannot be sent on: a line in it does not end")
    return head + END_OF_HEAD


async def sent(
    connection: KeptConnection,
    answer: ForwardedAnswer,
    body: AsyncIterable[bytes],
    length: int | None,
) -> None:
    """Send a body as it comes; if it breaks off, so does the connection."""
    transport, left = connection.transport, length
    why: object = "its body has another length than its headers say"
    try:
        async for part in body:
            await connection.may_write.wait()
            if connection.is_lost:
                return
            if left is None:
                if part:
                    transport.write(b"%x\r\n%b\r\n" % (len(part), part))  # see `JoinedWrites`
                continue
            left -= len(part)
            if left < 0:
                break
            transport.write(part)
        answer.is_sent = not left
        if left is None:
            transport.write(b"0\r\n\r\n")
    except ConnectionError as error:
        why = error
    if not answer.is_sent:
        answer.lost(ConnectionAbortedError(f"the request broke off: {why}"))
        answer.close()
