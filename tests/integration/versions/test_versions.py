"""Processes of both versions with each other: who speaks what, and a rolling upgrade and back."""

from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from tenure.manager.answers import StatusAnswer
from tenure.protocol.lease.answers import Owners
from tenure.wire.versions import NEWEST
from tests.integration.failover.stage import on_sqlite
from tests.integration.versions.clients import clients_of
from tests.versions.client import POOL
from tests.versions.old import NEW, OLD

pytestmark = pytest.mark.asyncio


async def asked(url: str) -> Any:  # noqa: ANN401 - JSON
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return await response.json()


async def test_old_and_new_clients_share_the_keys_under_a_new_manager(tmp_path: Path) -> None:
    async with on_sqlite(tmp_path, managers=1) as stage, clients_of(stage.urls, OLD, NEW):
        owners = (await asked(stage.urls[0] + "/v1/pools/mixed/owners"))["owners"]
        spoken = {each["address"]: each["protocol"] for each in owners}
        assert spoken == {"http://client-0": 1, "http://client-1": NEWEST}
        status = await asked(stage.urls[0] + "/v1/status")
        assert status["connections_by_protocol"] == {"1": 2, str(NEWEST): 2}
        assert not status["events"].get("malformed message")


async def test_old_and_new_clients_share_the_keys_under_an_old_manager(tmp_path: Path) -> None:
    old = on_sqlite(tmp_path, managers=1, release=OLD)
    async with old as stage, clients_of(stage.urls, NEW, OLD):
        said = await asked(stage.urls[0] + "/v1/status")
        assert "protocols" not in said, "that is no old manager"
        status = msgspec.convert(said, StatusAnswer)
        assert status.protocols == (1,)
        assert "malformed message" not in status.events
        owners = await asked(stage.urls[0] + "/v1/pools/mixed/owners")
        assert [each.protocol for each in msgspec.convert(owners, Owners).owners] == [None] * 2


async def test_the_new_takes_over_from_the_old_and_the_old_from_the_new(tmp_path: Path) -> None:
    """Both lead on one journal file, under leases of clients of both releases; each leader numbers
    and grants. Nothing moves because of it: the new manager starts from the present owners, and
    plans by the ring as it is told to, because the old one knows nothing else.
    """
    async with on_sqlite(tmp_path, managers=1, release=OLD) as stage:
        await stage.start(stage.managers[0].journal).until_role("standing by")
        async with clients_of(stage.urls, OLD, NEW) as clients:
            for version in (OLD, NEW):
                leader = await stage.leader()
                await stage.replace(leader, version, POOL)
                other = await stage.leader(after=leader.leadership)
                await clients.check_undisturbed(other.leadership)
                await clients.grow(version)
