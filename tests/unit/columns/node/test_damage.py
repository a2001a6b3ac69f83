"""A node whose disk has lost something: what it does with its directory, and when it stays."""

import asyncio
from pathlib import Path
from random import Random

import msgspec
import pytest

from tenure import Family, Table
from tenure.cli.asking import ask
from tenure.columns.node.node_directory import (
    IDENTITY,
    KNOWN,
    ROWS,
    TOPOLOGY,
    NodeDirectory,
    NodeIdentity,
    StorePutBack,
)
from tenure.columns.node.node_lives import NodeLives
from tenure.columns.opening import open_store
from tenure.errors import StoreDamaged
from tenure.protocol.topology.answers import RingRead, ScrubSeen, UpkeepRead
from tests.patience import DEADLINE_SECONDS, until
from tests.unit.columns.node.managed import managed
from tests.unit.columns.node.ringed import CLUSTER, form_ring, settings_of

MAIL = Table("mail", profile=Family(columns=str))


def directory_of(place: Path) -> NodeDirectory:
    """A node's directory, with files in it."""
    found = NodeDirectory.open(place, "mail", Random(1))
    found.begin_life()
    (place / ROWS).mkdir()
    for name in (TOPOLOGY, KNOWN, f"{ROWS}/000011.sst"):
        (place / name).write_text(name)
    return found


def names(place: Path) -> set[str]:
    return {str(each.relative_to(place)) for each in place.rglob("*") if each.is_file()}


def test_a_damaged_node_moves_all_files_aside_and_becomes_another(tmp_path: Path) -> None:
    node = directory_of(tmp_path)
    before = node.identity
    all_of_it = {name: (tmp_path / name).read_bytes() for name in names(tmp_path)}
    aside = node.begin_anew(Random(2))
    assert {name: (aside / name).read_bytes() for name in names(aside)} == all_of_it
    assert names(tmp_path) - {f"{aside.name}/{name}" for name in all_of_it} == {IDENTITY}
    now = NodeDirectory.open(tmp_path, "mail", Random(3)).identity
    assert now.node not in (0, before.node)
    assert (now.replaces, now.replaced_proof) == (before.node, before.proof)
    assert now.proof != before.proof
    assert now.damages == 1


@pytest.mark.parametrize("refused", [ROWS, TOPOLOGY, KNOWN])
def test_a_move_that_was_interrupted_is_finished_by_the_next_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    node = directory_of(tmp_path)
    expected, rename = names(tmp_path), Path.rename

    def ends(path: Path, to: Path) -> Path:
        if path.name == refused:
            raise KeyboardInterrupt
        return rename(path, to)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", ends)
        with pytest.raises(KeyboardInterrupt):
            node.begin_anew(Random(2))
    again = NodeDirectory.open(tmp_path, "mail", Random(3))
    [aside] = tmp_path.glob("damaged-*")
    assert names(aside) == expected
    assert not (tmp_path / ROWS).exists()
    assert again.identity.aside == ""
    assert again.topology() is None


def test_what_is_damaged_before_it_is_mended_is_left_alone(tmp_path: Path) -> None:
    node = directory_of(tmp_path)
    node.begin_anew(Random(2))
    before = names(tmp_path)
    with pytest.raises(StoreDamaged, match=r"damaged again.*on another disk"):
        node.begin_anew(Random(3))
    assert names(tmp_path) == before


@pytest.mark.asyncio
async def test_a_node_without_managers_leaves_its_damaged_files_where_they_are(
    tmp_path: Path,
) -> None:
    [settings] = settings_of(tmp_path, 1)
    form_ring([settings], MAIL)
    (settings.data / TOPOLOGY).write_bytes(b"damaged")
    before = names(settings.data)
    with pytest.raises(StoreDamaged, match="its checksum does not match"):
        async with NodeLives(settings):
            pass
    assert before <= names(settings.data)
    assert not [*settings.data.glob("damaged-*")]


@pytest.mark.asyncio
async def test_a_directory_that_was_put_back_is_not_taken_for_damage(tmp_path: Path) -> None:
    [settings] = settings_of(tmp_path, 1)
    form_ring([settings], MAIL)
    settings = msgspec.structs.replace(settings, managers=("http://127.0.0.1:1",))
    async with NodeLives(settings) as node:
        assert node.service is not None
        node.service.on_failed(StorePutBack("put back"))
        with pytest.raises(StorePutBack):
            await node.wait()
    assert not [*settings.data.glob("damaged-*")]


@pytest.mark.asyncio
async def test_the_last_copy_is_shown_and_stays(tmp_path: Path) -> None:
    async with managed(tmp_path, 1) as [node], open_store(f"columns:{node.url}", MAIL) as store:
        await store.insert(MAIL, "ann", {"profile": {"name": b"Ann"}})
        node.store.on_refused(StoreDamaged("a block of 000011.sst"))

        async def is_shown() -> bool:
            return bool((await shown(node.settings.managers))[0])

        async with asyncio.timeout(DEADLINE_SECONDS):
            await until(is_shown)
            for _ in range(3):  # and the manager has answered, more than once
                node._poke()
                await asyncio.sleep(0.4)
        assert await shown(node.settings.managers) == ["a block of 000011.sst"]
        [scrub] = await scrubs(node.settings.managers)
        assert (scrub.damages, scrub.mended) == (1, 0)
        assert await store.get(MAIL, "ann", "profile", "name")
        assert not node._failed.done()
    identity = msgspec.json.decode((node.settings.data / IDENTITY).read_bytes(), type=NodeIdentity)
    assert identity.replaces == 0


async def scrubs(managers: tuple[str, ...]) -> tuple[ScrubSeen, ...]:
    """What the manager shows of how each node reads its files."""
    reply = await asyncio.to_thread(ask, [*managers], f"/v1/clusters/{CLUSTER}/upkeep")
    return reply.read(UpkeepRead).scrubs


async def shown(managers: tuple[str, ...]) -> list[str]:
    """What the manager shows of the damage of each node."""
    reply = await asyncio.to_thread(ask, [*managers], f"/v1/clusters/{CLUSTER}/ring")
    return [node.damage for node in reply.read(RingRead).nodes]
