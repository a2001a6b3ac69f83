"""Time to live: never early, refreshed on demand, said for a while, and then forgotten."""

from math import inf
from time import monotonic

import pytest

from tenure.services import expiring
from tenure.services.expiring import FairTime
from tenure.testing.clock import come_to_rest
from tests.unit.services.stage import Replied, ServiceStage, on_service_stage

pytestmark = pytest.mark.asyncio

YEAR = 366 * 86_400.0


async def until(stage: ServiceStage, path: str, status: int) -> Replied:
    """Ask until that is the answer."""
    while (found := await stage.ask("GET", path)).status != status:
        await come_to_rest()
    return found


@pytest.mark.parametrize(
    ("name", "path", "body"),
    [("documents", "/documents/d", {"sections": {}}), ("queues", "/queues/q", {})],
)
async def test_what_nobody_refreshes_goes_and_never_early(
    name: str, path: str, body: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiring, "GONE_SECONDS", 0.5)
    async with on_service_stage(name) as stage:
        began = monotonic()
        made = await stage.ask("PUT", path, {**body, "ttl": 0.3})
        assert made.status == 201
        gone = await until(stage, path, 410)
        assert monotonic() - began >= 0.3
        assert gone.body["gone_at"] >= made.body["expires"]
        await until(stage, path, 404)
        key = path.rpartition("/")[2]
        gate = stage.service.entities.station.host.gate
        assert key not in gate.envelopes, "nothing is left of it"
        assert (await stage.ask("PUT", path, body)).status == 201


async def test_a_refresh_keeps_a_document_for_longer_and_an_update_does_not() -> None:
    async with on_service_stage("documents") as stage:
        made = await stage.ask("PUT", "/documents/d", {"sections": {}, "ttl": 100})
        updated = await stage.ask("PUT", "/documents/d/sections/a", 1)
        assert updated.body["expires"] == made.body["expires"]
        refreshed = await stage.ask("POST", "/documents/d/refresh")
        assert refreshed.body["expires"] > made.body["expires"]
        assert refreshed.tag == updated.tag, "it is the same document"
        longer = await stage.ask("POST", "/documents/d/refresh", {"ttl": 1000})
        assert longer.body["expires"] > refreshed.body["expires"] + 800


async def test_a_clock_that_jumps_ends_nothing_early() -> None:
    async with on_service_stage("documents") as stage:
        await stage.ask("PUT", "/documents/d", {"sections": {"a": 1}, "ttl": 1000})
        station = stage.service.entities.station
        station.host.passivate(inf)  # whoever is made anew has seen no refresh
        assert not station.host._live
        wall = station.host.gate.wall
        station.host.gate.wall = station._alarms.agenda._wall = lambda: wall() + YEAR
        station._alarms.agenda._wake()
        while station._alarms.agenda._ringing:
            await come_to_rest()
        assert (await stage.ask("GET", "/documents/d")).status == 200
        assert len(station._alarms.agenda) == 1, "it rings again"


async def test_time_goes_back_and_never_ahead_of_the_clock_that_nobody_sets() -> None:
    steady = [0.0]
    fair = FairTime(lambda: steady[0])
    assert fair(1000.0) == 1000.0
    steady[0] = 10.0
    assert [fair(1010.0), fair(YEAR)] == [1010.0, 1010.0]
    assert fair(900.0) == 900.0, "then things end late"
    steady[0] = 20.0
    assert [fair(YEAR), fair(910.0)] == [910.0, 910.0]
