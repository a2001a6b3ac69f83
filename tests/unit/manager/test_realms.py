"""Realms: clients do not follow the managers of another fleet, and say why."""

import asyncio
import re

import pytest

from tenure import Lookup, NoManager, Owner
from tests.unit.manager.serving import serving

pytestmark = pytest.mark.asyncio


async def test_a_client_of_another_realm_says_why_it_follows_no_manager(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving(realm="shop") as manager:
        url = manager.service.url
        async with Owner(url, pool="rooms", address="http://a", realm="shop"):
            monkeypatch.setenv("TENURE_REALM", "bank")
            clients = (
                Owner(url, pool="rooms", address="http://b", enter_timeout=5.0),
                Lookup(url, pool="rooms", enter_timeout=5.0),
            )
            # Both at once, because each asks until its time is over.
            entering = (each.__aenter__() for each in clients)
            for error in await asyncio.gather(*entering, return_exceptions=True):
                assert isinstance(error, NoManager)
                assert re.search(r"of the realm 'shop'.* this client of 'bank'", str(error))


async def test_a_client_without_a_realm_follows_any() -> None:
    async with (
        serving(realm="shop") as manager,
        Owner(manager.service.url, pool="rooms", address="http://a"),
        Lookup(manager.service.url, pool="rooms"),
    ):
        assert (await manager.get("/v1/status"))[1]["realm"] == "shop"
