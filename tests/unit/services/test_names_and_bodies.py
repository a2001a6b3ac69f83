"""Names and bodies that programs do not write by themselves: readers can read every one that a
service accepts, and a refused one changes nothing.
"""

from typing import cast

import pytest

from tenure.errors import ConfigurationError
from tenure.services.documents.client import DocumentsClient
from tenure.services.feeds.client import FeedsClient
from tenure.services.feeds.service import Feeds
from tenure.services.limits import JSON_DEPTH
from tenure.services.pubsub.service import AROUND
from tenure.services.queues.client import QueuesClient
from tests.patience import until
from tests.unit.manager.serving import serving
from tests.unit.services.stage import on_service_stage
from tests.unit.services.test_feed_items import RSS
from tests.unit.services.test_strangers import connected

pytestmark = pytest.mark.asyncio
ODD = ["..", ".", "a/../b", "{x}", "%2e%2e", "a%2Fb", "?x", "#y", "a\nb", "\x00", "é", "a b", "a+b"]
NOT_JSON: dict[str, tuple[bytes, int, str]] = {
    "no UTF-8": (b'"\xff"', 400, "json"),
    "a name that is no UTF-8": (b'{"\xff":1}', 400, "json"),
    "half a character": (b'"\\ud800"', 400, "json"),
    "not a number": (b"NaN", 400, "json"),
    "a number that nobody has": (b"1e999", 422, "shape"),
    "nested too deep": (b"[" * 200 + b"]" * 200, 413, "limit"),
    "nested far too deep": (b"[" * 100_000, 400, "json"),
}
WRITTEN = {
    "documents": [
        ("PUT", "/documents/k", b'{"sections":{"a":%s}}'),
        ("PUT", "/documents/k/sections/a", b"%s"),
    ],
    "feeds": [("POST", "/feeds/k/events", b'{"a":%s}')],
    "pubsub": [("POST", "/topics/k/messages", b'{"data":%s}')],
    "queues": [
        ("POST", "/queues/k/entries", b'{"message":%s}'),
        (
            "POST",
            "/entries",
            b'[{"queue":"k","place":{"source":"s","epoch":"1.1.a","number":1},"message":%s}]',
        ),
    ],
}
"""For each service, the place where others read what is written."""


@pytest.mark.parametrize("name", WRITTEN)
async def test_what_no_reader_could_read_is_refused(name: str) -> None:
    async with on_service_stage(name) as stage:
        if name == "queues":
            await stage.ask("PUT", "/queues/k")
        for method, path, around in WRITTEN[name]:
            for why, (body, status, error) in NOT_JSON.items():
                refused = await stage.ask(method, path, around % body)
                assert (refused.status, refused.body["error"]) == (status, error), (path, why)
            assert (await stage.ask(method, path, around % b"[1]")).status < 300


async def test_as_deep_as_a_topic_takes_it_a_queue_takes_it_and_its_reader_reads_it() -> None:
    async with serving(preset="default") as serves:
        manager = serves.service.url
        async with (
            on_service_stage("queues", manager=manager) as queues,
            on_service_stage("pubsub", manager=manager, queues=(queues.url,)) as topics,
            QueuesClient(queues.url) as client,
        ):
            await client.begin("q")
            await topics.service.entities["t"].subscribe("queue:q", 600.0)
            most = JSON_DEPTH.most - AROUND
            for depth, status in ((most, 200), (most + 1, 413)):
                body = b'{"data":' + b"[" * depth + b"]" * depth + b"}"
                made = await topics.ask("POST", "/topics/t/messages", body)
                assert made.status == status
                if status == 200:
                    assert (made.body["waiting"], made.body["refusing"]) == (0, 0)
            entries = await client.reader("q").next(wait=0)
            assert [each.loss is None for each in entries] == [False, True]


async def test_a_client_reads_and_writes_under_any_name() -> None:
    async with serving(preset="default") as serves:
        manager = serves.service.url
        async with (
            on_service_stage("documents", manager=manager) as stage,
            on_service_stage("queues", manager=manager) as others,
            DocumentsClient(stage.url) as documents,
            QueuesClient(others.url) as queues,
        ):
            for name in ODD:
                await documents.write(name, {name: name})
                await documents.refresh(name)
                assert (await documents.read(name)).sections == {name: name}
                await documents.write_section(name, name, 2)
                assert await documents.read_section(name, name) == 2
                await documents.delete_section(name, name)
                await documents.delete(name)
                await queues.begin(name)
                await queues.enqueue(name, name)
                entries = await queues.reader(name).next(wait=0)
                assert [each.message for each in entries] == [None, name]


async def test_a_feed_of_any_name_is_passed_on_to_its_owner() -> None:
    async with (
        on_service_stage("feeds") as one,
        on_service_stage("feeds", manager=one.manager) as two,
    ):
        services = [cast("Feeds", each.service) for each in (one, two)]
        await until(lambda: all(is_settled(services, name) for name in ODD))
        for name in ODD:
            for stage in (one, two):
                async with FeedsClient(stage.url) as feeds:
                    await feeds.push(name, RSS)
        # A range that moves meanwhile is at both until its giver discards it. What was taken by
        # somebody who is not its owner would stay.
        first, second = (each.kept.states for each in services)
        await until(lambda: not set(first) & set(second))
        assert first, "each has some of them"
        assert second, "each has some of them"
        assert set(first) | set(second) == set(ODD)


def is_settled(services: list[Feeds], name: str) -> bool:
    """Return whether all agree on the owner of a feed."""
    owners = [each.owners.owner for each in services if each.owners.owner.check(name)]
    found = {each.owners.lookup.find(name) for each in services}
    return len(owners) == 1 and found == {owners[0].address}


@pytest.mark.parametrize(
    ("name", "method", "path", "body"),
    [
        ("documents", "PUT", "/documents/k", b'{"sections":{}}'),
        ("documents", "DELETE", "/documents/k/sections/a", None),
        ("queues", "POST", "/queues/k/entries", b'{"message":1}'),
        ("queues", "DELETE", "/queues/k", None),
        ("pubsub", "POST", "/topics/k/messages", b'{"data":1}'),
        ("pubsub", "DELETE", "/topics/k/subscriptions/1", None),
    ],
)
async def test_an_id_that_is_no_text_is_refused(
    name: str, method: str, path: str, body: bytes | None
) -> None:
    size = len(body or b"")
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {size}\r\n"
    said = head.encode() + b"Idempotency-Key: \xe9\r\n\r\n" + (body or b"")
    async with on_service_stage(name) as stage, connected(stage.url, said) as (reader, _):
        found = await reader.read()
        assert found.startswith(b"HTTP/1.1 400 ")
        assert b'"error":"id"' in found


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:8101", "ftp://127.0.0.1", "http://", "http://[::1", "http://x:99999"]
)
async def test_a_client_says_which_url_is_none(url: str) -> None:
    with pytest.raises(ConfigurationError, match="URL"):
        DocumentsClient(["http://127.0.0.1:8101", url] if url else [])


async def test_a_target_that_names_no_queue_is_refused() -> None:
    async with on_service_stage("pubsub") as stage:
        refused = await stage.ask("POST", "/topics/t/subscriptions", {"target": "queue:"})
        assert (refused.status, refused.body["error"]) == (422, "target")
