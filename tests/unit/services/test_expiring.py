"""Time to live: never early, refreshed on demand, said for a while, and then forgotten."""

from math import inf
from pathlib import Path
from time import monotonic, time
from typing import Any, cast

import pytest

from tenure.services import expiring
from tenure.services.feeds.service import Feeds
from tenure.testing.clock import come_to_rest
from tests.patience import until
from tests.unit.manager.serving import serving
from tests.unit.services.stage import Replied, ServiceStage, on_service_stage, set_wall
from tests.unit.services.test_feed_items import RSS
from tests.unit.services.test_feeds import sweep_all
from tests.unit.services.test_moves import moving

pytestmark = pytest.mark.asyncio

YEAR = 366 * 86_400.0


async def until_answered(stage: ServiceStage, path: str, status: int) -> Replied:
    """Ask until that is the answer."""
    while (found := await stage.ask("GET", path)).status != status:
        await come_to_rest()
    return found


async def ring_all(stage: ServiceStage) -> None:
    """Let every alarm that is due by the clock on the wall be handled."""
    agenda = stage.service.entities.station._alarms.agenda
    agenda._wake()
    while agenda._ringing:
        await come_to_rest()


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
        gone = await until_answered(stage, path, 410)
        assert monotonic() - began >= 0.3
        assert gone.body["gone_at"] >= made.body["expires"]
        await until_answered(stage, path, 404)
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
        station.host.passivate(inf)  # a new instance has seen no refresh
        assert not station.host._live
        set_wall(stage, YEAR)
        await ring_all(stage)
        assert (await stage.ask("GET", "/documents/d")).status == 200
        assert len(station._alarms.agenda) == 1, "it rings again"


@pytest.mark.parametrize("stored", [False, True])
async def test_what_moves_to_a_host_whose_clock_was_ahead_does_not_go_early(
    stored: bool, tmp_path: Path
) -> None:
    settings = {"store": f"sqlite:{tmp_path / 'store.db'}"} if stored else {}
    async with moving("documents", **settings) as (first, move):
        made = await first.ask("PUT", "/documents/d", {"sections": {"a": 1}, "ttl": 1000})
        second = await move(YEAR)
        await ring_all(second)
        found = await second.ask("GET", "/documents/d")
        assert (found.status, found.tag) == (200, made.tag)


async def test_a_feed_that_moves_to_a_host_whose_clock_was_ahead_does_not_go_early() -> None:
    async with moving("feeds") as (first, move):
        owners = cast("Feeds", first.service).owners
        await until(lambda: owners.owner.check("f"))  # until then, an item stays where it came
        await first.ask("POST", "/feeds/f/bodies", RSS)
        second = await move()
        feeds = cast("Feeds", second.service)
        feeds.kept._wall = lambda: time() + YEAR
        sweep_all(feeds)
        feeds.kept.there("f")


@pytest.mark.parametrize(
    ("name", "path", "body"),
    [
        ("documents", "/documents/d", {"sections": {}}),
        ("pubsub", "/topics/t", {"target": "http://127.0.0.1:1/inbox"}),
    ],
)
async def test_what_a_store_has_kept_over_a_crash_does_not_go_early(
    name: str, path: str, body: dict[str, object], tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"store": f"sqlite:{tmp_path / 'store.db'}"}
    if name == "pubsub":
        settings["inward"] = True
    async with serving(preset="default") as serves:
        settings["manager"] = serves.service.url
        async with on_service_stage(name, **settings) as stage:
            method, to = ("PUT", path) if name == "documents" else ("POST", f"{path}/subscriptions")
            made = await stage.ask(method, to, {**body, "ttl": 1000})
            assert made.status == 201
        async with on_service_stage(name, **settings) as stage:
            set_wall(stage, YEAR)  # nobody handed anything over to this one
            await ring_all(stage)
            if name == "pubsub":
                refreshed = await stage.ask("PUT", f"{to}/{made.body['id']}", {"ttl": 1000})
                assert refreshed.status == 200
            else:
                found = await stage.ask("GET", path)
                assert (found.status, found.tag) == (200, made.tag)


async def test_what_went_and_is_there_again_does_not_go_with_what_went() -> None:
    async with on_service_stage("documents") as stage:
        await stage.ask("PUT", "/documents/d", {"sections": {}, "ttl": 1000})
        assert (await stage.ask("DELETE", "/documents/d")).status == 204
        gone_at = (await stage.ask("GET", "/documents/d")).body["gone_at"]
        set_wall(stage, 2000)
        await ring_all(stage)
        gone = await stage.ask("GET", "/documents/d")
        assert (gone.status, gone.body["gone_at"]) == (410, gone_at), "it goes once"
        made = await stage.ask("PUT", "/documents/d", {"sections": {"a": 1}})
        set_wall(stage, 2 * expiring.GONE_SECONDS)
        await ring_all(stage)
        found = await stage.ask("GET", "/documents/d")
        assert (found.status, found.tag) == (200, made.tag)
