"""Relays between members with TLS: a peer without a certificate of the authority does
not get in.
"""

import ssl
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import pytest

from tenure import ConfigurationError, Credentials, Member, Relay
from tests.certificates import Authority
from tests.unit.manager.serving import serving
from tests.unit.member.test_aiohttp_relay import key_of as aiohttp_key_of
from tests.unit.member.test_aiohttp_relay import street
from tests.unit.member.test_relay import KEY, Shop, asking, key_of


def mutual(directory: Path) -> Credentials:
    """Return the credentials of a member that also demands certificates from its peers."""
    authority = Authority(directory)
    identity = authority.sign("member")
    return Credentials(ca=authority.file, cert=identity.cert, key=identity.key, mutual=True)


def test_a_member_that_others_reach_wants_mutual_tls(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="mutual=True"):
        Member("carts", "http://m", listen="10.0.0.1:0")
    Member("carts", "http://m", listen="10.0.0.1:0", credentials=mutual(tmp_path))
    Member("carts", "http://m", listen="10.0.0.1:0", insecure=True)


@pytest.mark.asyncio
async def test_what_is_anothers_is_relayed_over_tls_and_a_stranger_is_not_heard(
    tmp_path: Path,
) -> None:
    credentials = mutual(tmp_path)
    async with serving() as manager:
        members, relays = [], []
        for name in ("first", "second"):
            member = Member("carts", manager.service.url, drain=0, credentials=credentials)
            members.append(member)
            relays.append(Relay(Shop(name), member=member, key=KEY))
        first, second = members
        async with first.serving(relays[0]), second.serving(relays[1]):
            address = first.owner.address
            assert address.startswith("https://127.0.0.1:")
            key = await key_of(first, second)
            async with asking(relays[1]) as client:
                got = await client.put(f"/carts/{key}", content=b"tea")
            assert (got.status_code, got.headers["served-by"]) == (200, "first")
            trusting = ssl.create_default_context(cafile=str(credentials.ca))
            async with httpx.AsyncClient(verify=trusting) as stranger:
                with pytest.raises(httpx.TransportError):
                    await stranger.put(f"{address}/carts/{key}", content=b"tea")
            async with httpx.AsyncClient() as stranger:
                with pytest.raises(httpx.TransportError):
                    await stranger.put(address.replace("https", "http") + f"/carts/{key}")


@pytest.mark.asyncio
async def test_members_of_aiohttp_relay_requests_and_websockets_over_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment names the files."""
    credentials = mutual(tmp_path)
    for name, value in (
        ("TENURE_CA", credentials.ca),
        ("TENURE_CERT", credentials.cert),
        ("TENURE_KEY", credentials.key),
        ("TENURE_MUTUAL_TLS", "1"),
    ):
        monkeypatch.setenv(name, str(value))
    async with street() as it:
        first, second = await it.shop("first"), await it.shop("second")
        await first.member.owner.ready()
        key = await aiohttp_key_of(first, second)
        assert first.member.owner.address.startswith("https://")
        async with it.session.post(f"{second.url}/carts/{key}") as got:
            assert (got.status, await got.text()) == (200, "first")
        socket: aiohttp.ClientWebSocketResponse[Any]
        async with it.session.ws_connect(f"{second.url}/carts/{key}/talk") as socket:
            await socket.send_str("hello")
            assert await socket.receive_str() == "hello"
        assert first.got == ["hello"]
