"""The disk of a whole cluster fills up, and has room again: it goes on by itself, and has all."""

import asyncio
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import run

import pytest

from tenure import Family, Table, open_store
from tenure.cli.demo.ports import free_ports
from tenure.columns.store import ColumnStore
from tenure.errors import NotEnoughReplicas, Overloaded, WriteUnknown
from tests.integration.columns.test_cluster import home_cluster
from tests.patience import DEADLINE_SECONDS

pytestmark = pytest.mark.asyncio
MAIL = Table("mail", profile=Family(columns=str))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a file system of 96 MiB, if this user may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", str(place)]
    if shutil.which("mount") is None or run(mount, check=False, capture_output=True).returncode:
        pytest.skip("to mount a small disk takes a right")
    yield place
    run(["umount", "-l", str(place)], check=True)


@contextmanager
def no_space_is_left(directory: Path) -> Iterator[None]:
    """Somebody else's file takes all that the file system has."""
    filler = directory / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    assert os.statvfs(directory).f_bavail == 0
    yield
    filler.unlink()


async def written(store: ColumnStore, numbers: range) -> set[int]:
    """Write rows, and return which are acknowledged."""
    inserts = (
        store.insert(MAIL, f"row-{number}", {"profile": {"name": bytes(9_000)}})
        for number in numbers
    )
    ended = await asyncio.gather(*inserts, return_exceptions=True)
    failed = {type(each) for each in ended if isinstance(each, BaseException)}
    assert failed <= {WriteUnknown, NotEnoughReplicas, Overloaded}
    pairs = zip(numbers, ended, strict=True)
    return {number for number, each in pairs if not isinstance(each, BaseException)}


async def until_written(store: ColumnStore, number: int) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not await written(store, range(number, number + 1)):
            pass


async def test_the_disk_of_all_nodes_is_full_for_a_while(small_disk: Path) -> None:
    port, *_ = free_ports(4)
    with home_cluster(small_disk / "home", port) as home:
        async with open_store(home["url"], MAIL) as store:
            known = await written(store, range(20))
            assert len(known) == 20
            for life in range(2):
                first = 1_000 * (life + 1)
                with no_space_is_left(small_disk):
                    during = await written(store, range(first, first + 3))
                    assert len(during) < 3
                    assert await store.get(MAIL, "row-0", "profile", "name")
                await until_written(store, first + 10)
                known |= during | {first + 10}
            for number in known:
                assert await store.get(MAIL, f"row-{number}", "profile", "name"), number
        for pid in home["pids"].values():
            os.kill(pid, 0)
