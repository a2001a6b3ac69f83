"""Queues that are lost, or do not answer, while somebody waits for them."""

import asyncio
from functools import wraps
from typing import Any

import pytest

from tenure import reading
from tenure.errors import ServiceRefusal
from tenure.services.queues import service as queues_service
from tenure.services.queues.queue import BEGAN_ANEW, Enqueued, Queue
from tests.patience import DEADLINE_SECONDS
from tests.unit.services.stage import on_service_stage
from tests.unit.services.test_queues import begun, drain, enqueue

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("during", ["entries_to", "wait"])
async def test_a_queue_that_is_lost_during_a_poll_says_so_at_the_next(
    during: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, is_lost = getattr(Queue, during), [False]

    @reading
    @wraps(whole)
    async def lost(of: Queue, *given: Any, **named: Any) -> object:  # noqa: ANN401
        if is_lost[0]:
            raise ServiceRefusal(409, BEGAN_ANEW, "on purpose")
        return await whole(of, *given, **named)

    monkeypatch.setattr(Queue, during, lost)
    async with on_service_stage("queues") as stage, asyncio.timeout(DEADLINE_SECONDS):
        reader = await begun(stage)
        if during == "entries_to":
            await enqueue(stage, 1)
        is_lost[0] = True
        found = await drain(stage, reader=reader, wait=20)
        assert (found.status, found.body) == (200, {"reader": reader, "entries": []})
        is_lost[0] = False
        assert (await drain(stage, reader=reader)).status == 200


async def test_one_of_several_queues_that_does_not_answer_delays_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queues_service, "PUT_SECONDS", 0.2)
    enqueue_in, may = Queue.enqueue, asyncio.Event()

    @wraps(enqueue_in)
    async def slowly(of: Queue, **given: Any) -> Enqueued:  # noqa: ANN401
        if str(of.key) == "slow":
            await may.wait()
        return await enqueue_in(of, **given)

    monkeypatch.setattr(Queue, "enqueue", slowly)
    async with on_service_stage("queues") as stage:
        puts = []
        for name in ("slow", "q"):
            await begun(stage, name)
            place = {"source": "s", "epoch": "1.1.a", "number": 1}
            puts.append({"queue": name, "message": 1, "place": place})
        async with asyncio.timeout(20):
            found = await stage.ask("POST", "/entries", puts)
        may.set()
        assert [each.get("problem", {}).get("error") for each in found.body] == ["waiting", None]
