"""Clients that open a store whose tables are not all there: managers are asked to make the rest.

A client declares its tables, and waits until the topology has them. It could declare tables without
end, at many connections: so those who wait have places, of which each token has a share, and only
a few tables are asked for at once.
"""

import asyncio
from collections.abc import Callable
from itertools import count
from typing import NamedTuple

import aiohttp
import msgspec

from tenure.columns.tables import check_same
from tenure.errors import SchemaError
from tenure.protocol.replication.openings import OpenStore, StoreOpened, TableMissing, store_opened
from tenure.protocol.replication.request_room import RequestPlaces
from tenure.protocol.topology.records import Topology
from tenure.protocol.topology.tables import TableRecord
from tenure.runtime.read_size import SmallBlocksResponse
from tenure.transport.answer_body import read_body
from tenure.transport.credentials import Credentials
from tenure.transport.redirects import REDIRECTS
from tenure.wire.columns import ToStoreClient

REASON_BYTES = 16 << 10
"""The most that is read of a manager's reason for making no table."""
TABLE_SECONDS = 10.0
"""How long a client waits for a table to be made."""
MOST_WAITING = 1_000
"""The most clients that wait for tables at one node."""
MADE_AT_ONCE = 8
"""The most tables for which the managers are asked at once: each is a change of the topology."""
Answer = Callable[[ToStoreClient], object]


class _WaitsForTables(NamedTuple):
    opening: OpenStore
    answer: Answer
    by: str


class TableOpenings:
    """The openings at one node. `leader` is the manager to ask; None if the node knows none."""

    def __init__(
        self,
        cluster: str,
        credentials: Credentials,
        topology: Callable[[], Topology],
        leader: Callable[[], str | None],
    ) -> None:
        self._cluster = cluster
        self._credentials = credentials
        self._topology = topology
        self._leader = leader
        self._places = RequestPlaces(MOST_WAITING)
        self._turns = asyncio.Semaphore(MADE_AT_ONCE)
        self._waiting: dict[int, _WaitsForTables] = {}
        self._drawn = count(1)
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._http: aiohttp.ClientSession | None = None

    def open(self, opening: OpenStore, answer: Answer, by: str) -> None:
        """Answer a client, whose name is `by`, as soon as all of its tables are there."""
        found = self._found(opening)
        if not isinstance(found, dict):
            answer(found)
            return
        name = next(iter(found))
        if self._leader() is None:
            detail = "this node knows no manager, and managers make tables: start it with --manager"
            answer(TableMissing(request=opening.request, table=name, detail=detail))
        elif not self._places.take(by, 1):
            detail = "too many clients wait for tables at this node: open the store again later"
            answer(TableMissing(request=opening.request, table=name, detail=detail))
        else:
            number = next(self._drawn)
            self._waiting[number] = _WaitsForTables(opening, answer, by)
            task = asyncio.get_running_loop().create_task(self._make(number, found))
            self._tasks[task] = None
            task.add_done_callback(self._tasks.pop)

    def look_again(self) -> None:
        """There is another topology: answer those whose tables it has."""
        for number, waiting in list(self._waiting.items()):
            found = self._found(waiting.opening)
            if not isinstance(found, dict):
                self._end(number, found)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._http is not None:
            await self._http.close()

    def _found(self, opening: OpenStore) -> StoreOpened | TableMissing | dict[str, TableRecord]:
        """The answer; or the tables that must be made first."""
        topology = self._topology()
        missing: dict[str, TableRecord] = {}
        for name, declared in opening.tables.items():
            kept = topology.tables.get(name)
            try:
                if kept is not None:
                    check_same(name, kept, declared)
            except SchemaError as error:
                return TableMissing(request=opening.request, table=name, detail=str(error))
            if kept is None or not declared.families.keys() <= kept.families.keys():
                missing[name] = declared
        return missing or store_opened(opening.request, topology)

    def _end(self, number: int, answer: StoreOpened | TableMissing) -> None:
        waiting = self._waiting.pop(number)
        self._places.leave(waiting.by, 1)
        waiting.answer(answer)

    async def _make(self, number: int, missing: dict[str, TableRecord]) -> None:
        for name, record in missing.items():
            async with self._turns:
                if number not in self._waiting:
                    return
                detail = await self._make_table(name, record)
            if detail and number in self._waiting:
                request = self._waiting[number].opening.request
                self._end(number, TableMissing(request=request, table=name, detail=detail))
                return

    async def _make_table(self, name: str, record: TableRecord) -> str:
        """The reason why the table was not made; empty if it was."""
        manager = self._leader()
        if self._http is None:
            self._http = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(TABLE_SECONDS), response_class=SmallBlocksResponse
            )
        body = msgspec.json.encode({"name": name, "table": record})
        try:
            async with self._http.post(
                f"{manager}/v1/clusters/{self._cluster}/tables",
                data=body,
                headers={
                    "Content-Type": "application/json",
                    **self._credentials.headers(manager or ""),
                },
                ssl=self._credentials.to(manager or "") or True,
                allow_redirects=False,
            ) as said:
                if said.ok and said.status not in REDIRECTS:
                    return ""
                why = await read_body(said, REASON_BYTES)
                return (why or b"it says more than a reason").decode(errors="replace")[:500]
        except (aiohttp.ClientError, TimeoutError) as error:
            return f"the manager at {manager} does not answer: {str(error) or 'it takes too long'}"
