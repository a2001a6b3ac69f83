"""Takes requests apart as they come: httptools does, and this refuses what it lets pass.

A request that two servers read differently is how one client's bytes become part of another's
request. So everything that may be read in two ways is refused, and the body is framed anew for the
owner: what is left of chunk extensions is nothing. See docs/decisions/0032.
"""

from typing import NamedTuple, Protocol

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpRequestParser

from tenure.client.refusals import HttpAnswer

MOST_HEAD_BYTES = 65_536
MOST_HEADERS = 200
"""Each is looked at several times."""
MOST_TARGET_BYTES = 16_384
MOST_FRAMING_BYTES = 4096
"""The most bytes between two of a body: the lines around chunks, and their extensions."""
CHUNKED, WEBSOCKET = b"chunked", b"websocket"
HANDSHAKE = b"sec-websocket-key", b"sec-websocket-version"


class RequestHead(NamedTuple):
    """What a request says before its body."""

    method: str
    target: bytes
    headers: list[tuple[bytes, bytes]]
    """With names in lower case."""
    version: str
    has_body: bool
    is_chunked: bool
    keeps: bool
    """Whether another request may follow."""
    upgrade: bytes = b""
    """`websocket` if the client wants to open one, and otherwise nothing."""


class TakesRequests(Protocol):
    """Whoever is told."""

    def on_request(self, head: RequestHead) -> None:
        """A head has come."""
        ...

    def on_part(self, part: bytes) -> None:
        """More of the body has come."""
        ...

    def on_end(self) -> None:
        """The request has come whole."""
        ...


class Malformed(Exception):
    """A request that is not passed on; nothing that follows can be read."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.answer = HttpAnswer(status, {"Tenure-Outcome": "not-begun"}, f"{why}\n")


class RequestReader:
    """The requests of one connection, one after the other."""

    def __init__(self, told: TakesRequests) -> None:
        self._told = told
        self._parser: HttpRequestParser | None = HttpRequestParser(self)
        self._refused: Malformed | None = None
        self._target = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._is_in_body = False
        self._framing = 0
        """How many bytes have come since the last of a body, or of a head's beginning."""
        self.has_begun = False
        """Whether a part of a request has come that is not whole yet."""
        self._count = 0
        """How many requests have begun."""
        self._so_far = bytearray()
        """What has come of a head that is not whole; empty if where it begins is not known."""

    def feed(self, data: bytes) -> bytes | None:
        """Take more; return what follows a request for another protocol, or None.

        Raises Malformed.
        """
        parser = self._parser
        if parser is None:
            return data
        self._framing += len(data)
        was_idle, count = not self.has_begun, self._count
        try:
            parser.feed_data(data)
        except HttpParserUpgrade as upgraded:
            self.end()
            return data[upgraded.args[0] :]
        except HttpParserCallbackError:
            raise self._refused or Malformed(400, "the request cannot be read") from None
        except HttpParserError as error:
            raise Malformed(400, f"what came is not HTTP/1.1: {error}") from None
        if self.has_begun and not self._is_in_body:
            self._keep(data, was_idle=was_idle, count=count)
        most = MOST_FRAMING_BYTES if self._is_in_body else MOST_HEAD_BYTES
        if self.has_begun and self._framing > most:
            part = "between two parts of the body" if self._is_in_body else "of the request's head"
            raise Malformed(400 if self._is_in_body else 431, f"more than {most} bytes {part}")
        return None

    @property
    def unread(self) -> bytes | None:
        """All that has come of a request, from which another reader can go on; None if that cannot
        be told.
        """
        if not self.has_begun:
            return b""
        return (bytes(self._so_far) or None) if not self._is_in_body else None

    def _keep(self, data: bytes, *, was_idle: bool, count: int) -> None:
        """Keep what has come of a head. Where in the data it begins is known if nothing was there
        before.
        """
        if self._count != count:
            self._so_far = bytearray(data if was_idle and self._count == count + 1 else b"")
        elif self._so_far:
            self._so_far += data

    def end(self) -> None:
        """Nothing more is to be parsed: parser and reader refer to each other until then."""
        self._parser = None

    # --- for the parser ---

    def on_message_begin(self) -> None:
        self._is_in_body, self.has_begun = False, True
        self._count += 1

    def on_url(self, part: bytes) -> None:
        self._target += part
        if len(self._target) > MOST_TARGET_BYTES:
            self._refuse(414, f"the target has more than {MOST_TARGET_BYTES} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._is_in_body:
            self._refuse(400, "headers after the body are not passed on: send them before it")
        self._headers.append((name.lower(), value.rstrip(b" \t")))
        if len(self._headers) > MOST_HEADERS:
            self._refuse(431, f"more than {MOST_HEADERS} headers")

    def on_headers_complete(self) -> None:
        self._is_in_body, self._framing = True, 0
        self._told.on_request(self._head())
        self._target, self._headers = b"", []

    def on_body(self, part: bytes) -> None:
        self._framing = 0
        self._told.on_part(part)

    def on_message_complete(self) -> None:
        self.has_begun, self._framing = False, 0
        self._told.on_end()

    def _refuse(self, status: int, why: str) -> None:
        self._refused = Malformed(status, why)
        raise self._refused

    def _head(self) -> RequestHead:
        parser = self._parser
        assert parser is not None, "it is calling"
        version = parser.get_http_version()
        if version not in ("1.1", "1.0"):
            self._refuse(505, f"HTTP/{version} is not spoken here: use HTTP/1.1")
        hosts = has_length = 0
        codings = []
        upgrade = b""
        shaken = []
        size = 0
        for name, value in self._headers:
            size += len(name) + len(value)
            if name == b"host":
                hosts += 1
            elif name == b"content-length":
                has_length = value != b"0"
            elif name == b"transfer-encoding":
                codings.append(value.lower())
            elif name == b"upgrade":
                upgrade = value.lower()
            elif name in HANDSHAKE:
                shaken.append((name, value))
        if size > MOST_HEAD_BYTES:
            self._refuse(431, f"more than {MOST_HEAD_BYTES} bytes of headers")
        if hosts > 1 or (not hosts and version == "1.1"):
            self._refuse(400, f"a request has one Host, not {hosts}")
        if codings and (codings != [CHUNKED] or version == "1.0"):
            self._refuse(501, "a body comes with its length, or in chunks, and in no other coding")
        if not self._target.startswith(b"/"):
            self._refuse(400, "the target of a request is a path, and begins with /")
        has_body = bool(has_length or codings)
        method = parser.get_method().decode()
        is_asked = upgrade and parser.should_upgrade()
        if is_asked and not _is_upgraded(self._headers):
            self._refuse(400, "a request for another protocol says so in Connection")
        if is_asked and has_body:
            self._refuse(400, "a request for another protocol has no body")
        is_websocket = bool(is_asked) and (method, upgrade) == ("GET", WEBSOCKET)
        if is_websocket and not _is_handshake(shaken):
            self._refuse(400, "a WebSocket is asked for with one Sec-WebSocket-Key, in version 13")
        return RequestHead(
            method,
            self._target,
            self._headers,
            version,
            has_body,
            bool(codings),
            parser.should_keep_alive() and not is_asked,
            WEBSOCKET if is_websocket else b"",
        )


def _is_upgraded(headers: list[tuple[bytes, bytes]]) -> bool:
    """Whether Connection says it: httptools reads Proxy-Connection, too, and others do not."""
    return any(name == b"connection" and b"upgrade" in said.lower() for name, said in headers)


def _is_handshake(headers: list[tuple[bytes, bytes]]) -> bool:
    """Whether these are those of a handshake that can be accepted (RFC 6455, 4.2.1)."""
    key, version = (dict(headers).get(name) for name in HANDSHAKE)
    return len(headers) == len(HANDSHAKE) and bool(key) and version == b"13"
