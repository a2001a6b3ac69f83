"""The disk of the default journal fills up, and has room again: the manager goes on by itself."""

import os
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import run

import pytest

from tenure.runtime.clock import boot_clock
from tests.integration.failover.stage import Stage, on_sqlite
from tests.integration.failover.traffic import Traffic

pytestmark = pytest.mark.asyncio


@contextmanager
def no_file_may_be_written(stage: Stage) -> Iterator[None]:
    """The system refuses these managers every write to a file, as at the end of a quota."""
    pids = [each.process.pid for each in stage.managers]
    for pid in pids:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    yield
    for pid in pids:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)


@contextmanager
def no_space_is_left(directory: Path) -> Iterator[None]:
    """Somebody else's file takes all that the file system has."""
    filler = directory / "filler"
    with filler.open("wb", buffering=0) as file:
        while os.statvfs(directory).f_bavail:
            file.write(bytes(4096))
    yield
    filler.unlink()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a file system of 4 MiB, if this user may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)]
    if shutil.which("mount") is None or run(mount, check=False, capture_output=True).returncode:
        pytest.skip("to mount a small disk takes a right; the test beside this one takes none")
    yield place
    run(["umount", str(place)], check=True)


async def goes_on(stage: Stage, traffic: Traffic) -> None:
    await traffic.renewed(boot_clock())
    await traffic.have_served()
    traffic.check_unharmed()
    await traffic.newcomer()
    assert "cannot be written" in "".join(each.log for each in stage.managers)
    assert not any(each.has_ended for each in stage.managers)


async def test_nothing_can_be_written_for_a_while(tmp_path: Path) -> None:
    """The leader falls silent, and no other can lead either; then they go on."""
    async with on_sqlite(tmp_path) as stage, stage.traffic() as traffic:
        with no_file_may_be_written(stage):
            await traffic.is_left_alone()
        await goes_on(stage, traffic)


async def test_the_disk_is_full_for_a_while(small_disk: Path) -> None:
    async with on_sqlite(small_disk) as stage, stage.traffic() as traffic:
        with no_space_is_left(small_disk):
            await traffic.is_left_alone()
        await goes_on(stage, traffic)
