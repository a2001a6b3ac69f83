"""Spans of routed requests and of hand-offs, recorded by OpenTelemetry's SDK; without it there are
none.
"""

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import ClientSession, web
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tenure import Entities, Entity, KeyedState, Lookup, Owner, route
from tenure.observe import tracing
from tests.patience import until
from tests.unit.entities.stage import Count, on_stage
from tests.unit.manager.serving import serving

there: Entities[Any]
EXPORTER = InMemorySpanExporter()


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """Yield the recorded spans; a process has one provider, which is set once."""
    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(EXPORTER))
        trace.set_tracer_provider(provider)
    EXPORTER.clear()
    yield EXPORTER
    EXPORTER.clear()


async def recorded(spans: InMemorySpanExporter, *names: str) -> list[ReadableSpan]:
    """The spans, once there are some of all these names."""
    await until(lambda: {*names} <= {each.name for each in spans.get_finished_spans()})
    return [each for each in spans.get_finished_spans() if each.name in names]


@pytest.mark.asyncio
async def test_a_routed_request_is_a_span_with_its_key_and_status(
    spans: InMemorySpanExporter,
) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="here")

    app = web.Application()
    app.router.add_get("/rooms/{room}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    async with serving(preset="test") as manager:
        url = manager.service.url
        async with (
            Owner(url, pool="rooms", address=address) as owner,
            Lookup(url, pool="rooms") as found,
            ClientSession(address, middlewares=[route(found, key="/rooms/{key}")]) as session,
        ):
            await owner.ready()
            async with session.get("/rooms/7") as response:
                assert await response.text() == "here"
    await runner.cleanup()
    (span,) = await recorded(spans, "tenure.request")
    assert span.attributes is not None
    assert span.attributes["tenure.key"] == "7"
    assert span.attributes["http.response.status_code"] == 200


@pytest.mark.asyncio
async def test_a_hand_off_is_a_span_at_both_owners(spans: InMemorySpanExporter) -> None:
    async with serving(preset="test") as manager:
        url = manager.service.url
        first = Owner(url, pool="carts", address="http://127.0.0.1/a", hand_off=KeyedState())
        async with first:
            await first.ready()
            second = Owner(url, pool="carts", address="http://127.0.0.1/b", hand_off=KeyedState())
            async with second:
                names = "tenure.hand_off.give", "tenure.hand_off.take"
                found = await recorded(spans, *names)
                outcomes = {
                    (each.name, (each.attributes or {})["tenure.outcome"]) for each in found
                }
                assert {(names[0], "given"), (names[1], "taken")} <= outcomes


def test_without_the_extra_nothing_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("opentelemetry.trace")  # of which an import finds what is there
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    tracing._api.cache_clear()  # as in a process that never had it
    try:
        with tracing.span("x", lambda: pytest.fail("nobody asks for attributes")) as note:
            note("a", 1)
    finally:
        tracing._api.cache_clear()


def test_until_somebody_records_nothing_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "get_tracer_provider", trace.ProxyTracerProvider)
    with tracing.span("x", lambda: pytest.fail("nobody asks for attributes")) as note:
        note("a", 1)


def test_a_provider_may_be_chosen_after_the_first_span(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(trace, "get_tracer_provider", trace.ProxyTracerProvider)
        with tracing.span("early", dict):
            pass
    with tracing.span("x", lambda: {"a": 1}) as note:
        note("b", 2)
    (found,) = spans.get_finished_spans()
    assert (found.name, dict(found.attributes or {})) == ("x", {"a": 1, "b": 2})


class Caller(Entity[Count]):
    """Calls a counter while it is called."""

    async def add_there(self, key: str) -> int:
        self.state.value += 1
        return await there[key].add()  # type: ignore[no-any-return]

    async def add(self) -> int:
        self.state.value += 1
        return self.state.value

    async def fail(self) -> None:
        raise ValueError("on purpose")


@pytest.mark.asyncio
async def test_a_call_of_an_entity_is_a_span_and_holds_the_calls_that_it_makes(
    spans: InMemorySpanExporter,
) -> None:
    global there  # as programs have it
    async with on_stage(2, kind=Caller) as stage:
        there, other = stage.members
        spans.clear()
        assert await stage.done(there[stage.key_of(there)].add_there(stage.key_of(other))) == 1
        with pytest.raises(ValueError, match="on purpose"):
            await stage.done(there["a"].fail())
        inner, outer, failed = await recorded(spans, "tenure.call")
    assert outer.attributes == {
        "tenure.pool": "counters",
        "tenure.key": outer.attributes and outer.attributes["tenure.key"],
        "tenure.method": "add_there",
    }
    assert inner.attributes is not None
    assert inner.attributes["tenure.method"] == "add"
    assert inner.parent is not None
    assert outer.context is not None
    assert inner.parent.span_id == outer.context.span_id
    assert failed.status.status_code is trace.StatusCode.ERROR
