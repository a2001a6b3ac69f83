"""The contract of `transport.datagram`, kept by UDP and by the datagrams in memory that
tests use.
"""

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tenure.errors import ConfigurationError
from tenure.testing.contracts.datagrams import DatagramContract, Make, Throw, seal_of
from tenure.transport.datagram import (
    Datagrams,
    DatagramSeal,
    MemoryDatagramNetwork,
    MemoryDatagrams,
    UdpDatagrams,
    host_and_port,
)


@pytest.mark.asyncio
class TestUdp(DatagramContract):
    @pytest_asyncio.fixture
    async def make(self) -> AsyncIterator[Make]:
        made: list[Datagrams] = []

        def make(seal: DatagramSeal) -> Datagrams:
            made.append(UdpDatagrams(seal))
            return made[-1]

        yield make
        for each in made:
            await each.close()

    @pytest.fixture
    def throw(self) -> Throw:
        async def throw(address: str, data: bytes) -> None:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as thrower:
                thrower.sendto(data, host_and_port(address))
            await asyncio.sleep(0)

        return throw


@pytest.mark.asyncio
class TestInMemory(DatagramContract):
    @pytest.fixture
    def network(self) -> MemoryDatagramNetwork:
        return MemoryDatagramNetwork()

    @pytest.fixture
    def make(self, network: MemoryDatagramNetwork) -> Make:
        return lambda seal: MemoryDatagrams(network, seal)

    @pytest.fixture
    def throw(self, network: MemoryDatagramNetwork) -> Throw:
        async def throw(address: str, data: bytes) -> None:
            network.hearing[address].arrive("10.9.9.9:9", data)

        return throw


def test_a_secret_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="openssl rand"):
        seal_of(1, secret=b"hunter2")


@pytest.mark.parametrize("address", ["7501", ":7501", "host:", "host:x", "host:70000"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ConfigurationError, match="HOST:PORT"):
        host_and_port(address)
    assert host_and_port("[::1]:75") == ("::1", 75)
