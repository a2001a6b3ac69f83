"""The host of a URL that a stranger names: an address, a name, or neither."""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address

_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)", re.ASCII | re.IGNORECASE)
_NUMBER = re.compile(r"\d+|0x[\da-f]*", re.ASCII | re.IGNORECASE)
NAME_CHARACTERS = 253
"""The most that DNS takes."""


def parsed_host(host: str) -> IPv4Address | IPv6Address | None:
    """The address that a host of a URL is, or None for a name. Raises ValueError if it is neither.

    An address is taken in its usual form only. Systems and libraries read `2130706433`, `127.1`,
    `0x7f.1` and `0` as addresses as well, and do not agree on which ones: what looks like a name
    to one is this machine to the other. So whatever ends in a number is an address, or nothing.
    """
    if ":" in host:
        return ip_address(host.partition("%")[0])
    labels = host.removesuffix(".").split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return IPv4Address(host)
    if len(host) > NAME_CHARACTERS or not all(map(_LABEL.fullmatch, labels)):
        raise ValueError(f"{host!r:.200} is not a host name")
    return None
