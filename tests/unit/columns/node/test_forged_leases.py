"""Who has no lease keeps no owner out of its rows, whatever number it names (R36)."""

import asyncio
from pathlib import Path

import pytest

from tenure import Owner
from tenure.columns.opening import open_store
from tenure.columns.owned_rows import OwnedRows
from tenure.columns.paths import key_of
from tenure.columns.tables import Family, Table
from tenure.errors import NotEnoughReplicas
from tenure.protocol.replication.row.admission import Outranked
from tests.patience import DEADLINE_SECONDS
from tests.unit.columns.node.managed import managed

pytestmark = pytest.mark.asyncio
ROOMS = Table("rooms", fenced_by="rooms", said=Family(columns=str))
HIGHEST = (1 << 63) - 1


async def test_an_owner_gets_its_rows_whatever_numbers_a_client_has_named(tmp_path: Path) -> None:
    async with managed(tmp_path) as services, asyncio.timeout(DEADLINE_SECONDS):
        url = "columns:" + ",".join(each.url for each in services)
        [manager] = services[0].settings.managers
        async with open_store(url, ROOMS) as store:
            key = key_of(ROOMS, "attic")
            with pytest.raises(NotEnoughReplicas, match="given no lease"):
                await store.backend.adopt(ROOMS, key, HIGHEST, 1)
            async with Owner(manager, pool="rooms", address="http://127.0.0.1:1") as owner:
                await owner.ready()
                async with owner.guard("attic") as lease:
                    for number in (HIGHEST, lease.number + 1_000_000):
                        with pytest.raises(NotEnoughReplicas, match="given no lease"):
                            await store.backend.adopt(ROOMS, key, number, lease.journal)
                    room = await OwnedRows(store, ROOMS).load(lease, "attic")
                    await room.insert({"said": {"1": b"hello"}})
                    refused = await store.backend.adopt(ROOMS, key, lease.number - 1, lease.journal)
                    assert isinstance(refused, Outranked)
