"""Ports for processes that must be told theirs before they start.

The system gives any free port to whoever asks for port 0, and may give the same one to another
process between the looking and the listening. So these lie below the ports that it gives
(`ip_local_port_range`, from 32,768 on Linux), and are drawn.
"""

import socket
from random import SystemRandom

HOST = "127.0.0.1"
FIRST, LAST = 10_000, 30_000


def free_ports(count: int) -> list[int]:
    """That many ports in a row, free at the moment for TCP and for UDP."""
    while True:
        first = SystemRandom().randrange(FIRST, LAST - count)
        ports = list(range(first, first + count))
        if all(map(_is_free, ports)):
            return ports


def _is_free(port: int) -> bool:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as one:
            try:
                one.bind((HOST, port))
            except OSError:
                return False
    return True
