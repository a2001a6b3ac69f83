"""What a node shows at its own port, to people, to programs, and to whom not."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import aiohttp
import msgspec
import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from tenure.base.instants import Instant, seconds
from tenure.columns.node.node_pages import NodeStatus
from tenure.columns.node.node_service import NodeService, NodeSettings
from tenure.columns.node.request_timings import LINES_AT_ONCE, RequestTimings, Timed, key_hash
from tenure.columns.opening import open_store
from tenure.columns.tables import Family, Table
from tenure.protocol.replication.messages import (
    Failed,
    NotWritten,
    ReadRow,
    ReadRows,
    RowFound,
    RowsFound,
    RowWritten,
    WholeRow,
    WriteRow,
)
from tenure.protocol.replication.row.admission import Attempt, Late
from tenure.protocol.replication.row.pages import Slice
from tenure.protocol.replication.row.versions import NEVER
from tests.patience import DEADLINE_SECONDS, until
from tests.unit.columns.node.ringed import form_ring, running, settings_of

MAIL = Table("mail", profile=Family(columns=str))
KEY = "ann <b>"


class Shown(NamedTuple):
    nodes: list[NodeService]
    session: aiohttp.ClientSession

    async def get(self, path: str, of: int = 0, **headers: str) -> tuple[int, str]:
        url = self.nodes[of].url + path
        async with self.session.get(url, headers=headers) as response:
            return response.status, await response.text()

    async def metrics(self, of: int = 0) -> dict[str, Metric]:
        status, text = await self.get("/metrics", of)
        assert status == 200
        return {family.name: family for family in text_string_to_metric_families(text)}


@asynccontextmanager
async def shown(settings: list[NodeSettings], *, waits: bool = True) -> AsyncIterator[Shown]:
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(DEADLINE_SECONDS)) as session,
        running(settings, waits=waits) as nodes,
    ):
        yield Shown(nodes, session)


def counted(family: Metric, **labels: str) -> float:
    """Requests in a histogram that have these labels, whatever the others."""
    return sum(
        sample.value
        for sample in family.samples
        if sample.name.endswith("_count") and labels.items() <= sample.labels.items()
    )


@pytest.mark.asyncio
async def test_requests_syncs_and_neighbours_are_in_the_metrics(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    form_ring(settings, MAIL)
    async with shown(settings) as at:
        url = "columns:" + at.nodes[0].url
        async with open_store(url, MAIL) as store:
            await store.insert(MAIL, KEY, {"profile": {"name": b"Ann"}})
            assert await store.get(MAIL, KEY, "profile", "name")
        requests, syncs = 0.0, 0.0
        for each in range(3):
            found = await at.metrics(each)
            taken = found["tenure_store_request_seconds"]
            requests += counted(taken, request="WriteRow", level="quorum", outcome="done")
            requests += counted(taken, request="ReadColumn", outcome="done")
            assert counted(taken, outcome="unknown") == 0
            syncs += counted(found["tenure_store_sync_seconds"])
            others = {sample.labels["node"] for sample in found["tenure_store_phi"].samples}
            assert others == {str(other.port) for other in settings if other != settings[each]}
            assert found["tenure_store_requests"].samples[0].value == 0
            assert found["tenure_store_takes_part"].samples[0].value == 1
            free, size = (found[f"tenure_store_disk{of}_bytes"] for of in ("_free", ""))
            assert 0 < free.samples[0].value < size.samples[0].value
            spaces = {of.labels["space"] for of in found["tenure_store_space_bytes"].samples}
            assert any("profile" in space for space in spaces), spaces
        assert requests == 2
        assert syncs >= 2


@pytest.mark.asyncio
async def test_people_and_programs_are_shown_the_same(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    form_ring(settings, MAIL)
    async with shown(settings) as at:
        status = msgspec.json.decode((await at.get("/v1/status"))[1], type=NodeStatus)
        assert (status.cluster, status.url, status.takes_part) == ("mail", at.nodes[0].url, True)
        assert sorted(status.names.values()) == sorted(str(each.port) for each in settings)
        page = (await at.get("/"))[1]
        assert f"A node of mail at {at.nodes[0].url}" in page
        assert all(f"<td>{each.port}</td><td>up</td>" in page for each in settings[1:])
        assert await at.get("/healthz") == (200, '{"status":"up"}\n')
        assert (await at.get("/rows"))[0] == 404
        assert (await at.get("/metrics", Origin="https://evil.example"))[0] == 403
        assert (await at.get("/metrics", Host="evil.example"))[0] == 403


@pytest.mark.asyncio
async def test_a_node_that_waits_for_others_is_shown_too(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    form_ring(settings, MAIL)
    async with shown(settings[:1], waits=False) as at:
        found = await at.metrics()
        assert found["tenure_store_takes_part"].samples[0].value == 0
        for never in ("comparison", "seal"):  # 0 would say that it was just now
            assert found[f"tenure_store_oldest_{never}_seconds"].samples == []
        assert found["tenure_store_topology"].samples[0].value == 5


@pytest.mark.asyncio
async def test_a_slow_request_is_logged_without_its_key(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    every = [
        msgspec.structs.replace(each, slow_seconds=0.000_001) for each in settings_of(tmp_path, 1)
    ]
    form_ring(every, MAIL)
    async with shown(every) as at, open_store("columns:" + at.nodes[0].url, MAIL) as store:
        caplog.set_level(logging.WARNING)
        await store.insert(MAIL, KEY, {"profile": {"name": b"Ann"}})
        await until(lambda: any("slow: WriteRow" in each for each in caplog.messages))
        [line] = [each for each in caplog.messages if "slow: WriteRow" in each]
        assert f"#{key_hash(KEY.encode())} in mail at quorum took" in line
        assert line.endswith("done")
        assert "ann" not in line
        assert (await at.metrics())["tenure_store_slow_requests"].samples[0].value >= 1


# --- the timings alone ---

WRITE = WriteRow(request=7, table="mail", key=b"ann", edits=(), attempt=Attempt(NEVER))
SCAN = ReadRows(request=8, table="mail", part=Slice(first=5), within=1)


def at(second: float) -> Instant:
    return Instant(seconds(second))


def test_each_outcome_counts_for_itself() -> None:
    timings = RequestTimings(1.0)
    answers = (
        RowWritten(request=7),
        NotWritten(request=7, refused=Late(1)),
        Failed(request=7, why="unknown"),
        Failed(request=7, why="overloaded"),
    )
    for answer in answers:
        timings.asked(at(1), 1, WRITE)
        timings.answered(at(1.25), 1, answer)
    outcomes = ("done", "not written", "unknown", "overloaded")
    assert set(timings.taken) == {Timed("WriteRow", "quorum", each) for each in outcomes}
    assert {taken.sum for taken in timings.taken.values()} == {0.25}
    assert timings.slow == timings.under_way == 0


def test_numbers_of_requests_are_each_clients_own() -> None:
    timings = RequestTimings(1.0)
    timings.asked(at(1), 1, WRITE)
    timings.asked(at(2), 2, WRITE)
    timings.answered(at(3), 2, RowWritten(request=7))
    [taken] = timings.taken.values()
    assert (taken.sum, timings.under_way) == (1, 1)


def test_what_nobody_hears_or_asked_for_does_not_count() -> None:
    timings = RequestTimings(1.0)
    timings.asked(at(1), 1, WRITE)
    timings.asked(at(1), 1, SCAN)
    assert timings.under_way == 2
    timings.gone(1)
    for request in (0, 7):
        timings.answered(at(2), 1, RowWritten(request=request))
    assert (timings.under_way, len(timings.taken)) == (0, 0)


def test_slow_requests_cannot_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    timings = RequestTimings(1.0)
    read = ReadRow(request=9, table="mail", key=b"ann", within=1)
    found = RowFound(request=9, row=WholeRow(key=b"ann"))
    for _ in range(2 * LINES_AT_ONCE):
        timings.asked(at(1), 1, read)
        timings.answered(at(2), 1, found)
    assert timings.slow == 2 * LINES_AT_ONCE
    assert len(caplog.messages) == LINES_AT_ONCE
    caplog.clear()
    timings.asked(at(10), 1, SCAN)
    timings.answered(at(20), 1, RowsFound(request=8, rows=()))
    assert caplog.messages == ["slow: ReadRows of all rows in mail at quorum took 10000 ms: done"]


def test_a_table_that_is_none_begins_no_line_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    """A request that stood in line for long is slow, whatever it names."""
    timings = RequestTimings(1.0)
    named = "mail\n2026-01-01 ERROR all is lost\x1b[2J"
    timings.asked(at(1), 1, ReadRow(request=7, table=named, key=b"ann", within=1))
    timings.answered(at(6), 1, Failed(request=7, why="overloaded"))
    [line] = caplog.messages
    assert line.isprintable()
