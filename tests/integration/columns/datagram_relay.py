"""A network for the datagrams of nodes on one host, which can be parted; connections are not.

A node hears at 127.0.0.1, and all others are told that it hears at 127.0.0.2, where the relay is.
What came for one node goes on from where its sender is told to be, so nobody sees the relay.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import partial

import pytest

HOST = "127.0.0.1"
TOLD_HOST = "127.0.0.2"


class DatagramRelay:
    """Passes on what nodes send, but for what is between two ports in `parted`."""

    def __init__(self) -> None:
        self.parted: set[frozenset[int]] = set()
        self.lost = 0
        self._sockets: dict[int, asyncio.DatagramTransport] = {}

    async def start(self, ports: Iterable[int]) -> None:
        loop = asyncio.get_running_loop()
        for port in ports:
            self._sockets[port], _ = await loop.create_datagram_endpoint(
                partial(_Told, self, port), local_addr=(TOLD_HOST, port)
            )

    def stop(self) -> None:
        for each in self._sockets.values():
            each.close()

    def pass_on(self, data: bytes, sender: int, receiver: int) -> None:
        if frozenset({sender, receiver}) in self.parted:
            self.lost += 1
        elif sender in self._sockets:
            self._sockets[sender].sendto(data, (HOST, receiver))


class _Told(asyncio.DatagramProtocol):
    """The address at which one node is told to hear."""

    def __init__(self, relay: DatagramRelay, port: int) -> None:
        self._relay = relay
        self._port = port

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._relay.pass_on(data, addr[1], self._port)


@asynccontextmanager
async def relay_for(ports: Iterable[int]) -> AsyncIterator[DatagramRelay]:
    """A relay between the nodes at these ports. Skips where the host has one loopback address."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tried:
            tried.bind((TOLD_HOST, 0))
    except OSError:
        pytest.skip(f"this host does not have {TOLD_HOST}")
    relay = DatagramRelay()
    try:
        await relay.start(ports)
        yield relay
    finally:
        relay.stop()
