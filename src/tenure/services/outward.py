"""HTTP requests to addresses that strangers name: they may only lead outwards.

Otherwise a stranger who can name a URL could make this process ask what only it can reach: a
database's port, a cloud's metadata. So a host must have a global address. The check is of the very
address to which this process connects, when it makes the socket, and not only beforehand: a name
may lead elsewhere a moment later, and whether a host is looked up at all is the HTTP library's
decision. For the same reason redirects are followed one by one, and only a limited number of them.
"""

import socket
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any, NamedTuple

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver
from yarl import URL

from tenure.errors import ServiceRefusal
from tenure.services.hosts import parsed_host

MOST_REDIRECTS = 5
REDIRECTS = (301, 302, 303, 307, 308)
CONNECT_SECONDS = 10.0
WITH_IPV4 = (IPv6Network("64:ff9b::/96"), IPv6Network("::/96"))
"""The networks of NAT64 and of older schemes: the last four bytes are the intended address."""
GIVEN_OUT = IPv6Network("2000::/3")
"""All IPv6 addresses that are assigned: Python calls others global as well."""
OF_PROTOCOLS = IPv4Network("192.0.0.0/24")
"""A network of which some versions of Python call a part global."""


class OutwardAnswer(NamedTuple):
    """The answer from a URL."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class InwardAddress(OSError):
    """The name leads to an address that strangers must not reach."""


class OutwardResolver(AbstractResolver):
    """Resolves names to global addresses only."""

    def __init__(self) -> None:
        self._resolver = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """See `AbstractResolver`. Raises InwardAddress if one of the addresses is not global."""
        found = await self._resolver.resolve(host, port, family)
        for each in found:
            if not is_outward(each["host"]):
                raise InwardAddress(f"{host} is {each['host']}, which is not a global address")
        return found

    async def close(self) -> None:
        await self._resolver.close()


def is_outward(address: str) -> bool:
    """Whether strangers may reach this IP address."""
    found: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour
        if any(found in network for network in WITH_IPV4):
            inner = IPv4Address(int(found) & 0xFFFF_FFFF)
        if inner is None:
            return found in GIVEN_OUT and found.is_global
        found = inner
    return found.is_global and not found.is_multicast and found not in OF_PROTOCOLS


def outward_socket(address: tuple[Any, ...]) -> socket.socket:
    """The socket for a connection, by what `getaddrinfo` says. Raises InwardAddress if it must not
    be made.
    """
    family, kind, protocol, _, (host, *_) = address
    if not is_outward(host):
        raise InwardAddress(f"{host} is not a global address")
    return socket.socket(family, kind, protocol)


class Outward:
    """Asks URLs that strangers name. With `inward`, for tests and closed networks, any address is
    allowed.
    """

    def __init__(self, *, inward: bool = False) -> None:
        self._inward = inward
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                resolver=None if inward else OutwardResolver(),
                socket_factory=None if inward else outward_socket,
                use_dns_cache=inward,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    def checked(self, url: str) -> URL:
        """Return the URL. Raises ServiceRefusal if it is not a URL of HTTP, or leads inwards."""
        try:
            found = URL(url)
            host, scheme = found.raw_host, found.scheme
            literal = parsed_host(host) if host else None
        except ValueError:
            raise ServiceRefusal(422, "url", f"{url!r:.200} is not a URL") from None
        if scheme not in ("http", "https") or not host:
            raise ServiceRefusal(422, "url", f"{url!r:.200} is not an http or https URL")
        if found.user is not None or found.password is not None:
            raise ServiceRefusal(422, "url", "a URL with a password would be shown to others")
        if not self._inward and literal is not None and not is_outward(host):
            raise _inward(url)
        return found

    async def ask(
        self,
        method: str,
        url: str,
        most: int,
        seconds: float,
        **options: Any,  # noqa: ANN401
    ) -> OutwardAnswer:
        """Return what is at the URL, at most `most` bytes, after all redirects of a GET. `options`
        are those of aiohttp. Raises ServiceRefusal, with the status 502 if the other side is at
        fault.
        """
        at, seen = self.checked(url), list[URL]()
        options["timeout"] = aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_SECONDS)
        try:
            while True:
                if at in seen or len(seen) > MOST_REDIRECTS:
                    raise ServiceRefusal(
                        502, "redirects", f"{url:.200} redirects in a circle, or without end"
                    )
                seen.append(at)
                async with self._session.request(
                    method, at, allow_redirects=False, **options
                ) as response:
                    to = response.headers.get("Location")
                    if response.status not in REDIRECTS or to is None or method != "GET":
                        body = await _read(response, most, url)
                        return OutwardAnswer(response.status, response.headers, body)
                    at = self.checked(str(at.join(URL(to))))
        except aiohttp.ClientConnectorError as error:
            if isinstance(error.os_error, InwardAddress):
                raise _inward(url) from error
            raise _failed(url, error) from error
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise _failed(url, error) from error


async def _read(response: aiohttp.ClientResponse, most: int, url: str) -> bytes:
    """Read a body, decompressed. An endless body is read only up to the limit. The answer to a
    request that sent something still counts then, and the rest of its body is ignored.
    """
    body = bytearray()
    async for chunk in response.content.iter_chunked(1 << 14):
        body += chunk
        if len(body) > most:
            if response.method != "GET":
                break
            raise ServiceRefusal(502, "endless", f"{url:.200} answers more than {most} bytes")
    return bytes(body)


def _inward(url: str) -> ServiceRefusal:
    return ServiceRefusal(422, "inward", f"{url:.200} leads to an address that is not public")


def _failed(url: str, error: Exception) -> ServiceRefusal:
    why = str(error) or type(error).__name__
    return ServiceRefusal(502, "unreachable", f"{url:.200} cannot be asked: {why:.200}")
