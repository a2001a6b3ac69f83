"""Changes of a ring to their end: nodes of this process over loopback, and a manager (R15, R17)."""

from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from tenure.columns.node.node_service import NodeService
from tenure.columns.opening import open_store
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Family, Table
from tenure.errors import ConfigurationError
from tenure.protocol.replication.messages import NodeMessage
from tenure.protocol.replication.operations import ReadState, StateRead
from tenure.wire import columns, message_parts
from tests.patience import until
from tests.unit.columns.node.managed import managed
from tests.unit.columns.node.ringed import CLUSTER

pytestmark = pytest.mark.asyncio
MAIL = Table(
    "mail",
    kind="hashed",
    profile=Family(columns=str),
    terms=Family(supers=str, columns=int, order="time"),
)
USERS = 60
SECONDS = 60


async def steer(service: NodeService, verb: str, **said: object) -> dict[str, Any]:
    """Tell the manager what to change."""
    url = f"{service.settings.managers[0]}/v1/clusters/{CLUSTER}/{verb}"
    async with aiohttp.ClientSession() as session, session.post(url, json=said) as answer:
        assert answer.ok, await answer.text()
        told: dict[str, Any] = await answer.json()
        return told


async def settled(services: list[NodeService], told: dict[str, Any]) -> None:
    """Wait until what was told is done, and all know that."""

    def is_so() -> bool:
        topologies = [each.store.topology for each in services if each._has_started]
        one = topologies[0]
        is_done = one.version > told["version"] and one.change is None
        have_it = [each == one for each in topologies]
        return is_done and all(have_it) and len(have_it) == len(services)

    await until(is_so)


async def fourth(services: list[NodeService], place: Path) -> NodeService:
    """A node that waits to be added."""
    settings = msgspec.structs.replace(services[0].settings, data=place / "fourth", name="fourth")
    node = await NodeService(settings).__aenter__()
    await until(lambda: services[0].store.topology.waiting)
    return node


async def write_all(store: ColumnStore, value: bytes) -> None:
    for user in range(USERS):
        await store.insert(
            MAIL, f"u{user}", {"profile": {"n": value}, "terms": {"tea": {user: value}}}
        )
    await store.delete(MAIL, "u0", "profile")


async def check_all(store: ColumnStore, value: bytes) -> None:
    for user in range(1, USERS):
        assert (await store.get(MAIL, f"u{user}", "profile", "n")).value == value
        assert (await store.get(MAIL, f"u{user}", "terms", "tea", user)).value == value
    assert await store.get(MAIL, "u0", "profile", "n") is None


def rows_of(service: NodeService) -> list[bytes]:
    """The rows that it replicates."""
    context = service.store.machine.context
    found = {row: context.replicas("mail", row) for row in (b"u%d" % user for user in range(USERS))}
    return [row for row, each in found.items() if each and context.node in each.everyone]


async def test_a_row_that_is_larger_than_a_message_is_copied_and_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: dict[object, int] = columns._LIMITS  # type: ignore[assignment]
    monkeypatch.setitem(limits, NodeMessage, 60_000)
    monkeypatch.setattr(message_parts, "PART_BYTES", 20_000)
    async with managed(tmp_path) as services:
        url = "columns:" + ",".join(service.url for service in services)
        async with open_store(url, MAIL) as store:
            for number in range(20):  # 200 kB
                await store.insert(MAIL, "ann", {"terms": {"tea": {number: b"x" * 10_000}}})
            added = await fourth(services, tmp_path)
            try:
                name = services[1].settings.name or services[1].url.partition("://")[2]
                told = await steer(services[0], "replace", node=name, by="fourth")
                with pytest.raises(ConfigurationError, match="removed"):
                    await services[1].wait()
                await services[1].__aexit__()
                await settled([services[0], services[2], added], told)
                read = ReadState(table="mail", key=b"ann")
                states = [node.store.replica.run(read)[0] for node in (services[0], added)]
                assert all(isinstance(each, StateRead) for each in states)
                one, other = (each.state for each in states if isinstance(each, StateRead))
                assert sum(len(entry) for _, _, entry in one.entries) > 200_000
                assert one.entries == other.entries
            finally:
                await added.__aexit__()


async def test_a_node_is_added_and_another_removed(tmp_path: Path) -> None:
    async with managed(tmp_path) as services:
        url = "columns:" + ",".join(service.url for service in services)
        async with open_store(url, MAIL) as store:
            await write_all(store, b"one")
            added = await fourth(services, tmp_path)
            try:
                told = await steer(services[0], "add", node="fourth")
                await settled([*services, added], told)
                await check_all(store, b"one")
                assert added.store.topology.node(added.directory.identity.node) is not None
                assert rows_of(added)
                name = services[1].settings.name or services[1].url.partition("://")[2]
                told = await steer(services[0], "remove", node=name)
                with pytest.raises(ConfigurationError, match="removed"):
                    await services[1].wait()
                await services[1].__aexit__()
                await settled([services[0], services[2], added], told)
                await check_all(store, b"one")
                assert len(rows_of(added)) == USERS, "there are three nodes, and three replicas"
                async with open_store(f"columns:{added.url}", MAIL) as other:
                    await check_all(other, b"one")
            finally:
                await added.__aexit__()
