"""One request of a client at the gateway, as ASGI has it: a scope, messages that come, and messages
that go. So what relays for members relays here, too.
"""

import asyncio
import socket as sockets
from http import HTTPStatus
from typing import NamedTuple, Protocol
from urllib.parse import unquote

from tenure.gateway.passed_connection import PassedConnection
from tenure.gateway.passed_headers import PairsOfHeaders, for_client
from tenure.gateway.request_reader import RequestHead
from tenure.member.asgi import Message, RawHeaders, Scope, header
from tenure.member.forwarded_answer import SWITCHING
from tenure.routing.template import NOT_UTF_8

MOST_UNREAD_BYTES = 65_536
"""How much of a body may wait before its connection is read no further."""
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
HEADS = {each.value: b"HTTP/1.1 %d %b\r\n" % (each, each.phrase.encode()) for each in HTTPStatus}
WITHOUT_BODY = (204, 304)
LENGTH, AUTHORIZATION = b"content-length", b"authorization"


class Carrier(Protocol):
    """The connection of a request."""

    def write(self, data: bytes) -> None:
        """Send this to the client."""
        ...

    async def drained(self) -> None:
        """Wait until the client has read enough of it."""
        ...

    def read_on(self, *, goes_on: bool) -> None:
        """Read more from the client, or no more for now."""
        ...

    def switched(self) -> None:
        """The connection is a WebSocket from now on."""
        ...

    def close(self) -> None:
        """Send what was written, and end the connection."""
        ...

    def finished(self, request: "ClientRequest") -> None:
        """The request is answered."""
        ...

    def break_off(self) -> None:
        """End the connection, so that nobody takes half an answer for a whole one."""
        ...


class Continuation(NamedTuple):
    """What another process needs to go on with a connection that was given up."""

    passed: PassedConnection
    behind: sockets.socket | None = None
    """The connection to the server behind, of a tunnel."""


class Stays(Exception):
    """It cannot leave yet, and goes on here."""


class Leaves(Protocol):
    """A WebSocket that another process can go on with."""

    @property
    def is_settled(self) -> bool:
        """Whether it could at this moment."""
        ...

    async def give_up(self, seconds: float) -> Continuation | None:
        """Stop, within some seconds, and return what the other process needs; None if the socket
        has ended. Raises Stays.
        """
        ...

    def gone(self) -> None:
        """The connection has ended before anybody went on."""
        ...


class ClientRequest:
    """One request, and its answer."""

    def __init__(
        self, head: RequestHead, carrier: Carrier, client: tuple[str, int], scheme: str
    ) -> None:
        self.head = head
        self._carrier = carrier
        path, _, query = head.target.partition(b"?")
        text = path.decode("ascii")
        self.scope: Scope = {
            "type": "http",
            "http_version": head.version,
            "method": head.method,
            "scheme": scheme,
            "path": unquote(text, errors=NOT_UTF_8) if "%" in text else text,
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": head.headers,
            "client": client,
        }
        if head.upgrade:
            self.scope["upgrade"] = head.upgrade
        self.has_come = not (head.has_body or head.upgrade)
        """Whether all of the request is there; never, if it opens a WebSocket."""
        self.status = 0
        """That of the answer, once it has begun."""
        self.sent = 0
        """How many bytes of the answer's body were sent."""
        self.is_over = False
        self.keeps = head.keeps
        self._parts: list[bytes] = []
        self._unread = 0
        self._is_gone = False
        self.leaves: Leaves | None = None
        """How its WebSocket can be passed to another process; None if it cannot."""
        self._told_to_go_on = False
        self._is_read = False
        """Whether the end of the body was received."""
        self._waiting: asyncio.Future[None] | None = None
        self._start: Message | None = None
        self._is_chunked = False
        self._has_body = True

    # --- for the connection ---

    def add(self, part: bytes) -> None:
        """More of the body."""
        self._parts.append(part)
        self._unread += len(part)
        if self._unread > MOST_UNREAD_BYTES:
            self._carrier.read_on(goes_on=False)
        self._wake()

    def end(self) -> None:
        """The body has come whole."""
        self.has_come = True
        self._wake()

    def lose(self) -> None:
        """The client has gone."""
        self._is_gone = True
        self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    # --- as ASGI has it ---

    async def receive(self) -> Message:
        """The next part of the body; after the last, wait until the client goes."""
        while not (self._parts or self._is_gone or (self.has_come and not self._is_read)):
            self._go_on()
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        # The last words of a socket, such as that it closes, are heard even so.
        if self._is_gone and not (self._parts and self.head.upgrade):
            return {"type": "http.disconnect"}
        body = b"".join(self._parts)
        self._parts.clear()
        self._unread = 0
        self._carrier.read_on(goes_on=True)
        self._is_read = self.has_come
        return {"type": "http.request", "body": body, "more_body": not self.has_come}

    def _go_on(self) -> None:
        """Tell a client that waits to be told to send its body."""
        if self._told_to_go_on or self.has_come or self.status:
            return
        self._told_to_go_on = True
        if (header(self.head.headers, b"expect") or b"").lower() == b"100-continue":
            self._carrier.write(CONTINUE)

    async def send(self, message: Message) -> None:
        """Send the head of the answer, with the first of its body, or more of it."""
        if self._is_gone or self.is_over:
            return
        if message["type"] == "http.response.start":
            self._start = message
            self.status = message["status"]
            # A body that is there already goes with the head; if there is none yet, nobody waits.
            asyncio.get_running_loop().call_soon(self._send_head)
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        data = b"" if self._start is None else self._begin_answer(None if more else body)
        if self._has_body:
            self.sent += len(body)
            data += self._framed(body, more=more)
        if data:
            self._carrier.write(data)
        if not more:
            self.is_over = True
            self._carrier.finished(self)
        else:
            await self._carrier.drained()

    def _send_head(self) -> None:
        if self._start is not None and not self._is_gone:
            self._carrier.write(self._begin_answer(None))

    def _begin_answer(self, whole: bytes | None) -> bytes:
        start, self._start = self._start, None
        assert start is not None, "it has begun"
        return self._head_of(start["status"], start["headers"], whole)

    def answer(self, status: int, headers: PairsOfHeaders, body: bytes) -> None:
        """Send an answer that is there whole, at once: nearly all are."""
        if self._is_gone or self.is_over:
            return
        self.status = status
        data = self._head_of(status, headers, body)
        if self._has_body:
            self.sent = len(body)
            data += body
        self._carrier.write(data)
        self.is_over = True
        self._carrier.finished(self)

    # --- once it is a WebSocket ---

    def switch(self, headers: RawHeaders) -> None:
        """Accept it, with these headers. What comes and goes is no HTTP from now on. Raises
        ConnectionError if the client has gone: its connection has no socket any more.
        """
        if self._is_gone:
            msg = "the client has gone"
            raise ConnectionResetError(msg)
        self.status = SWITCHING
        self.forget()
        lines = [HEADS[SWITCHING], b"connection: upgrade\r\n", b"upgrade: websocket\r\n"]
        lines += [b"%b: %b\r\n" % each for each in for_client(list(headers))]
        self._carrier.switched()
        self._carrier.write(b"".join([*lines, b"\r\n"]))

    def forget(self) -> None:
        """Keep no more of the request than a WebSocket needs that may be open for days."""
        kept = [each for each in self.head.headers if each[0] == AUTHORIZATION]
        self.head = self.head._replace(headers=kept)
        self.scope = {"client": self.scope["client"], "headers": kept}

    async def send_raw(self, data: bytes) -> None:
        """Send these bytes as they are."""
        if not self._is_gone:
            self.sent += len(data)
            self._carrier.write(data)
            await self._carrier.drained()

    def cut_off(self) -> None:
        """End the connection at once."""
        self._carrier.break_off()

    def end_raw(self) -> None:
        """Nothing more goes out."""
        if not self.is_over:
            self.is_over = True
            self._carrier.close()

    def unread(self) -> bytes:
        """What has come and nobody has received."""
        return b"".join(self._parts)

    def _framed(self, body: bytes, *, more: bool) -> bytes:
        if not self._is_chunked:
            return body
        chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
        return chunk if more else chunk + b"0\r\n\r\n"

    def _head_of(self, status: int, headers: PairsOfHeaders, whole: bytes | None) -> bytes:
        """The head of the answer; `whole` is its body if there is no more than that."""
        lines = [HEADS.get(status) or b"HTTP/1.1 %d \r\n" % status]
        has_length = False
        for name, value in for_client(headers):
            has_length = has_length or name == LENGTH
            lines.append(b"%b: %b\r\n" % (name, value))
        self._has_body = self.head.method != "HEAD" and status not in WITHOUT_BODY
        if self._has_body and not has_length:
            if whole is not None:
                lines.append(b"content-length: %d\r\n" % len(whole))
            elif self.head.version == "1.1":
                self._is_chunked = True
                lines.append(b"transfer-encoding: chunked\r\n")
            else:
                self.keeps = False  # the end of the connection is the end of the body
        if not self.has_come:
            self.keeps = False  # what is left of the body cannot be told from another request
        if not self.keeps:
            lines.append(b"connection: close\r\n")
        elif self.head.version == "1.0":
            lines.append(b"connection: keep-alive\r\n")
        lines.append(b"\r\n")
        return b"".join(lines)
