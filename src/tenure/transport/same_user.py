"""Whether the other end of a loopback connection belongs to the same user of this machine.

A TCP connection does not say whose it is, as a Unix socket does. But the kernel lists the sockets
of a machine with their users, in /proc/net on Linux. Elsewhere, and where that cannot be read,
nothing is known, and the peer has to prove itself like any other.
"""

import os
import sys
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any

ESTABLISHED = "01"
_WORD = 4
_LOCAL, _REMOTE, _STATE, _USER = 1, 2, 3, 7
_COLUMNS = 10


def is_of_same_user(near: Any, far: Any, tables: Path = Path("/proc/net")) -> bool:  # noqa: ANN401  # addresses of a socket
    """Whether `far`, the peer of a connection whose end here is `near`, is a socket of this user.
    Reads a file of the kernel, which may take some milliseconds.
    """
    try:
        here, there = _Spelled(near), _Spelled(far)
        if not (here.host.is_loopback and there.host.is_loopback):
            return False
        for name in there.tables:
            with (tables / name).open(encoding="ascii") as rows:
                for row in rows:
                    columns = row.split(None, _COLUMNS)
                    if len(columns) > _USER and columns[_LOCAL : _STATE + 1] == [
                        there.in_table(name),
                        here.in_table(name),
                        ESTABLISHED,
                    ]:
                        return int(columns[_USER]) == os.geteuid()
    except (OSError, ValueError, TypeError, IndexError):
        return False
    return False


class _Spelled:
    """An address, as the kernel's tables spell it."""

    def __init__(self, address: Any) -> None:  # noqa: ANN401  # of a socket
        found = ip_address(address[0].partition("%")[0])
        mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
        self.host: IPv4Address | IPv6Address = mapped or found
        self.port = int(address[1])

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that may have it: a socket for both families has IPv4 peers, too."""
        return ("tcp", "tcp6") if isinstance(self.host, IPv4Address) else ("tcp6",)

    def in_table(self, name: str) -> str:
        """The words of the address in this machine's order, and the port."""
        packed = self.host.packed
        if name == "tcp6" and len(packed) == _WORD:
            packed = IPv6Address(f"::ffff:{self.host}").packed
        words = (packed[i : i + _WORD] for i in range(0, len(packed), _WORD))
        shown = "".join(f"{int.from_bytes(each, sys.byteorder):08X}" for each in words)
        return f"{shown}:{self.port:04X}"
