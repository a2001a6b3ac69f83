"""A node whose disk has no room for what it is told."""

import asyncio
import os
from pathlib import Path
from random import Random

import msgspec
import pytest

from tenure import Family, Table
from tenure.columns.engines.rocksdb import RocksEngine
from tenure.columns.node.disk_room import has_room
from tenure.columns.node.node_directory import IDENTITY, NodeDirectory
from tenure.columns.node.node_lives import NodeLives
from tenure.columns.node.node_service import NodeService
from tenure.errors import ConfigurationError, StoreUnwritable, WriteUnknown
from tenure.protocol.replication.node_events import TopologyLearned
from tests.patience import DEADLINE_SECONDS, until
from tests.unit.columns.node.ringed import TablesMade, form_ring, running, settings_of

MAIL = Table("mail", profile=Family(columns=str))


def has_no_room(*_: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.asyncio
async def test_a_topology_that_a_full_disk_refuses_is_kept_when_it_has_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file, and then a space of a table: nobody tells the node of this topology again."""
    nodes = settings_of(tmp_path, 1)
    topology = form_ring(nodes, MAIL)
    told = msgspec.structs.replace(
        topology,
        version=topology.version + 1,
        tables={**topology.tables, "more": MAIL.record()},
    )
    refused: list[str] = []
    keep, make = NodeDirectory.keep_topology, RocksEngine.make_spaces

    def keeps_no_file(*_: object) -> None:
        refused.append("file")
        raise StoreUnwritable("No space left on device")

    def makes_no_space(*_: object) -> None:
        refused.append("space")
        raise StoreUnwritable("No space left on device")

    monkeypatch.setattr("tenure.columns.node.store_engine.KEEP_SECONDS", 0.01)
    async with running(nodes) as [node]:
        monkeypatch.setattr(NodeDirectory, "keep_topology", keeps_no_file)
        node.store.post(TopologyLearned(told))
        await until(lambda: "file" in refused)
        monkeypatch.setattr(RocksEngine, "make_spaces", makes_no_space)
        monkeypatch.setattr(NodeDirectory, "keep_topology", keep)
        await until(lambda: "space" in refused)
        assert node.store.topology == topology
        monkeypatch.setattr(RocksEngine, "make_spaces", make)
        await until(lambda: node.store.topology == told)


@pytest.mark.asyncio
async def test_a_node_whose_log_was_refused_reads_and_acknowledges_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one sync has refused is in doubt, and a later sync that succeeds does not change it."""
    room, sync = asyncio.Event(), RocksEngine.sync
    nodes = settings_of(tmp_path, 1)
    form_ring(nodes, MAIL)
    nodes = [msgspec.structs.replace(nodes[0], patience_seconds=0.3)]
    is_full = False

    def synced(engine: RocksEngine) -> None:
        if is_full:
            raise StoreUnwritable("No space left on device")
        sync(engine)

    async def has_room(_: Path) -> None:
        await room.wait()

    monkeypatch.setattr("tenure.columns.node.disk_trouble.room_on", has_room)
    monkeypatch.setattr(RocksEngine, "sync", synced)
    async with (
        running(nodes) as [node],
        TablesMade([node], [MAIL], asyncio.get_running_loop()) as store,
    ):
        await store.insert(MAIL, "ann", {"profile": {"name": b"Ann"}})
        is_full = True
        with pytest.raises(WriteUnknown):
            await store.insert(MAIL, "bob", {"profile": {"name": b"Bob"}})
        is_full = False
        with pytest.raises(WriteUnknown):
            await store.insert(MAIL, "cid", {"profile": {"name": b"Cid"}})
        assert await store.get(MAIL, "ann", "profile", "name")
        room.set()
        with pytest.raises(StoreUnwritable, match="No space left"):
            await asyncio.wait_for(node.wait(), DEADLINE_SECONDS)


@pytest.mark.asyncio
async def test_the_next_life_begins_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening may find too little room: then the next life waits, too."""
    nodes = settings_of(tmp_path, 1)
    form_ring(nodes, MAIL)
    waited: list[str] = []
    begin = NodeService.__aenter__

    async def has_room(_: Path) -> None:
        waited.append("room")

    async def begins(service: NodeService) -> NodeService:
        if len(waited) == 1:
            raise StoreUnwritable("No space left on device")
        return await begin(service)

    monkeypatch.setattr("tenure.columns.node.node_lives.room_on", has_room)
    monkeypatch.setattr("tenure.columns.node.node_lives.LOOK_SECONDS", 0.0)
    monkeypatch.setattr(NodeService, "__aenter__", begins)
    async with NodeLives(nodes[0]) as node:
        first = node.service
        assert first is not None
        ended = asyncio.create_task(node.wait())
        first.on_failed(StoreUnwritable("No space left on device"))
        await until(lambda: node.service not in (None, first))
        assert waited == ["room", "room"]
        assert node.service is not None
        assert node.service.url == first.url
        ended.cancel()


def test_a_disk_has_room_if_a_file_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert has_room(tmp_path)
    monkeypatch.setattr(os, "fsync", has_no_room)
    assert not has_room(tmp_path)
    assert not has_room(tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.asyncio
async def test_a_node_that_cannot_keep_its_first_topology_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manager tells it over a connection, which must not end in its stead."""
    [settings] = settings_of(tmp_path, 1)
    other, secret = tmp_path / "other", tmp_path / "secret"
    other.mkdir()
    topology = form_ring([msgspec.structs.replace(settings, data=other / "n", secret=secret)])
    async with running([settings], waits=False) as [node]:
        monkeypatch.setattr(os, "fsync", has_no_room)
        node._on_told(topology)
        monkeypatch.undo()
        with pytest.raises(StoreUnwritable, match=r"No space left.*a disk with space"):
            await asyncio.wait_for(node.wait(), DEADLINE_SECONDS)


def test_a_first_start_without_room_says_so_and_may_be_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", has_no_room)
    with pytest.raises(StoreUnwritable, match=r"No space left.*a disk with space"):
        NodeDirectory.open(tmp_path / "n", "mail", Random(1))
    monkeypatch.undo()
    NodeDirectory.open(tmp_path / "n", "mail", Random(1))
    assert (tmp_path / "n" / IDENTITY).exists()


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(ConfigurationError, match="file is not a directory: name another one"):
        NodeDirectory.open(file, "mail", Random(1))
    with pytest.raises(StoreUnwritable, match="file/n cannot be used"):
        NodeDirectory.open(file / "n", "mail", Random(1))
    assert file.read_text() == "mine"
