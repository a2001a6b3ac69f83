"""A service keeps its keys in each of the five stores: the next process has them."""

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.integration.cassandra.cql_server import small_server
from tests.unit.entities.store_urls import cassandra_url, columns_url, emptied, postgres_url
from tests.unit.manager.serving import serving
from tests.unit.services.stage import on_service_stage

pytestmark = pytest.mark.asyncio


@pytest.fixture(params=["sqlite", "postgresql", "rocksdb", "columns", "cassandra"])
def known(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """The URL of a store; empty for the nodes, which run in the loop of the test."""
    with ExitStack() as stack:
        match request.param:
            case "postgresql":
                yield emptied(stack.enter_context(postgres_url()))
            case "cassandra":
                yield cassandra_url(stack.enter_context(small_server()), monkeypatch)
            case "columns":
                yield ""
            case kind:
                yield f"{kind}:{tmp_path / 'store'}"


@pytest_asyncio.fixture
async def store(known: str, tmp_path: Path) -> AsyncIterator[str]:
    if known:
        yield known
        return
    async with columns_url(tmp_path) as url:
        yield url


async def test_a_document_outlives_the_process_that_took_it(store: str) -> None:
    async with serving(preset="default") as serves:
        manager = serves.service.url
        async with on_service_stage("documents", manager=manager, store=store) as stage:
            made = await stage.ask("PUT", "/documents/ann", {"sections": {"a": 1, "b": [2]}})
            assert made.status == 201
        async with on_service_stage("documents", manager=manager, store=store) as stage:
            read = await stage.ask("GET", "/documents/ann")
            assert (read.status, read.body["sections"]) == (200, {"a": 1, "b": [2]})
            put = await stage.ask("PUT", "/documents/ann/sections/c", b'"x"', If_Match=made.tag)
            assert put.status == 200


async def test_a_message_outlives_the_process_that_took_it(store: str) -> None:
    async with serving(preset="default") as serves:
        manager = serves.service.url
        async with on_service_stage("queues", manager=manager, store=store) as stage:
            await stage.ask("PUT", "/queues/ann")
            sent = await stage.ask("POST", "/queues/ann/entries", {"message": "hello"})
            assert sent.body["number"] == 2
        async with on_service_stage("queues", manager=manager, store=store) as stage:
            drained = await stage.ask("POST", "/queues/ann/drain")
            first, second = drained.body["entries"]
            assert (first["loss"], second["message"]) == ({"began": True}, "hello")


async def test_a_subscription_outlives_the_process_that_took_it(store: str) -> None:
    async with serving(preset="default") as serves:
        manager = serves.service.url
        await serves.post("/v1/pools", {"name": "pubsub", "kind": "hashed"})
        async with on_service_stage("queues", manager=manager, watch=("pubsub",)) as queues:
            await queues.ask("PUT", "/queues/bob")
            said: Any = {"manager": manager, "store": store, "queues": (queues.url,)}
            async with on_service_stage("pubsub", **said) as stage:
                made = await stage.ask("POST", "/topics/ann/subscriptions", {"target": "queue:bob"})
                assert made.status == 201, made.body
            async with on_service_stage("pubsub", **said) as stage:
                found = await stage.ask("GET", "/topics/ann")
                assert (found.body["subscribers"], found.body["epoch"]) == (1, made.body["epoch"])
