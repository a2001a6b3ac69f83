"""The contract of `transport.datagram`, kept by UDP and by the datagrams in memory that
tests use.
"""

import asyncio
import gc
import socket
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from lab.contracts.datagrams import DatagramContract, Make, Throw, seal_of
from tenure.errors import ConfigurationError
from tenure.transport.datagram import (
    Datagrams,
    DatagramSeal,
    MemoryDatagramNetwork,
    MemoryDatagrams,
    UdpDatagrams,
    host_and_port,
)
from tests.patience import DEADLINE_SECONDS


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


@pytest.mark.parametrize("address", ["[::1]:7", "::1:7", "x" * 64 + ".example:7", "two words:7"])
def test_an_address_that_cannot_be_sent_to_harms_nobody(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A node's socket is of IPv4 or of IPv6, and another node is of the other."""
    uvloop = pytest.importorskip("uvloop")  # asyncio's own loop takes this for a network that fails

    async def send() -> int:
        datagrams = UdpDatagrams(seal_of(1))
        await datagrams.listen("127.0.0.1:0", lambda _address, _sealed: None)
        async with asyncio.timeout(DEADLINE_SECONDS):
            while sum(datagrams.dropped.values()) < 10:
                datagrams.send(address, b"x")
                await asyncio.sleep(0.01)
        await datagrams.close()
        return datagrams.dropped["unresolved"]

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(send()) == 10
    gc.collect()
    assert not caplog.records


def test_a_secret_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="openssl rand"):
        seal_of(1, secret=b"hunter2")


@pytest.mark.parametrize("address", ["7501", ":7501", "host:", "host:x", "host:70000"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ConfigurationError, match="HOST:PORT"):
        host_and_port(address)
    assert host_and_port("[::1]:75") == ("::1", 75)
