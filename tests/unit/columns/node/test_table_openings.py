"""Clients that declare tables without end leave places for others, and few tables are asked for."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tenure.columns.node import table_openings
from tenure.columns.node.table_openings import MADE_AT_ONCE, TableOpenings
from tenure.protocol.replication.openings import OpenStore, StoreOpened, TableMissing
from tenure.protocol.topology.tables import FamilyRecord, TableRecord
from tenure.transport.credentials import NOTHING
from tenure.wire.columns import ToStoreClient
from tests.patience import DEADLINE_SECONDS
from tests.unit.protocol.replication.stage_of_nodes import TABLES, topology_of

pytestmark = pytest.mark.asyncio
TABLE = TableRecord("hashed", "str", "", {"f": FamilyRecord("str")})


class Manager:
    """Is asked to make tables, and takes its time."""

    def __init__(self) -> None:
        self.asked = 0
        self.goes_on = asyncio.Event()

    async def make(self, _: web.Request) -> web.Response:
        self.asked += 1
        await self.goes_on.wait()
        return web.Response(status=409, text="no more tables")


@asynccontextmanager
async def opening() -> AsyncIterator[tuple[Manager, TableOpenings]]:
    manager, app = Manager(), web.Application()
    app.router.add_post("/v1/clusters/mail/tables", manager.make)
    async with TestServer(app) as server, asyncio.timeout(DEADLINE_SECONDS):
        url = str(server.make_url("")).rstrip("/")
        openings = TableOpenings("mail", NOTHING, lambda: topology_of(3), lambda: url)
        yield manager, openings
        manager.goes_on.set()
        await openings.stop()


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - it can only be looked at
        await asyncio.sleep(0)


async def test_whoever_declares_tables_without_end_leaves_places_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table_openings, "MOST_WAITING", 40)
    async with opening() as (manager, openings):
        floods: list[ToStoreClient] = []
        for number in range(60):
            asked = OpenStore(request=number, tables={f"t{number}": TABLE})
            openings.open(asked, floods.append, "one")
        assert len(floods) == 30
        assert isinstance(floods[0], TableMissing)
        assert "too many clients wait" in floods[0].detail
        answers: list[ToStoreClient] = []
        openings.open(OpenStore(request=1, tables={"mine": TABLE}), answers.append, "another")
        assert answers == [], "it waits for its table"
        openings.open(
            OpenStore(request=2, tables={"plain": TABLES["plain"]}), answers.append, "one"
        )
        assert isinstance(answers[0], StoreOpened), "what is there needs no place"
        await until(lambda: manager.asked == MADE_AT_ONCE)
        manager.goes_on.set()
        await until(lambda: len(floods) == 60 and len(answers) == 2)
        assert manager.asked == 31
        openings.open(OpenStore(request=3, tables={"again": TABLE}), floods.append, "one")
        assert len(floods) == 60, "its places were given back"
