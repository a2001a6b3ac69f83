"""What a leader remembers of the last hour, and how much of it."""

from typing import Any

import pytest

from tenure import Owner
from tenure.base.noted import Noted
from tenure.manager import last_hour
from tenure.protocol.lease.leader.noted import LeaderKind
from tests.patience import until
from tests.unit.manager.serving import Serving, serving

pytestmark = pytest.mark.asyncio
PATH = "/v1/pools/rooms/hour"


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour passes in a few seconds."""
    monkeypatch.setattr(last_hour, "EVERY_SECONDS", 0.01)


async def hour(manager: Serving) -> dict[str, Any]:
    status, answer = await manager.get(PATH)
    assert status == 200, answer
    columns = [answer[name] for name in last_hour.Moment._fields]
    assert len({len(each) for each in columns}) == 1
    return dict(answer)


async def has(manager: Serving, name: str, value: object) -> dict[str, Any]:
    """The hour, as soon as that is in it."""

    async def found() -> dict[str, Any] | None:
        answer = await hour(manager)
        return answer if value in answer[name] else None

    answer = await until(found)
    return answer or {}


async def test_it_counts_owners_and_what_happened_between_two_samples() -> None:
    async with serving() as manager:
        async with Owner(manager.service.url, pool="rooms", address="http://127.0.0.1/a"):
            assert (await has(manager, "owners", 1))["every_seconds"] == 0.01
            note = manager.service.observer.note
            for kind in (LeaderKind.HANDED_OVER, LeaderKind.HANDED_OVER, LeaderKind.ATTESTED):
                note(Noted(kind, "rooms"))
            note(Noted(LeaderKind.HANDED_OVER, "another pool"))
            found = await has(manager, "moved", 2)
            at = found["moved"].index(2)
            assert found["died"][at] == 1
            assert sum(found["moved"]) == 2, "each is counted once"
        await has(manager, "owners", 0)


async def test_the_oldest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_hour, "SAMPLES", 3)
    async with serving() as manager:
        await manager.post("/v1/pools", {"name": "rooms", "kind": "hashed"})
        await has(manager, "owners", 0)
        before = (await hour(manager))["until"]
        while (found := await hour(manager))["until"] < before + 0.2:
            assert len(found["owners"]) <= 3


async def test_so_many_pools_are_remembered_and_the_others_are_empty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(last_hour, "MOST_POOLS", 1)
    async with serving() as manager:
        for name in ("rooms", "zoo"):
            await manager.post("/v1/pools", {"name": name, "kind": "hashed"})
        await has(manager, "owners", 0)
        _, answer = await manager.get("/v1/pools/zoo/hour")
        assert answer["owners"] == answer["load"] == []


async def hour_of_many_is_empty(manager: Serving) -> bool:
    _, answer = await manager.get("/v1/pools/many/hour")
    return not answer["owners"]


async def test_a_pool_of_too_many_ranges_is_not_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(last_hour, "MOST_RANGES", 1)
    async with serving() as manager:
        await manager.post("/v1/pools", {"name": "rooms", "kind": "hashed"})
        url = manager.service.url
        async with (
            Owner(url, pool="many", address="http://127.0.0.1/a"),
            Owner(url, pool="many", address="http://127.0.0.1/b"),
        ):
            await has(manager, "owners", 0)
            await until(lambda: hour_of_many_is_empty(manager))


async def test_a_pool_that_is_deleted_is_forgotten() -> None:
    async with serving() as manager:
        await manager.post("/v1/pools", {"name": "rooms", "kind": "hashed"})
        await has(manager, "owners", 0)
        await manager.delete("/v1/pools/rooms")
        status, answer = await manager.get(PATH)
        assert (status, answer["error"]) == (404, "there is no pool 'rooms'; there are: none yet")


async def test_a_standby_says_who_leads() -> None:
    async with serving() as manager:
        await manager.service.engine.stop()
        status, answer = await manager.get(PATH)
        assert status == 503, answer
