"""The types of ASGI, and the headers that members add to what they relay."""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote, unquote_to_bytes

from tenure.client.refusals import HttpAnswer
from tenure.transport.port_guard import HEADER

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
RawHeaders: TypeAlias = Iterable[tuple[bytes, bytes]]

SERVED: ContextVar["Scope | None"] = ContextVar("tenure.served", default=None)
"""Relay's notes about the request that this task serves, for frameworks that have no scope."""

RELAYED = b"tenure-relayed"
"""The header of relayed requests, `MEMBER HOST PORT SCHEME`: the member's address, and the
client's.
"""
MOST_RELAYED_BYTES = 4096
"""More than any address has."""
PRIVATE = "tenure.private"
"""The key in the scope of a request that comes through the member's own listener."""
MEMBER = "tenure.member"
"""The key of the member in the scope of a request that Relay passes on to the application."""
KEY = "tenure.key"
"""The key in the same scope of the request's key."""
PROBE = "/.tenure/probe"
"""The path by which a member checks that its own listener answers."""
PROOF = HEADER.lower().encode()
"""The header by which a member proves itself; that of a client is not passed on."""
OURS = frozenset((RELAYED, PROOF))
"""Headers that only members may send, and no application gets."""
MESSAGE_BYTES = 16 << 20
"""The largest message that is passed on: a relay has the whole of each, and every stranger can send
one. It is what ASGI servers take by default; aiohttp's handlers take a quarter of it.
"""
SERVICE_RESTART = 1012
"""The code that closes a WebSocket whose key goes elsewhere: connect again."""

NOT_UTF_8 = "\ufffd"
"""The character that servers put for what they cannot decode."""

HOP_BY_HOP = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",  # which httptools takes for the same as `connection`
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
        b"expect",
        RELAYED,
        PROOF,
    )
)
"""Headers that concern one connection, and are not relayed (RFC 9110, 7.6.1)."""


class Relayed(NamedTuple):
    """A member's words in a request that it relays."""

    member: str
    """The member's address."""
    host: str
    """The client's host; "-" if it has no address."""
    port: int
    scheme: str

    @classmethod
    def by(cls, member: str, scope: Scope) -> "Relayed":
        """Make it for a request that `member` relays."""
        host, port = scope.get("client") or ("-", 0)
        return cls(member, host, port or 0, scope["scheme"])

    @classmethod
    def read(cls, value: bytes) -> "Relayed | None":
        """Parse the header; None if no member can have written it."""
        return _read_relayed(value) if len(value) <= MOST_RELAYED_BYTES else None

    def __str__(self) -> str:
        return f"{self.member} {self.host} {self.port} {self.scheme}"


@lru_cache(maxsize=1024)  # a process that relays says the same for each request of a connection
def _read_relayed(value: bytes) -> Relayed | None:
    parts = value.decode("latin-1").split(" ")
    if len(parts) != len(Relayed._fields) or not (parts[2].isascii() and parts[2].isdecimal()):
        return None
    return Relayed(parts[0], parts[1], int(parts[2]), parts[3])


def end_to_end(headers: RawHeaders) -> list[tuple[bytes, bytes]]:
    """The headers that go from end to end; their names are in lower case."""
    all_of_them = list(headers)
    ended = ended_here(all_of_them)
    return [each for each in all_of_them if each[0] not in ended]


def ended_here(headers: RawHeaders) -> frozenset[bytes]:
    """The names of the headers that concern this connection alone."""
    named = HOP_BY_HOP
    for name, value in headers:
        if name == b"connection" and value.lower() not in (b"keep-alive", b"close", b"upgrade"):
            named = named | {each.strip() for each in value.lower().split(b",")}
    return named


def header(headers: RawHeaders, wanted: bytes) -> bytes | None:
    """The first header of this name, in lower case."""
    for name, value in headers:  # several times in each request: a generator costs twice as much
        if name == wanted:
            return value
    return None


def text_of(value: bytes) -> str:
    """A header as aiohttp has it, which sends text as UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def raw_path(scope: Scope) -> str:
    """A request's path as it is on the wire, below the root of the application."""
    raw = scope.get("raw_path")
    path = raw.decode("utf-8", "surrogateescape") if raw else quote(scope["path"])
    return below_root(path, scope) if scope.get("root_path") else path


def routed_path(scope: Scope) -> str:
    """A request's path as the application's router sees it: percent signs are decoded before it is
    divided into segments. Bytes that are no UTF-8, for which servers put one and the same
    character, stay apart, so that no two paths have one key.
    """
    path: str = scope["path"]
    if NOT_UTF_8 in path:
        path = unquote_to_bytes(scope.get("raw_path") or path).decode("utf-8", "surrogateescape")
    return below_root(path, scope)


def below_root(path: str, scope: Scope) -> str:
    """The path below the root of the application, which ends at a slash, as routers see it."""
    below = path.removeprefix(scope.get("root_path") or "")
    return below if below[:1] in ("", "/") else path


async def respond(send: Send, answer: HttpAnswer) -> None:
    """Answer an HTTP request, and nothing else."""
    await _respond(send, answer, "http.response")


async def deny(scope: Scope, send: Send, answer: HttpAnswer) -> None:
    """Refuse a WebSocket that is not accepted yet."""
    if "websocket.http.response" in (scope.get("extensions") or {}):
        await _respond(send, answer, "websocket.http.response")
    else:
        await send({"type": "websocket.close", "code": SERVICE_RESTART, "reason": ""})


async def _respond(send: Send, answer: HttpAnswer, kind: str) -> None:
    body = answer.text.encode()
    headers = [(name.lower().encode(), value.encode()) for name, value in answer.headers.items()]
    headers += [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", b"%d" % len(body)),
    ]
    await send({"type": f"{kind}.start", "status": answer.status, "headers": headers})
    await send({"type": f"{kind}.body", "body": body})
