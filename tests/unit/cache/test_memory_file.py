"""A server leaves a memory for the next one, which decides how long that one waits (V16)."""

import asyncio
import errno
import os
import stat
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tenure import MISSING, CacheServer, ConfigurationError, TenureError, Volume
from tenure.cache import cache_server
from tenure.cache.memory_file import MAGIC, MemoryFile
from tenure.protocol.volume.server.events import VolumeMemory
from tests.patience import DEADLINE_SECONDS
from tests.unit.cache.stage import Stage, stage

MEMORY = VolumeMemory(number=7, longest_ns=3)


def written(path: Path, memory: VolumeMemory = MEMORY) -> bytes:
    file = MemoryFile(path)
    assert file.open() is None
    file.write(memory)
    file.close()
    return path.read_bytes()


def test_what_was_written_is_read(tmp_path: Path) -> None:
    written(tmp_path / "v")
    file = MemoryFile(tmp_path / "v")
    assert file.open() == MEMORY
    file.close()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["v", "v.lock"]


def test_every_damaged_byte_is_noticed(tmp_path: Path) -> None:
    data = written(tmp_path / "v")
    newer = 0
    for i in range(len(data)):
        bad = bytearray(data)
        bad[i] ^= 0x11
        (tmp_path / "v").write_bytes(bad)
        with pytest.raises(ConfigurationError, match=r"damaged.*no copy|of version") as caught:
            MemoryFile(tmp_path / "v").open()
        newer += "of version" in str(caught.value)
    assert newer <= 1
    for i in range(len(data)):
        (tmp_path / "v").write_bytes(data[:i])
        with pytest.raises(ConfigurationError, match="damaged"):
            MemoryFile(tmp_path / "v").open()


@pytest.mark.parametrize(
    "data",
    [
        MAGIC + b"1\n" + zlib.crc32(b"\xc1").to_bytes(4, "big") + b"\xc1",
        MAGIC + b"9" * 5000 + b"\n",
    ],
)
def test_one_that_no_tenure_wrote_is_damaged(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "v").write_bytes(data)
    with pytest.raises(ConfigurationError, match="damaged"):
        MemoryFile(tmp_path / "v").open()


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_not_a_file_is_told(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """Whoever reads a pipe waits until somebody writes to it."""
    make(tmp_path / "v")
    with pytest.raises(ConfigurationError, match="it is not a file"):
        MemoryFile(tmp_path / "v").open()


def test_one_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    for one, other in (("v", "w"), ("w", "v")):
        (tmp_path / one).symlink_to(tmp_path / other)
    with pytest.raises(ConfigurationError, match="symbolic links"):
        MemoryFile(tmp_path / "v").open()


def test_what_was_written_outlasts_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file, and the name under which it is found."""
    synced: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda of: synced.append(stat.S_ISDIR(os.fstat(of).st_mode)))
    written(tmp_path / "v")
    assert synced == [False, True]


def test_a_newer_one_is_not_touched(tmp_path: Path) -> None:
    data = written(tmp_path / "v").replace(b"volume 1", b"volume 2")
    (tmp_path / "v").write_bytes(data)
    with pytest.raises(ConfigurationError, match="of version 2, and this tenure knows 1"):
        MemoryFile(tmp_path / "v").open()
    assert (tmp_path / "v").read_bytes() == data


def test_one_that_another_server_uses(tmp_path: Path) -> None:
    file = MemoryFile(tmp_path / "v")
    file.open()
    with pytest.raises(ConfigurationError, match="another server uses it"):
        MemoryFile(tmp_path / "v").open()
    file.close()
    other = MemoryFile(tmp_path / "v")
    other.open()
    other.close()


def test_one_that_another_server_knows_by_another_name(tmp_path: Path) -> None:
    """Two servers would give leases without knowing of each other (V16)."""
    written(tmp_path / "v")
    (tmp_path / "link").symlink_to(tmp_path / "v")
    file = MemoryFile(tmp_path / "link")
    found = file.open()
    assert found is not None
    with pytest.raises(ConfigurationError, match="another server uses it"):
        MemoryFile(tmp_path / "v").open()
    later = msgspec.structs.replace(found, number=found.number + 1)
    file.write(later)
    file.close()
    assert (tmp_path / "link").is_symlink()
    file = MemoryFile(tmp_path / "v")
    assert file.open() == later
    file.close()


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file or directory"):
        MemoryFile(tmp_path / "no" / "v").open()


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_on_a_full_disk_the_old_one_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = written(tmp_path / "v")
    file = MemoryFile(tmp_path / "v")
    file.open()
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ConfigurationError, match="No space left on device"):
        file.write(VolumeMemory(number=8, longest_ns=3))
    file.close()
    assert (tmp_path / "v").read_bytes() == data
    assert sorted(each.name for each in tmp_path.iterdir()) == ["v", "v.lock"]


# --- servers one after the other ---


async def entered(it: Stage, volume: Volume[Any], **options: Any) -> CacheServer:  # noqa: ANN401
    """A server, by the turned clock; its file is written on a thread, which is waited for."""
    server = it.server(volume, **options)
    entering = asyncio.ensure_future(server.__aenter__())
    await settled(it, entering)
    return server


async def settled(it: Stage, task: "asyncio.Future[Any]") -> None:
    until = time.monotonic() + DEADLINE_SECONDS
    while not task.done() and time.monotonic() < until:
        await it.turn(0)
    await task


async def waits(it: Stage, volume: Volume[Any]) -> float:
    """Return for how many seconds a write waits now."""
    entering = asyncio.ensure_future(volume.changed("a"))
    for tenths in range(100):
        await it.turn(0)
        if entering.done():
            return tenths / 10
        await it.turn(0.1)
    raise AssertionError("it waits for more than 10 s")


@pytest.mark.asyncio
async def test_after_a_drained_close_nobody_waits(tmp_path: Path) -> None:
    async with stage() as it:
        for waited in (3.3, 0.0, 0.0):
            volume = it.volume()
            server = await entered(it, volume, memory=tmp_path / "v")
            assert await waits(it, volume) == waited
            await settled(it, asyncio.ensure_future(_closed(server)))


async def _closed(server: CacheServer) -> None:
    await server.close()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("first", "then", "waited"),
    [
        ({}, {}, 3.3),  # the longest term that was ever given, and a twelfth
        ({"term": 6}, {}, 6.5),
        ({}, {"term": 6}, 6.5),
    ],
)
async def test_after_a_crash_the_next_one_waits_for_every_lease(
    tmp_path: Path, first: dict[str, Any], then: dict[str, Any], waited: float
) -> None:
    async with stage() as it:
        server = await entered(it, it.volume(**first), memory=tmp_path / "v")
        cache = await it.enter()
        assert await cache.get("a") == "old"
        it.cluster.crash(server)  # type: ignore[arg-type]
        await it.turn(0)
        volume = it.volume(**then)
        again = await entered(it, volume, memory=tmp_path / "v")
        assert cache.peek("a") == "old"  # by a lease of the server that is gone
        assert await waits(it, volume) == waited
        assert cache.peek("a") is MISSING
        await settled(it, asyncio.ensure_future(_closed(again)))


@pytest.mark.asyncio
async def test_with_the_latest_end_the_next_one_waits_until_that(tmp_path: Path) -> None:
    async with stage() as it:
        options: dict[str, Any] = {"memory": tmp_path / "v", "remembers": "latest end"}
        server = await entered(it, it.volume(), **options)
        it.cluster.crash(server)  # type: ignore[arg-type]
        await it.turn(2)
        volume = it.volume()
        again = await entered(it, volume, **options)
        assert await waits(it, volume) <= 3.3
        await settled(it, asyncio.ensure_future(_closed(again)))


@pytest.mark.asyncio
@pytest.mark.parametrize(("boot", "waited"), [("this one", 2.0), ("another", 3.3)])
async def test_an_end_of_leases_counts_from_one_start_of_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, boot: str, waited: float
) -> None:
    """The file may come from another host, or from before a restart: then 13 s is no instant."""
    monkeypatch.setattr(cache_server, "BOOT_ID", tmp_path / "boot_id")
    (tmp_path / "boot_id").write_text("this one\n")
    async with stage() as it:
        options: dict[str, Any] = {"memory": tmp_path / "v", "remembers": "latest end"}
        server = await entered(it, it.volume(), **options)
        it.cluster.crash(server)  # type: ignore[arg-type]
        await it.turn(11)
        (tmp_path / "boot_id").write_text(f"{boot}\n")
        volume = it.volume()
        again = await entered(it, volume, **options)
        assert await waits(it, volume) == waited
        await settled(it, asyncio.ensure_future(_closed(again)))


@pytest.mark.asyncio
async def test_without_memory_the_longest_term_is_waited_for_that_any_server_had() -> None:
    async with stage() as it:
        volume = it.volume()
        server = await entered(it, volume, longest=6)
        assert await waits(it, volume) == 6.5
        await settled(it, asyncio.ensure_future(_closed(server)))


@pytest.mark.asyncio
async def test_the_store_is_fenced_before_the_first_load(tmp_path: Path) -> None:
    """V14: and a memory that was put back is noticed by the store's number."""
    async with stage() as it:
        fence, copy = Fence(), b""
        for number in (1, 2, 3):
            server = await entered(it, it.volume(), memory=tmp_path / "v", fence=fence)
            assert fence.number == number
            if number == 1:
                copy = (tmp_path / "v").read_bytes()
            await settled(it, asyncio.ensure_future(_closed(server)))
        (tmp_path / "v").write_bytes(copy)
        volume = it.volume()
        server = await entered(it, volume, memory=tmp_path / "v", fence=fence)
        assert fence.number == 4
        assert server.stats()["memory went back"] == 1
        assert await waits(it, volume) == 3.3
        await settled(it, asyncio.ensure_future(_closed(server)))


class Fence:
    """A store that refuses lower numbers."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, number: int) -> int:
        before, self.number = self.number, max(self.number, number)
        return before


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("fence", "why"),
    [
        (lambda number: 1 // (number - 1), "ZeroDivisionError"),
        (lambda number: None if number else 0, "fence returned None; it must return the highest"),
        (lambda _: True, "fence returned True; it must return the highest"),
        (lambda _: -1, "fence returned -1; it must return the highest"),
        (lambda _: 1 << 62, f"fence returned {1 << 62}; it must return the highest"),
        (lambda number: number, r"fence\(11\) returned 11, and so each time"),
    ],
)
async def test_a_store_that_cannot_be_fenced_is_not_served(
    tmp_path: Path, fence: Callable[[int], object], why: str
) -> None:
    async with stage() as it:
        with pytest.raises(TenureError, match=why):
            await entered(it, it.volume(), memory=tmp_path / "v", fence=fence)


@pytest.mark.asyncio
async def test_a_memory_that_cannot_be_used_is_not_served(tmp_path: Path) -> None:
    async with stage() as it:
        (tmp_path / "v").write_bytes(b"no memory")
        with pytest.raises(ConfigurationError, match="is damaged"):
            await entered(it, it.volume(), memory=tmp_path / "v")
        with pytest.raises(ConfigurationError, match="No such file"):
            await entered(it, it.volume(), memory=tmp_path / "no" / "v")


@pytest.mark.asyncio
async def test_a_full_disk_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", full)
    async with stage() as it:
        with pytest.raises(ConfigurationError, match="No space left on device"):
            await entered(it, it.volume(), memory=tmp_path / "v")


@pytest.mark.asyncio
async def test_without_a_boot_id_no_instant_of_an_earlier_life_is_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`_boot_id` names the reasons: the system does not tell the id, or the file came from
    elsewhere.
    """
    monkeypatch.setattr(cache_server, "BOOT_ID", tmp_path / "not there")
    async with stage() as it:
        options: dict[str, Any] = {"memory": tmp_path / "v", "remembers": "latest end"}
        server = await entered(it, it.volume(), **options)
        it.cluster.crash(server)  # type: ignore[arg-type]
        await it.turn(11)
        volume = it.volume()
        again = await entered(it, volume, **options)
        assert await waits(it, volume) == 3.3
        await settled(it, asyncio.ensure_future(_closed(again)))
