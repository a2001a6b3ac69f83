"""Which headers a gateway passes on, and which it writes itself.

What concerns one connection ends here (RFC 9110, 7.6.1). What says who the client is, or that a
process of the pool speaks, is the gateway's to say: from a stranger it is dropped, also where it is
spelt with underscores, which WSGI does not tell from dashes. Names are in lower case.
"""

from ipaddress import ip_address, ip_network
from typing import NamedTuple

from tenure.errors import ConfigurationError
from tenure.member.asgi import ended_here

PairsOfHeaders = list[tuple[bytes, bytes]]
FORWARDED_FOR, FORWARDED_PROTO = b"x-forwarded-for", b"x-forwarded-proto"
FORWARDED_HOST = b"x-forwarded-host"
OURS = b"tenure-"
SAYS_WHO = (b"x-forwarded-", b"forwarded", b"x-real-ip")
"""What the headers begin with by which proxies say who the client is."""
DOUBTED = (OURS, *SAYS_WHO)
TOLD = b"tenure-outcome"
"""The one header of ours that clients get: whether a failed request was begun."""
MOST_FORWARDED_BYTES = 1000


class TrustedProxies:
    """The load balancers in front, which are believed about who the client is."""

    def __init__(self, given: tuple[str, ...]) -> None:
        try:
            self._networks = [ip_network(each) for each in given]
        except ValueError as error:
            raise ConfigurationError(
                f"a load balancer is trusted by its address or network, such as 10.0.0.0/8: {error}"
            ) from None

    def has(self, host: str) -> bool:
        """Whether the peer is one of them."""
        if not self._networks:
            return False
        try:
            address = ip_address(host)
        except ValueError:
            return False
        return any(address in each for each in self._networks)


class ClientSeen(NamedTuple):
    """The client of a request, as the owner is told."""

    host: str
    scheme: str
    is_trusted: bool
    """Whether it is a load balancer, which may say more."""


def for_owner(headers: PairsOfHeaders, client: ClientSeen) -> PairsOfHeaders:
    """The headers that the owner gets: those that go from end to end, and who the client is."""
    kept: PairsOfHeaders = []
    said: dict[bytes, bytes] = {}
    host = b""
    ended = ended_here(headers)
    for each in headers:
        name, value = each
        plain = name.replace(b"_", b"-") if b"_" in name else name
        if plain.startswith(DOUBTED):
            if client.is_trusted and plain == name and not name.startswith(OURS):
                said[name] = said[name] + b", " + value if name in said else value
            continue
        if name in ended:  # not before: a client could end a load balancer's word here
            continue
        if name == b"host":
            host = value
        kept.append(each)
    before = said.get(FORWARDED_FOR, b"")
    if len(before) > MOST_FORWARDED_BYTES:  # a client may have made up what comes first
        before = before[-MOST_FORWARDED_BYTES:].partition(b",")[2].strip()
    here = client.host.encode()
    kept.append((FORWARDED_FOR, before + b", " + here if before else here))
    kept.append((FORWARDED_PROTO, said.get(FORWARDED_PROTO, client.scheme.encode())))
    kept.append((FORWARDED_HOST, said.get(FORWARDED_HOST, host)))
    return kept


def for_client(headers: PairsOfHeaders) -> PairsOfHeaders:
    """The headers that the client gets of an answer: nothing about the inside of the pool."""
    ended = ended_here(headers)
    return [
        each
        for each in headers
        if each[0] not in ended and (not each[0].startswith(OURS) or each[0] == TOLD)
    ]
