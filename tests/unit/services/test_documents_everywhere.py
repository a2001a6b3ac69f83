"""Documents are read in the process that is asked, from a copy that is never older than an
answer.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tenure.errors import ConfigurationError
from tenure.services.catalogue import service_type
from tenure.services.documents.client import DocumentsClient
from tenure.services.documents.document import DOCUMENT_BYTES, SECTION_BYTES
from tenure.services.service import ServiceSettings
from tests.patience import until
from tests.unit.manager.serving import serving
from tests.unit.services.stage import ServiceStage, on_service_stage

pytestmark = pytest.mark.asyncio
PATH = "/documents/d"


@asynccontextmanager
async def two(**settings: Any) -> AsyncIterator[tuple[ServiceStage, ServiceStage]]:  # noqa: ANN401
    """The process that owns the document, and another one."""
    async with (
        serving(preset="default") as serves,
        on_service_stage("documents", manager=serves.service.url, **settings) as one,
        on_service_stage("documents", manager=serves.service.url, **settings) as other,
    ):
        lookup = one.service.entities.station.lookup
        addresses = {each.service.entities.station.owner.address: each for each in (one, other)}
        await until(lambda: {lookup.find(f"any-{n}") for n in range(100)} == {*addresses})
        owner = addresses[lookup.find("d") or ""]
        yield owner, other if owner is one else one


def hits(stage: ServiceStage) -> int:
    copies = stage.service.entities.station.copies
    return 0 if copies is None else copies.hits


async def until_copied(stage: ServiceStage, path: str = PATH) -> None:
    before = hits(stage)

    async def is_read_here() -> bool:
        await stage.ask("GET", path)
        return hits(stage) > before

    await until(is_read_here, "the document is read in this process")


async def test_each_process_reads_by_itself_and_sees_every_change_that_was_answered() -> None:
    async with two() as (owner, other):
        await owner.ask("PUT", PATH, {"sections": {"a": 0}})
        for number in range(1, 20):
            await until_copied(other)
            writing = (owner, other)[number % 2]
            written = await writing.ask("PUT", f"{PATH}/sections/a", number)
            read = await other.ask("GET", PATH)
            assert (read.body["sections"], read.tag) == ({"a": number}, written.tag)
            section = await other.ask("GET", f"{PATH}/sections/a", If_None_Match=written.tag)
            assert section.status == 304


async def test_no_document_and_one_that_has_gone_are_answered_here_too() -> None:
    async with two() as (owner, other):
        await until_copied(other)
        assert (await other.ask("GET", PATH)).status == 404
        await owner.ask("PUT", PATH, {"sections": {"a": 1}})
        assert (await other.ask("GET", f"{PATH}/sections/b")).status == 404
        await until_copied(other)
        assert (await owner.ask("DELETE", PATH)).status == 204
        gone = await other.ask("GET", PATH)
        assert (gone.status, gone.body["gone_at"] > 0) == (410, True)


async def test_a_document_that_expires_is_gone_everywhere() -> None:
    async with two() as (owner, other):
        await owner.ask("PUT", PATH, {"sections": {"a": 1}, "ttl": 1.0})
        await until_copied(other)

        async def has_gone() -> bool:
            return (await owner.ask("GET", PATH)).status == 410

        await until(has_gone)
        assert (await other.ask("GET", PATH)).status == 410


async def test_the_largest_document_is_read_here() -> None:
    async with two() as (owner, other):
        largest = "x" * (SECTION_BYTES.most - 2)
        sections = dict.fromkeys("ab"[: DOCUMENT_BYTES.most // SECTION_BYTES.most], largest)
        assert (await owner.ask("PUT", PATH, {"sections": sections})).status == 201
        await until_copied(other)
        assert (await other.ask("GET", PATH)).body["sections"] == sections


async def test_documents_may_be_read_at_their_owner_only() -> None:
    async with two(reads="owner") as (owner, other):
        await owner.ask("PUT", PATH, {"sections": {"a": 1}})
        assert (await other.ask("GET", PATH)).body["sections"] == {"a": 1}
        assert other.service.entities.station.copies is None


@pytest.mark.parametrize(
    ("name", "settings", "why"),
    [
        ("queues", {"reads": "owner"}, "no use for --reads"),
        ("pubsub", {"stale_after": 1.0}, "no use for --stale-after"),
        ("documents", {"reads": "owner", "stale_after": 1.0}, "never stale"),
        ("documents", {"reads": "nowhere"}, "reads is"),
        ("documents", {"stale_after": -1.0}, "stale_after"),
    ],
)
async def test_where_documents_are_read_is_checked_before_anything_starts(
    name: str, settings: dict[str, Any], why: str
) -> None:
    with pytest.raises(ConfigurationError, match=why):
        service_type(name)(ServiceSettings(pool=name, managers="http://m.test", **settings))


async def test_who_was_told_of_a_loss_can_have_the_owner_asked_though_there_is_a_copy() -> None:
    """An owner that died with its documents cannot take copies of them back: they may be read for a
    moment, and what is read then will be told of by nobody, because it was told already.
    """
    async with two() as (owner, other):
        await owner.ask("PUT", PATH, {"sections": {"a": 0}})
        await until_copied(other)
        no_copy = {"Cache_Control": "max-age=0, no-cache"}
        await other.ask("GET", PATH, **no_copy)  # finds out that this needs the owner
        before = hits(other)
        for path in (PATH, f"{PATH}/sections/a"):
            found = await other.ask("GET", path, **no_copy)
            assert (found.status, hits(other)) == (200, before)
        async with DocumentsClient(other.url) as documents:
            read = await documents.read("d", at_owner=True)
            section = await documents.read_section("d", "a", at_owner=True)
            assert (read.sections, section, hits(other)) == ({"a": 0}, 0, before)
            await documents.read_section("d", "a")
        assert hits(other) > before
