"""A node reads all that it has, slowly, and so finds what its disk has lost."""

import asyncio
from pathlib import Path

import pytest

from tenure.cli.app import run
from tenure.cli.columns_stores import looked_at
from tenure.columns.engines.contract import StorageEngine
from tenure.columns.engines.memory import MemoryEngine
from tenure.columns.engines.rocksdb import RocksEngine
from tenure.columns.node.node_directory import ROWS
from tenure.columns.node.scrub import PAUSE_SECONDS, PIECE_BYTES, Scrub
from tenure.columns.opening import open_store
from tenure.columns.spaces import space
from tenure.columns.tables import Family, Table
from tenure.errors import StoreDamaged, StoreError
from tests.patience import DEADLINE_SECONDS
from tests.unit.columns.node.ringed import form_ring, running, settings_of

pytestmark = pytest.mark.asyncio
MAIL = Table("mail", profile=Family(columns=str))
MARK = b"to be found in the file"
AT_ONCE = 1 << 40


def raise_it(error: StoreError) -> None:
    raise error


async def until_refused(engine: StorageEngine) -> None:
    refused: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    scrub = Scrub(engine, AT_ONCE, refused.set_exception)
    scrub.start()
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            await refused
    finally:
        await scrub.stop()


def damage(rows: Path) -> None:
    """Change a byte of a value in a file that RocksDB has written."""
    [(file, place)] = [
        (file, found) for file in rows.glob("*.sst") if (found := file.read_bytes().find(MARK)) > 0
    ]
    with file.open("r+b") as opened:
        opened.seek(place)
        opened.write(b"T")


class Sleeps:
    """Stands for the sleeps of a scrub: none takes time, but the pause after a pass has no end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.slept: list[float] = []
        self._is_read = asyncio.Event()
        self._sleep = asyncio.sleep
        monkeypatch.setattr("tenure.columns.node.scrub.asyncio.sleep", self._sleeps)

    async def _sleeps(self, seconds: float) -> None:
        if seconds == PAUSE_SECONDS:
            self._is_read.set()
            await asyncio.Event().wait()
        self.slept.append(seconds)
        await self._sleep(0)

    async def read(self, engine: StorageEngine, rate: int) -> Scrub:
        """Have all of it read once."""
        scrub = Scrub(engine, rate, raise_it)
        scrub.start()
        async with asyncio.timeout(DEADLINE_SECONDS):
            await self._is_read.wait()
        assert scrub.passes == 1
        await scrub.stop()
        return scrub


async def test_everything_is_read_at_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, sleeps = MemoryEngine(), Sleeps(monkeypatch)
    engine.make_spaces(["a", "b"])
    values = [("a", b"%04d" % n, bytes(1_000)) for n in range(100)]
    engine.apply([*values, ("b", b"k", b"v")])
    scrub = await sleeps.read(engine, 1_000)
    assert scrub.entries == 101
    assert sum(sleeps.slept) == pytest.approx((100 * 1_004 + 2) / 1_000)
    assert max(sleeps.slept) * 1_000 <= PIECE_BYTES + 1_004


async def test_what_nobody_reads_is_found_to_be_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = RocksEngine.open(tmp_path)
    engine.make_spaces(["t"])
    engine.apply([("t", b"%04d" % n, b"%04d" % n * 200) for n in range(500)])
    engine.apply([("t", b"0250", MARK * 40)])
    engine.flush()
    with monkeypatch.context() as patched:
        await Sleeps(patched).read(engine, AT_ONCE)
    engine.close()
    damage(tmp_path)
    engine = RocksEngine.open(tmp_path)
    assert engine.get("t", [b"0001"]) == [b"0001" * 200], "other blocks can be read"
    with pytest.raises(StoreDamaged, match="sst"):
        await until_refused(engine)
    engine.close()


async def test_a_node_finds_what_its_disk_has_lost_without_a_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.columns.node.scrub.PAUSE_SECONDS", 0.01)
    [settings] = settings_of(tmp_path, 1)
    form_ring([settings], MAIL)
    async with running([settings]) as [service]:
        async with open_store(f"columns:{service.url}", MAIL) as store:
            for number in range(300):
                value = MARK * 40 if number == 150 else b"%04d" % number * 200
                await store.insert(MAIL, f"u{number:03}", {"profile": {"n": value}})
        assert service._storage is not None
        service._storage.flush()
        is_damaged = asyncio.Event()
        service._disk.on_damaged = is_damaged.set
        damage(settings.data / ROWS)
        async with asyncio.timeout(DEADLINE_SECONDS):
            await is_damaged.wait()
        assert ".sst" in service._disk.damage


async def test_the_files_of_a_node_can_be_checked(tmp_path: Path) -> None:
    [settings] = settings_of(tmp_path, 1)
    form_ring([settings], MAIL)
    async with (
        running([settings]) as [service],
        open_store(f"columns:{service.url}", MAIL) as store,
    ):
        await store.insert(MAIL, "ann", {"profile": {"n": b"Ann"}})
    url = f"rocksdb:{settings.data / ROWS}"
    assert await asyncio.to_thread(run, ["columns", "check", url]) == 0
    async with looked_at(url) as replica:
        replica.engine.apply([(space("mail", "profile"), b"stray", b"v")])
    assert await asyncio.to_thread(run, ["columns", "check", url]) == 1
