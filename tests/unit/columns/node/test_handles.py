"""A handle goes on whatever becomes of the nodes that it was opened with."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import msgspec
import pytest

from tenure.columns.backends.cluster import ClusterBackend
from tenure.columns.node.node_service import NodeService
from tenure.columns.opening import open_store
from tenure.columns.store import ColumnStore
from tenure.errors import ConfigurationError
from tenure.protocol.replication.messages import WriteRow
from tenure.protocol.replication.node_events import StoreAsked
from tenure.protocol.topology.ring import position
from tests.patience import until
from tests.unit.columns.node.managed import managed
from tests.unit.columns.node.ringed import form_ring, running, settings_of
from tests.unit.columns.node.test_filling import MAIL, settled, steer

Begin = Callable[[StoreAsked], None]
pytestmark = pytest.mark.asyncio


class Using:
    """Writes and reads one row after the other, until it is told to end."""

    def __init__(self, store: ColumnStore) -> None:
        self._store = store
        self._ends = False
        self.rows = 0
        self.slowest = 0.0

    async def use(self) -> None:
        now = asyncio.get_running_loop().time
        while not self._ends:
            began, row = now(), f"u{self.rows}"
            await self._store.insert(MAIL, row, {"profile": {"n": row.encode()}})
            found = await self._store.get(MAIL, row, "profile", "n")
            assert found is not None
            assert found.value == row.encode()
            self.rows += 1
            self.slowest = max(self.slowest, now() - began)

    async def until_more(self, rows: int) -> None:
        enough = self.rows + rows
        await until(lambda: self.rows >= enough)

    async def end(self, task: asyncio.Task[None]) -> None:
        self._ends = True
        await task


async def waiting(services: list[NodeService], place: Path, name: str) -> NodeService:
    """A new node that waits to be added."""
    settings = msgspec.structs.replace(services[0].settings, data=place / name, name=name)
    node = await NodeService(settings).__aenter__()
    await until(lambda: any(services[0].store.topology.waiting))
    return node


async def test_all_nodes_are_replaced_while_an_old_handle_goes_on(tmp_path: Path) -> None:
    async with managed(tmp_path) as services, AsyncExitStack() as stack:
        there = list(services)
        async with open_store(f"columns:{services[0].url}", MAIL) as store:
            idle = await stack.enter_async_context(open_store(f"columns:{services[0].url}", MAIL))
            using = Using(store)
            task = asyncio.create_task(using.use())
            for place in range(3):
                new = await waiting(there, tmp_path, f"new-{place}")
                stack.push_async_exit(new)
                gone = there.pop(0)
                name = gone.url.partition("://")[2]
                told = await steer(gone, "replace", node=name, by=new.settings.name)
                with pytest.raises(ConfigurationError, match="removed"):
                    await gone.wait()
                await gone.__aexit__()
                there.append(new)
                await settled(there, told)
                await using.until_more(5)
            await using.end(task)
            assert (await idle.get(MAIL, "u0", "profile", "n")).value == b"u0"
            assert isinstance(store.backend, ClusterBackend)
            known = store.backend._known
            assert set(known.all) == {node.url for node in there}


async def test_rows_are_asked_for_at_their_replicas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = settings_of(tmp_path)
    topology = form_ring(nodes, MAIL, are_alone=True)
    asked: Counter[bool] = Counter()
    async with running(nodes) as services, open_store(f"columns:{services[0].url}", MAIL) as store:
        for service in services:

            def count(begin: Begin, service: NodeService, event: StoreAsked) -> None:
                if isinstance(event.request, WriteRow):
                    replicas = service.store.topology.at(position(event.request.key, MAIL.kind))
                    asked[service.directory.identity.node in replicas.old] += 1
                begin(event)

            requests = service.store._requests
            monkeypatch.setattr(requests, "_begin", partial(count, requests._begin, service))
        for number in range(200):
            await store.insert(MAIL, f"u{number}", {"profile": {"n": b"x"}})
        assert len(topology.ranges) == 3
        assert asked[True] > 180, "the first few find out who answers"
