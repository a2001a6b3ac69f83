"""Addresses that strangers name: only public ones may be asked."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web
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
LOOPBACK = (
    *("127.0.0.1", "2130706433", "0x7f000001", "017700000001", "127.1", "127.0.1", "0177.0.0.1"),
    *("0x7f.1", "0", "0.0", "127.0.0.1.", "127.1.", "0x7f000001.", "[::1]", "[::ffff:127.0.0.1]"),
    *("%31%32%37.1", "１２７.1", "127。1"),  # noqa: RUF001  # what a URL makes ASCII of
)


@pytest.mark.parametrize("which", INWARD)
def test_an_address_that_is_not_public_is_not_outward(which: str) -> None:
    assert not is_outward(INWARD[which])


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is(address: str) -> None:
    assert is_outward(address)


@pytest.mark.asyncio
@pytest.mark.parametrize("host", LOOPBACK)
async def test_a_number_that_leads_inwards_is_refused_however_it_is_written(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here, and not by the HTTP library: some of its versions looked no such host up."""
    monkeypatch.setattr(aiohttp.ClientSession, "request", None)
    asking = Outward()
    try:
        with pytest.raises(ServiceRefusal, match=r"not public|is not a URL") as refused:
            await asking.ask("GET", f"http://{host}:1/", 1000, 10.0)
        assert refused.value.status == 422
    finally:
        await asking.close()


@pytest.mark.asyncio
@pytest.mark.parametrize("host", LOOPBACK)
async def test_no_socket_is_made_for_an_inward_address_whatever_its_host_was_taken_for(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address of the connection decides, should a host ever pass for a name."""
    monkeypatch.setattr(outward, "parsed_host", lambda _: None)
    asking, connected = Outward(), False

    def on_connect(*_: object) -> None:
        nonlocal connected
        connected = True

    async with listening(on_connect) as port:
        try:
            with pytest.raises(ServiceRefusal):
                await asking.ask("GET", f"http://{host}:{port}/", 1000, 10.0)
        finally:
            await asking.close()
    assert not connected


@asynccontextmanager
async def listening(on_connect: Callable[..., None]) -> AsyncIterator[int]:
    """A port of this machine."""
    server = await asyncio.start_server(on_connect, ["127.0.0.1"], 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.asyncio
async def test_a_name_of_which_one_address_leads_inwards_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Others choose which of the addresses a connection goes to."""

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


class Names:
    """Finds these addresses, one after the other; the last one again and again."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = list(addresses)

    async def resolve(self, host: str, port: int, family: int) -> list[ResolveResult]:
        del family
        address = self.addresses.pop(0) if len(self.addresses) > 1 else self.addresses[0]
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
        ]

    async def close(self) -> None: ...


@asynccontextmanager
async def public(
    monkeypatch: pytest.MonkeyPatch, *addresses: str
) -> AsyncIterator[tuple[str, list[dict[str, str]]]]:
    """A URL that counts as public while its name leads to this machine; and what it was asked."""
    asked: list[dict[str, str]] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(dict(request.headers))
        response = web.StreamResponse(headers={"Set-Cookie": "who=you; Path=/"})
        response.force_close()
        await response.prepare(request)
        while request.path == "/slow":
            await response.write(b"x")
            await asyncio.sleep(0.05)
        return response

    monkeypatch.setattr(outward, "is_outward", lambda address: address == "127.0.0.1")
    monkeypatch.setattr(outward, "ThreadedResolver", lambda: Names(*addresses))
    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://there.test:{runner.addresses[0][1]}", asked
    finally:
        await runner.cleanup()


@pytest.mark.asyncio
async def test_a_name_is_looked_up_at_each_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may lead to another address a moment later, so nothing that was found before
    is relied on.
    """
    async with public(monkeypatch, "127.0.0.1", "10.0.0.1") as (url, asked):
        asking = Outward()
        try:
            assert (await asking.ask("GET", url, 1000, 60.0)).status == 200
            with pytest.raises(ServiceRefusal, match="not public") as refused:
                await asking.ask("GET", url, 1000, 60.0)
            assert (refused.value.status, refused.value.error) == (422, "inward")
        finally:
            await asking.close()
        assert len(asked) == 1


@pytest.mark.asyncio
async def test_no_cookie_is_sent_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async with public(monkeypatch, "127.0.0.1") as (url, asked):
        asking = Outward()
        try:
            for _ in range(2):
                await asking.ask("GET", url, 1000, 60.0)
        finally:
            await asking.close()
        assert ["Cookie" in each for each in asked] == [False, False]


@pytest.mark.asyncio
async def test_who_answers_on_and_on_is_waited_for_so_long_in_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with public(monkeypatch, "127.0.0.1") as (url, _):
        asking = Outward()
        try:
            async with asyncio.timeout(20):
                with pytest.raises(ServiceRefusal, match="cannot be asked") as refused:
                    await asking.ask("GET", url + "/slow", 1 << 20, 0.3)
            assert refused.value.status == 502
        finally:
            await asking.close()


@pytest.mark.asyncio
@pytest.mark.parametrize("who", ["ann:secret@", "ann@", ":secret@"])
async def test_a_url_with_a_name_or_a_password_is_refused(who: str) -> None:
    asking = Outward()
    try:
        with pytest.raises(ServiceRefusal, match="password"):
            asking.checked(f"http://{who}8.8.8.8/")
    finally:
        await asking.close()
