"""The address that a manager listens on, and the one that it tells others.

The manager binds it first of all. So a second manager on one port fails before it opens a journal,
and leaves nothing behind.
"""

import errno
import ipaddress
import socket
from typing import NamedTuple
from urllib.parse import urlsplit

from tenure.base.hosts import check_trusted
from tenure.errors import ConfigurationError
from tenure.manager.config import ManagerSettings
from tenure.transport.bounded_port import BACKLOG


class Listening(NamedTuple):
    """A bound socket, and the URL under which it can be reached."""

    socket: socket.socket
    url: str
    is_loopback: bool
    insecure: str
    """The protection that is missing if other machines reach it, which `--insecure` allows;
    otherwise empty.
    """


def listen(settings: ManagerSettings) -> Listening:
    """Bind the address in `settings`. The caller closes the socket.

    Raises ConfigurationError if it is taken, not this machine's, or not safe to listen on.
    """
    family, address = _resolve(settings.host, settings.port)
    ip = ipaddress.ip_address(address[0].partition("%")[0])
    insecure = "" if ip.is_loopback else _insecure(settings)
    if insecure:
        check_trusted(insecure, is_trusted=settings.insecure)
    if ip.is_unspecified and settings.advertise is None:
        raise ConfigurationError(
            f"{settings.host} stands for every address of this machine, and clients need one that "
            "they can reach: name it with --advertise http://HOST"
        )
    bound = _bind(family, address, settings)
    return Listening(bound, _url(settings, bound), ip.is_loopback, insecure)


def _insecure(settings: ManagerSettings) -> str:
    """The protection that a manager lacks which other machines reach; empty if it has all."""
    missing = [
        option
        for option, value in (
            ("--tls-cert and --tls-key", settings.tls_cert),
            ("--tokens", settings.tokens),
        )
        if value is None
    ]
    if not missing:
        return ""
    return (
        f"{settings.host} can be reached from other machines, and whoever reaches a manager can "
        f"take any key: give {' and '.join(missing)}"
    )


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, tuple[str, int]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise ConfigurationError(
            f"the host {host!r} is not an address of this machine: {error}. Name an IP address, "
            "or 127.0.0.1"
        ) from error
    found.sort(key=lambda each: each[0] != socket.AF_INET)  # `localhost` is usually both
    family, _, _, _, address = found[0]
    return family, (str(address[0]), port)


def _bind(
    family: socket.AddressFamily, address: tuple[str, int], settings: ManagerSettings
) -> socket.socket:
    try:
        return socket.create_server(address, family=family, backlog=BACKLOG)
    except OSError as error:
        host, port = settings.host, settings.port
        if error.errno == errno.EADDRINUSE:
            raise ConfigurationError(
                f"port {port} on {host} is in use: stop what listens there, perhaps another "
                "manager, or choose another with --port (0 takes a free one)"
            ) from error
        if error.errno == errno.EACCES:
            raise ConfigurationError(
                f"this user may not listen on port {port} of {host}; "
                "choose one above 1023 with --port"
            ) from error
        raise ConfigurationError(
            f"cannot listen on port {port} of {host}: {error.strerror or error}; name an address "
            "of this machine with --host"
        ) from error


def _url(settings: ManagerSettings, bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    if settings.advertise is None:
        scheme = "http" if settings.tls_cert is None else "https"
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
    parts = urlsplit(settings.advertise)
    netloc = parts.netloc if parts.port is not None else f"{parts.netloc.rstrip(':')}:{port}"
    return f"{parts.scheme}://{netloc}"
