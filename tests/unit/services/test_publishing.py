"""Documents that publish their changes: each is told at least once, as the document is by then."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tenure.errors import ConfigurationError, PoolError, ServiceRefusal, TenureError
from tenure.services.documents.document import AGAIN_SECONDS
from tenure.services.documents.service import Documents
from tenure.services.service import ServiceSettings
from tests.patience import until
from tests.unit.services.stage import ServiceStage, on_service_stage

pytestmark = pytest.mark.asyncio
NOWHERE = ("http://127.0.0.1:1",)


class Topics:
    """Stands for pubsub: it remembers what was published, or refuses."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []
        self.ids: list[str] = []
        self.refusal: TenureError | None = None
        self.refuses_values = False
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.asked = 0

    async def publish(self, topic: str, data: Any, *, id: str) -> object:  # noqa: A002, ANN401
        self.asked += 1
        await self.go_on.wait()
        if self.refusal is not None:
            raise self.refusal
        if self.refuses_values and "values" in data:
            raise ServiceRefusal(400, "json", "too deep")
        self.events.append((topic, data))
        self.ids.append(id)
        return None


@asynccontextmanager
async def publishing(**settings: Any) -> AsyncIterator[tuple[ServiceStage, Topics]]:  # noqa: ANN401
    async with on_service_stage("documents", publish_to=NOWHERE, **settings) as stage:
        topics = Topics()
        assert isinstance(stage.service, Documents)
        assert stage.service.publisher is not None
        stage.service.publisher.topics = topics
        yield stage, topics


async def test_each_kind_of_change_is_published_before_its_answer() -> None:
    async with publishing() as (stage, topics):
        made = await stage.ask("PUT", "/documents/d", {"sections": {"a": 1, "b": [2]}})
        put = await stage.ask("PUT", "/documents/d/sections/a", b'"new"')
        cut = await stage.ask("DELETE", "/documents/d/sections/b")
        assert (await stage.ask("DELETE", "/documents/d")).status == 204
        first, second, third, last = (event for _, event in topics.events)
        assert {topic for topic, _ in topics.events} == {"d"}
        assert first == {
            "document": "d",
            "version": made.body["version"],
            "sections": ["a", "b"],
            "values": {"a": 1, "b": [2]},
        }
        assert (second["version"], second["values"]) == (put.body["version"], {"a": "new"})
        assert (third["version"], third["sections"]) == (cut.body["version"], ["b"])
        assert third["values"] == {}, "a section that is gone has no value"
        assert last["version"] == ""
        assert last["gone_at"] > 0
        assert len(set(topics.ids)) == 4
        await stage.ask("GET", "/documents/d")
        assert topics.asked == 4


async def test_what_expires_is_published() -> None:
    async with publishing() as (stage, topics):
        stage.turn_wall(0)
        await stage.ask("PUT", "/documents/d", {"sections": {}, "ttl": 0.01})

        def is_told() -> bool:
            stage.turn_wall(1)  # fair time follows the wall only as fast as time passes
            return len(topics.events) == 2

        await until(is_told)
        assert topics.events[-1][1]["version"] == ""


async def test_while_pubsub_is_away_changes_wait_and_become_one_message(tmp_path: Path) -> None:
    async with publishing(store=f"sqlite:{tmp_path / 'documents'}") as (stage, topics):
        topics.refusal = ServiceRefusal(503, "away", "on purpose")
        for i in range(3):
            answer = await stage.ask("PUT", f"/documents/d/sections/s{i}", b"%d" % i)
            assert answer.status in (200, 201)
        await until(lambda: topics.asked)
        topics.refusal = None
        last = await stage.ask("PUT", "/documents/d/sections/s0", b"9")
        await until(lambda: topics.events)
        assert topics.events == [
            (
                "d",
                {
                    "document": "d",
                    "version": last.body["version"],
                    "sections": ["s0", "s1", "s2"],
                    "values": {"s0": 9, "s1": 1, "s2": 2},
                },
            )
        ]


async def test_a_change_that_comes_while_another_is_published_is_published_next() -> None:
    async with publishing() as (stage, topics):
        topics.go_on.clear()
        first = asyncio.ensure_future(stage.ask("PUT", "/documents/d", {"sections": {"a": 1}}))
        await until(lambda: topics.asked == 1)
        second = asyncio.ensure_future(stage.ask("PUT", "/documents/d/sections/b", b"2"))
        topics.go_on.set()
        await asyncio.gather(first, second)
        await until(lambda: len(topics.events) == 2)
        assert topics.events[1][1]["values"] == {"b": 2}


async def test_what_was_not_published_is_published_by_the_next_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.services.documents.document.AGAIN_SECONDS", 0.05)
    store = f"sqlite:{tmp_path / 'documents'}"
    async with publishing(store=store) as (stage, topics):
        topics.refusal = ServiceRefusal(503, "away", "on purpose")
        made = await stage.ask("PUT", "/documents/d", {"sections": {"a": 1}})
        await until(lambda: topics.asked)
    assert topics.events == []
    async with publishing(store=store) as (_, topics):
        await until(lambda: topics.events)  # nobody has asked for the document
        assert topics.events[0][1]["version"] == made.body["version"]


async def test_a_value_that_no_message_holds_is_left_to_the_subscriber() -> None:
    async with publishing() as (stage, topics):
        topics.refuses_values = True
        await stage.ask("PUT", "/documents/d", {"sections": {"a": 1}})
        ((_, event),) = topics.events
        assert event["sections"] == ["a"]
        assert "values" not in event
        topics.refuses_values = False
        await stage.ask("PUT", "/documents/d/sections/a", b'"%s"' % (b"x" * 20_000))
        assert "values" not in topics.events[-1][1]


async def test_what_waits_is_bounded_however_many_names_there_were(tmp_path: Path) -> None:
    async with publishing(store=f"sqlite:{tmp_path / 'documents'}") as (stage, topics):
        topics.refusal = ServiceRefusal(503, "away", "on purpose")
        for i in range(3):
            sections = {f"{i}-{n}": n for n in range(200)}
            assert (await stage.ask("PUT", "/documents/d", {"sections": sections})).status < 300
        state = stage.service.entities.station.host._live["d"].read()
        assert len(state.untold) <= 256
        topics.refusal = None
        await stage.ask("PUT", "/documents/d/sections/2-0", b"7")
        await until(lambda: topics.events)
        assert len(topics.events[0][1]["sections"]) == 200


async def test_only_documents_publish_and_a_token_needs_an_address() -> None:
    settings = ServiceSettings(pool="p", publish_token=Path("token"))
    with pytest.raises(ConfigurationError, match="--publish-to"):
        Documents(settings)
    from tenure.services.queues.service import Queues  # noqa: PLC0415  # for this test

    with pytest.raises(ConfigurationError, match="--publish-to"):
        Queues(ServiceSettings(pool="p", publish_to=NOWHERE))
    assert AGAIN_SECONDS > 0


@pytest.mark.parametrize("first", [(), NOWHERE], ids=["the first does not", "the first does"])
async def test_a_pool_in_which_some_publish_and_others_do_not_is_refused(
    first: tuple[str, ...],
) -> None:
    """A change at one that does not would be told to nobody, whoever had the document later."""
    second = () if first else NOWHERE
    async with on_service_stage("documents", publish_to=first) as stage:
        made = await stage.ask("PUT", "/documents/d", {"sections": {"a": 1}})
        assert made.status == 201
        with pytest.raises(PoolError, match="start all with --publish-to, or none"):
            async with on_service_stage("documents", manager=stage.manager, publish_to=second):
                pass
        async with on_service_stage("documents", manager=stage.manager, publish_to=first):
            assert (await stage.ask("GET", "/documents/d")).status == 200
