"""How long a client waits behind a relay while nobody owns its key."""

import asyncio

import pytest

from tenure.member import relay as relaying
from tests.unit.member.test_relay import Shop, asking, key_of, stage

pytestmark = pytest.mark.asyncio


async def test_a_client_waits_for_an_owner_no_longer_than_people_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two holds of the preset `default` are much longer than this test."""
    assert relaying.DEADLINE_SECONDS == 10
    monkeypatch.setattr(relaying, "DEADLINE_SECONDS", 0.2)
    async with stage() as it:
        first, _ = await it.member(Shop("first"))
        second, relay = await it.member(Shop("second"))
        key = await key_of(first, second)
        await it.crash(first)
        async with asyncio.timeout(second.hold), asking(relay) as client:
            got = await client.get(f"/carts/{key}")
        assert (got.status_code, got.headers["Tenure-Outcome"]) == (503, "not-begun")
