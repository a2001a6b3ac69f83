"""Realms: clients do not follow the managers of another fleet, and say why."""

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
            for client in (
                Owner(url, pool="rooms", address="http://b", enter_timeout=1.0),
                Lookup(url, pool="rooms", enter_timeout=1.0),
            ):
                with pytest.raises(NoManager, match=r"of the realm 'shop'.* this client of 'bank'"):
                    async with client:
                        pass


async def test_a_client_without_a_realm_follows_any() -> None:
    async with (
        serving(realm="shop") as manager,
        Owner(manager.service.url, pool="rooms", address="http://a"),
        Lookup(manager.service.url, pool="rooms"),
    ):
        assert (await manager.get("/v1/status"))[1]["realm"] == "shop"
