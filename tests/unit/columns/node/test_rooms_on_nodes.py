"""Rows that owners keep on three nodes: the next owner has what was acknowledged, and late writes
of a former one are refused, also while a node is away.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from itertools import permutations
from pathlib import Path

import pytest

from tenure.base.keys import hashed_key
from tenure.client.lease import Lease
from tenure.columns.node.node_service import NodeService, NodeSettings
from tenure.columns.opening import open_store
from tenure.columns.owned_rows import OwnedRow, OwnedRows
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Family, Table
from tenure.errors import LeaseLost
from tenure.protocol.replication.operations import MergeState, PromiseFence, ReadParts
from tests.unit.columns.node.ringed import form_ring, running, settings_of

pytestmark = pytest.mark.asyncio
ROOMS = Table("rooms", fenced_by="rooms", said=Family(columns=int))


def lease(number: int) -> Lease:
    return Lease(hashed_key("attic"), number, 1, "rooms")


def url_of(nodes: list[NodeSettings]) -> str:
    return "columns:" + ",".join(f"http://127.0.0.1:{node.port}" for node in nodes)


class Room:
    """A chat room, its owners and its nodes. What was acknowledged is never forgotten."""

    def __init__(self, store: ColumnStore, service: AsyncExitStack) -> None:
        self._store = store
        self._node = service
        self._number = 1
        self._said: dict[int, bytes] = {}
        self.owner: OwnedRow

    async def open(self) -> None:
        self.owner = await OwnedRows(self._store, ROOMS).load(lease(self._number), "attic")
        assert {each.name: each.value for each in self.owner.get("said")} == self._said

    async def say(self) -> None:
        number = len(self._said)
        await self.owner.insert({"said": {number: b"word %d" % number}})
        self._said[number] = b"word %d" % number

    async def kill_the_owner(self) -> None:
        """Kill the owner. Another one comes, with nothing in memory."""
        self._number += 1
        await self.open()

    async def stop_the_owner(self) -> None:
        """It sleeps past its term, and writes when it wakes."""
        asleep = self.owner
        await self.kill_the_owner()
        with pytest.raises(LeaseLost):
            await asleep.insert({"said": {-1: b"late"}})

    async def stop_a_node(self) -> None:
        await self._node.aclose()


@pytest.mark.parametrize(
    "order", list(permutations(("kill_the_owner", "stop_the_owner", "stop_a_node")))
)
async def test_a_room_goes_on_whatever_ends_first(tmp_path: Path, order: tuple[str, ...]) -> None:
    nodes = settings_of(tmp_path)
    form_ring(nodes, ROOMS)
    async with running(nodes[1:], waits=False), AsyncExitStack() as first:
        await first.enter_async_context(running(nodes[:1]))
        async with open_store(url_of(nodes[1:]), ROOMS) as store:
            room = Room(store, first)
            await room.open()
            for each in order:
                await room.say()
                await getattr(room, each)()
                await room.say()
            await room.kill_the_owner()


def counted(services: list[NodeService]) -> Counter[type]:
    """What nodes say to nodes, counted as they say it."""
    said: Counter[type] = Counter()
    for service in services:
        context = service.store.machine.context

        def tell_counted(tell: Callable[[int, object], None], node: int, body: object) -> None:
            said[type(body)] += 1
            tell(node, body)

        context.tell = partial(tell_counted, context.tell)  # type: ignore[method-assign,arg-type]
    return said


async def test_adopting_a_row_takes_two_rounds(tmp_path: Path) -> None:
    nodes = settings_of(tmp_path)
    form_ring(nodes, ROOMS)
    async with running(nodes) as services, open_store(url_of(nodes[:1]), ROOMS) as store:
        said = counted(services)
        await OwnedRows(store, ROOMS).load(lease(1), "attic")
    # A read at a quorum is one question to each replica: promising, and reading.
    replicas = len(nodes)
    assert 0 < said[PromiseFence] <= replicas
    assert said[MergeState] == 0
    assert 0 < said[ReadParts] <= replicas


async def test_another_handle_adopts_under_the_same_lease_the_long_way(tmp_path: Path) -> None:
    """It is not the first try, also after writes. Nodes refuse it as one, and it is tried again."""
    nodes = settings_of(tmp_path)
    form_ring(nodes, ROOMS)
    async with running(nodes) as services, open_store(url_of(nodes[:1]), ROOMS) as store:
        attic = await OwnedRows(store, ROOMS).load(lease(1), "attic")
        await attic.insert({"said": {1: b"tea"}})
        said = counted(services)
        other = await OwnedRows(store, ROOMS).load(lease(1), "attic")
        assert other.get("said", 1).value == b"tea"
        await other.insert({"said": {2: b"milk"}})
        assert 0 < said[MergeState] <= len(nodes)


async def test_handles_that_take_turns_under_one_lease_all_adopt(tmp_path: Path) -> None:
    """The handle that was opened first tries after the other one, and is not taken for late."""
    nodes = settings_of(tmp_path)
    form_ring(nodes, ROOMS)
    url = url_of(nodes)
    async with running(nodes), open_store(url, ROOMS) as first, open_store(url, ROOMS) as second:
        for turn, store in enumerate((first, second, first, second)):
            row = await OwnedRows(store, ROOMS).load(lease(1), "attic")
            assert len(row.get("said")) == turn
            await row.insert({"said": {turn: b""}})
