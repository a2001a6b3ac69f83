"""A handler that never returns: it is said, and what it hangs on goes to others."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tenure import KeyRange
from tenure.base.instants import seconds
from tenure.protocol.lease.owner import taking
from tests.unit.client.hand_off.stage import Member, Stage, State, on_stage, turn_patience_too

pytestmark = pytest.mark.asyncio


class Hanging(State):
    """Its discards wait for the gate, too, once they are to."""

    hangs = False

    async def discard_range(self, key_range: KeyRange) -> None:  # type: ignore[override]
        if self.hangs:
            await self.gate.wait()
        super().discard_range(key_range)


@pytest_asyncio.fixture
async def stage(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    async with on_stage() as stage:
        turn_patience_too(stage, monkeypatch)
        monkeypatch.setattr(taking, "CALL_NS", seconds(1))  # as all of the preset, ten times faster
        yield stage


def session_of(stage: Stage, member: Member) -> Any:  # noqa: ANN401  # what no user sees
    machine: Any = member.owner._engine.machine
    for manager in stage.cluster._managers.values():
        leader = manager.engine._machine.leader
        if leader:
            return leader.pools["rooms"].sessions[machine.belief.incarnation]
    raise AssertionError("nobody leads")


def warned(caplog: pytest.LogCaptureFixture, method: str) -> list[str]:
    records = [each for each in caplog.records if each.levelno >= logging.WARNING]
    return [line for each in records if f"{method} has been running" in (line := each.getMessage())]


@pytest.mark.parametrize("method", ["import_chunk", "discard_range"])
async def test_what_a_call_hangs_on_goes_to_others_and_is_said_once(
    stage: Stage, caplog: pytest.LogCaptureFixture, method: str
) -> None:
    source = await stage.first()
    state = Hanging()
    state.hangs = method == "discard_range"
    state.gate.clear()
    taker = await stage.join(state)
    await stage.until(lambda: session_of(stage, taker).stuck, writing=True)
    assert "stuck" in caplog.text
    other = await stage.join()
    await stage.until(lambda: stage.share(other) > 0 and stage.is_served(), writing=True)
    await stage.cluster.turn(15)
    said = warned(caplog, method)
    assert said
    assert len(set(said)) == len(said), "each range is named once"
    assert all(f"'{taker.owner.name}'" in line for line in said)
    assert stage.share(taker) == 0
    assert stage.lost == []
    assert stage.missing() == []
    assert stage.share(source) + stage.share(other) == len(stage.acknowledged)
    state.gate.set()
    await stage.until(lambda: not session_of(stage, taker).stuck)
    await stage.until(lambda: stage.share(taker) > 0 and stage.is_served(), writing=True)
    assert stage.missing() == []


async def test_an_owner_whose_import_hangs_can_leave(stage: Stage) -> None:
    await stage.first()
    state = Hanging()
    state.gate.clear()
    taker = await stage.join(state)
    await stage.until(lambda: session_of(stage, taker).stuck, writing=True)
    leaving = asyncio.ensure_future(taker.owner.close(drain=0))
    await stage.until(leaving.done, writing=True)
    stage.members.remove(taker)
    await stage.until(stage.is_served, writing=True)
    assert stage.missing() == []
    keys = map(taker.owner.key, stage.acknowledged)
    assert not any(key in lost for key in keys for lost in stage.lost)
