"""Whether the other end of a loopback connection belongs to the same user of this machine.

A TCP connection does not say whose it is, as a Unix socket does. But on Linux the kernel tells
anybody who asks about a connection whose it is (sock_diag(7)). Elsewhere, and where it does not
answer, nothing is known, and the peer has to prove itself like any other.

It is asked about this one connection. /proc/net/tcp says the same, but lists every connection of
the machine: reading it takes tens of milliseconds once somebody has opened enough of them.
"""

import os
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address
from struct import Struct, error
from typing import Any

_SOCK_DIAG = 4
"""The protocol of netlink(7)."""
_BY_FAMILY = 20
"""The type of a request about a socket, and of its answer."""
_ESTABLISHED = 1
_HEADER = Struct("=IHHII")
"""The length, the type, flags, a number, and who asks."""
_REQUEST = Struct("=BBBxI2s2s16s16sI8s")
"""inet_diag_req_v2: family, protocol, further details, states, the ports and addresses of a socket
and its peer, its interface, and its cookie, of which any will do.
"""
_ANSWER = Struct("=BB62xI")
"""inet_diag_msg: family, state, and, behind addresses and queues, the user."""
_ANY_STATE = 0xFFFF_FFFF
_ANSWER_BYTES = 4096
_SECONDS = 0.1


def is_of_same_user(near: Any, far: Any) -> bool:  # noqa: ANN401  # addresses of a socket
    """Whether `far`, the peer of a connection whose end here is `near`, is a socket of this
    user.
    """
    try:
        here, there = _Spelled(near), _Spelled(far)
        return (
            here.host.is_loopback and there.host.is_loopback and _user(there, here) == os.geteuid()
        )
    except (OSError, ValueError, TypeError, IndexError, error):
        return False


class _Spelled:
    """An address, as the kernel reads it."""

    def __init__(self, address: Any) -> None:  # noqa: ANN401  # of a socket
        found = ip_address(address[0].partition("%")[0])
        mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
        self.host: IPv4Address | IPv6Address = mapped or found
        self.family = socket.AF_INET if self.host.version == 4 else socket.AF_INET6  # noqa: PLR2004
        self.port = int(address[1]).to_bytes(2, "big")


def _user(of: _Spelled, peer: _Spelled) -> int | None:
    """The user of the socket at `of` that is connected to `peer`; None if there is none."""
    asked = _REQUEST.pack(
        of.family,
        socket.IPPROTO_TCP,
        0,
        _ANY_STATE,
        of.port,
        peer.port,
        of.host.packed,
        peer.host.packed,
        0,
        b"\xff" * 8,
    )
    flags, number, asker = 1, 0, 0
    head = _HEADER.pack(_HEADER.size + len(asked), _BY_FAMILY, flags, number, asker)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
        kernel.settimeout(_SECONDS)  # it answers before `send` returns
        kernel.sendto(head + asked, (0, 0))
        answer = kernel.recv(_ANSWER_BYTES)
    _, kind, *_ = _HEADER.unpack_from(answer)
    if kind != _BY_FAMILY:  # an error: there is no such socket
        return None
    _, state, user = _ANSWER.unpack_from(answer, _HEADER.size)
    return int(user) if state == _ESTABLISHED else None
