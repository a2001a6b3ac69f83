"""Addresses that strangers name: what is public may be asked, and nothing else."""

import socket

import pytest
from aiohttp.abc import ResolveResult

from tenure.errors import ServiceRefusal
from tenure.services import outward
from tenure.services.outward import Outward, OutwardResolver, is_outward

INWARD = {
    "loopback": "127.0.0.1",
    "loopback of IPv6": "::1",
    "any": "0.0.0.0",  # noqa: S104
    "any of IPv6": "::",
    "private": "10.0.0.1",
    "private, too": "192.168.1.1",
    "of this link": "169.254.169.254",
    "of this link, IPv6": "fe80::1%eth0",
    "unique local": "fd00::1",
    "of a carrier": "100.64.0.1",
    "multicast": "224.0.0.1",
    "multicast of IPv6": "ff02::1",
    "broadcast": "255.255.255.255",
    "IPv4 in IPv6": "::ffff:127.0.0.1",
    "6to4 of a private one": "2002:0a00:0001::1",
    "NAT64 of a private one": "64:ff9b::10.0.0.1",
    "IPv4 in IPv6, as it once was": "::10.0.0.1",
    "IPv4 in IPv6, translated": "::ffff:0:10.0.0.1",
    "NAT64 of this site": "64:ff9b:1::10.0.0.1",
    "of this site, IPv6, as it once was": "fec0::1",
    "segments": "5f00::1",
    "not given out": "4000::1",
    "of protocols": "192.0.0.8",
    "reserved": "240.0.0.1",
}
PUBLIC = (
    "8.8.8.8",
    "2001:4860:4860::8888",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
    "2002:808:808::1",
)


@pytest.mark.parametrize("which", INWARD)
def test_an_address_that_is_not_public_is_not_outward(which: str) -> None:
    assert not is_outward(INWARD[which])


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is(address: str) -> None:
    assert is_outward(address)


@pytest.mark.asyncio
@pytest.mark.parametrize("host", ["127.0.0.1", "2130706433", "0x7f000001", "127.1", "[::1]"])
async def test_a_number_that_leads_inwards_is_refused_however_it_is_written(host: str) -> None:
    asking = Outward()
    try:
        with pytest.raises(ServiceRefusal, match=r"not public|not a canonical"):
            await asking.ask("GET", f"http://{host}:1/", 1000, 10.0)
    finally:
        await asking.close()


@pytest.mark.asyncio
async def test_a_name_of_which_one_address_leads_inwards_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Which of them is connected to is for others to choose."""

    class Both:
        async def resolve(self, host: str, port: int, family: int) -> list[ResolveResult]:
            return [
                ResolveResult(hostname=host, host=each, port=port, family=family, proto=0, flags=0)
                for each in ("8.8.8.8", "10.0.0.1")
            ]

        async def close(self) -> None: ...

    monkeypatch.setattr(outward, "ThreadedResolver", Both)
    resolver = OutwardResolver()
    with pytest.raises(outward.InwardAddress, match=r"10\.0\.0\.1"):
        await resolver.resolve("two.example", 80, socket.AF_INET)
    await resolver.close()
