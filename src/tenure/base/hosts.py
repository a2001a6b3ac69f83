"""Hosts in addresses: which one it is, and who reaches it."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from tenure.errors import ConfigurationError


def host_of(address: str, mark: str = "://") -> str | None:
    """The host that an address names; the address is a URL if it contains `mark`."""
    try:
        return urlsplit(address).hostname if mark in address else None
    except ValueError:
        return None


def is_every_address(host: str | None) -> bool:
    """Whether `host` is one to listen on, such as 0.0.0.0, which nobody can be sent to."""
    try:
        return host is not None and ip_address(host).is_unspecified
    except ValueError:
        return False


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches `host`. The only name that it knows is `localhost`: other
    names may be anybody's, and are not looked up here.
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_trusted(insecure: str, *, is_trusted: bool) -> None:
    """Raise ConfigurationError if something is `insecure`, unless everybody who can reach `host` is
    trusted.
    """
    if not is_trusted:
        raise ConfigurationError(
            f"{insecure}, listen on 127.0.0.1, or say with --insecure that everybody on that "
            "network is trusted"
        )


def is_of_no_site(host: str) -> bool:
    """Whether a browser that names this host, with a port or without, shows no site's page.

    Anybody can point a name of theirs to our address, and a page of that name then reads our
    answers. No site's page has a bare address as its host, or a name without a dot.
    """
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    try:
        ip_address(name)
    except ValueError:
        return bool(name) and "." not in name
    return True
