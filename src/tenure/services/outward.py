"""HTTP requests to addresses that strangers name: only outwards.

Whoever can name a URL could otherwise have this process ask what only it can reach: a database's
port, a cloud's metadata. So a host must have a global address. That is asked of the very address
that is connected to, and not beforehand, since a name may lead elsewhere a moment later. Redirects
are followed one by one for the same reason, and only so many.
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

MOST_REDIRECTS = 5
REDIRECTS = (301, 302, 303, 307, 308)
CONNECT_SECONDS = 10.0
WITH_IPV4 = (IPv6Network("64:ff9b::/96"), IPv6Network("::/96"))
"""Of NAT64, and of old: the last four bytes are the address that is meant."""
GIVEN_OUT = IPv6Network("2000::/3")
"""Of IPv6, all addresses that anybody has: what lies beside it, Python calls global as well."""
OF_PROTOCOLS = IPv4Network("192.0.0.0/24")
"""Some Pythons call part of it global."""


class OutwardAnswer(NamedTuple):
    """What was found at a URL."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class InwardAddress(OSError):
    """The name leads to an address that strangers must not reach."""


class OutwardResolver(AbstractResolver):
    """Finds global addresses only."""

    def __init__(self) -> None:
        self._resolver = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """See `AbstractResolver`. Raises InwardAddress if one of the addresses is no global one."""
        found = await self._resolver.resolve(host, port, family)
        for each in found:
            if not is_outward(each["host"]):
                raise InwardAddress(f"{host} is {each['host']}, which is not a global address")
        return found

    async def close(self) -> None:
        """See `AbstractResolver`."""
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


class Outward:
    """Asks URLs that strangers name. With `inward`, for tests and closed networks, any address."""

    def __init__(self, *, inward: bool = False) -> None:
        self._inward = inward
        resolver = None if inward else OutwardResolver()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(resolver=resolver, use_dns_cache=inward),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    def checked(self, url: str) -> URL:
        """The URL. Raises ServiceRefusal for one that is not HTTP's, or leads inwards."""
        try:
            found = URL(url)
            host, scheme = found.host, found.scheme
        except ValueError:
            raise ServiceRefusal(422, "url", f"{url!r:.200} is no URL") from None
        if scheme not in ("http", "https") or not host:
            raise ServiceRefusal(422, "url", f"{url!r:.200} is not an http or https URL")
        if found.user is not None or found.password is not None:
            raise ServiceRefusal(422, "url", "a URL with a password would be shown to others")
        if not self._inward and _is_literal(host) and not is_outward(host):
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
        """What is there, `most` bytes of it at most, after all redirects of a GET. `options` are
        those of aiohttp. Raises ServiceRefusal, with the status 502 where the other side is at
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


def _is_literal(host: str) -> bool:
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


async def _read(response: aiohttp.ClientResponse, most: int, url: str) -> bytes:
    """Decompressed. An endless one is read no further than the limit; where something was sent, it
    is taken all the same, and what is said to that beyond the limit is nothing to us.
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
