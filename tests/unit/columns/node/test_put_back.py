"""A node whose directory was put back to an earlier state: it takes part in nothing (R26, D8)."""

import asyncio
import shutil
from pathlib import Path

import pytest

from tenure import Family, Table, open_store
from tenure.columns.node.node_directory import KNOWN, NodeDirectory
from tenure.columns.node.node_service import NodeService
from tenure.errors import StoreDamaged
from tenure.protocol.gossip.gossiper import Gossiper
from tests.patience import DEADLINE_SECONDS, until
from tests.unit.columns.node.ringed import form_ring, running, settings_of

pytestmark = pytest.mark.asyncio
MAIL = Table("mail", profile=Family(columns=str))


def counter_of(node: NodeService, as_seen_by: NodeService) -> int:
    """How often the one has raised its counter, as the other has heard."""
    own = node.directory.identity.node
    seen = {each.node: each.digest.promises for each in as_seen_by.gossip.view().nodes}
    return seen.get(own, 0)


async def write(service: NodeService, value: bytes) -> None:
    async with open_store(f"columns:{service.url}", MAIL) as store:
        await store.insert(MAIL, "ann", {"profile": {"name": value}})


async def read(service: NodeService) -> bytes:
    async with open_store(f"columns:{service.url}", MAIL) as store:
        found = await store.get(MAIL, "ann", "profile", "name")
        value: bytes = found.value
        return value


async def test_a_disk_put_back_forgets_a_write_so_its_node_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = nodes = settings_of(tmp_path)
    form_ring(nodes, MAIL)
    async with running(nodes) as services:
        await write(services[0], b"Ann")
        await until(lambda: counter_of(services[0], services[1]) > 0)
    copy = tmp_path / "copy"
    shutil.copytree(first.data, copy)

    def put_back() -> None:
        shutil.rmtree(first.data)
        shutil.copytree(copy, first.data)
        (third.data / KNOWN).unlink(missing_ok=True)  # as if it had been down all the while

    async with running([second], waits=False) as [knowing]:
        async with running([first], waits=False) as [node]:
            async with running([third]):  # no manager is there: all three vouch for each other
                await until(lambda: node.has_ring and knowing.has_ring)
            await write(node, b"Anna")  # the first two have it, and nothing was promised
            raised = node.store.promises
            await until(lambda: counter_of(node, knowing) == raised)
        put_back()
        async with running([third, first], waits=False) as (_, node):
            with pytest.raises(StoreDamaged, match=r"earlier state.*tenure columns replace"):
                await asyncio.wait_for(node.wait(), DEADLINE_SECONDS)
            assert not node.has_ring

    # The purpose of the rule: without it the node takes part before it can have heard of itself,
    # and has with the third one a quorum that has forgotten what was acknowledged.
    put_back()
    monkeypatch.setattr(Gossiper, "has_enough_vouching", lambda _: True)
    async with running([first, third]) as (node, _):
        assert await read(node) == b"Ann"


async def test_a_disk_put_back_to_before_its_first_life_takes_part_in_nothing(
    tmp_path: Path,
) -> None:
    """Its counter is 0, as that of a node that is new."""
    first, *others = nodes = settings_of(tmp_path)
    form_ring(nodes, MAIL)
    copy = tmp_path / "copy"
    shutil.copytree(first.data, copy)
    async with running(nodes) as services:
        own = services[0].directory.identity.node
        await write(services[0], b"Ann")

        def is_kept(by: NodeService) -> bool:
            return any(each.node == own and each.promises for each in by.directory.known())

        await until(lambda: all(map(is_kept, services[1:])))
    shutil.rmtree(first.data)
    shutil.copytree(copy, first.data)
    async with running([*others, first], waits=False) as (*_, node):
        with pytest.raises(StoreDamaged, match=r"earlier state.*tenure columns replace"):
            await asyncio.wait_for(node.wait(), DEADLINE_SECONDS)
        assert not node.has_ring


async def test_what_a_full_disk_does_not_take_of_counters_is_kept_when_it_has_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the next news would be kept, which may never come."""
    nodes = settings_of(tmp_path, 2)
    form_ring(nodes, MAIL)
    keep, refused = NodeDirectory.keep_known, 0

    def has_no_room(_: NodeDirectory, known: object) -> None:
        nonlocal refused
        refused += 1
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(NodeDirectory, "keep_known", has_no_room)
    async with running(nodes) as (one, other):
        await until(lambda: 0 < one.store.promises == counter_of(one, other))
        before = refused
        await until(lambda: refused > before + 4)  # both go on trying
        monkeypatch.setattr(NodeDirectory, "keep_known", keep)
        own = one.directory.identity.node, one.store.promises
        await until(lambda: own in [(each.node, each.promises) for each in other.directory.known()])


async def test_changes_raise_the_counter_without_a_promise(tmp_path: Path) -> None:
    [settings] = settings_of(tmp_path, 1)
    form_ring([settings], MAIL)
    async with running([settings]) as [node]:
        await until(lambda: node.store.promises == 1)  # a life has begun
        node.store.count_changes()
        assert node.store.replica.promises == 1
        await write(node, b"Ann")
        node.store.count_changes()
        await until(lambda: node.store.promises == 2)
    async with running([settings]) as [node]:
        await until(lambda: node.store.promises == 3)
        assert await read(node) == b"Ann"
