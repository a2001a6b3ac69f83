"""Hosts in addresses: which one it is, and who reaches it."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from tenure.errors import ConfigurationError


def host_of(address: str, mark: str = "://") -> str | None:
    """The host that an address names, where it is a URL, which `mark` shows."""
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
    """Whether only this machine reaches `host`. Of names it knows `localhost`: others may be
    anybody's, and are not looked up here.
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_trusted(insecure: str, *, is_trusted: bool) -> None:
    """Raise ConfigurationError for what is `insecure`, unless everybody there is trusted."""
    if not is_trusted:
        raise ConfigurationError(
            f"{insecure}, listen on 127.0.0.1, or say with --insecure that everybody on that "
            "network is trusted"
        )


def is_of_no_site(host: str) -> bool:
    """Whether a browser that names this host, with a port or without, shows no site's page.

    Anybody can let a name of theirs mean our address, and a page of that name then reads what we
    answer. Nobody's page is of an address, or of a name without a dot.
    """
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    try:
        ip_address(name)
    except ValueError:
        return bool(name) and "." not in name
    return True
