"""The disk of a store of entities fills up, and has room again: the store goes on by itself."""

import asyncio
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from subprocess import run

import msgspec
import pytest

from lab.contracts.entity_store import lease, put
from tenure import StoreAway, StoreFailed
from tenure.protocol.entity.envelope import Envelope
from tenure.stores.opening import EntityStore, store_for
from tests.patience import DEADLINE_SECONDS

pytestmark = pytest.mark.asyncio
_encode = msgspec.msgpack.encode


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 32 MiB, if this user may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(place)]
    if shutil.which("mount") is None or run(mount, check=False, capture_output=True).returncode:
        pytest.skip("to mount a small disk takes a right")
    yield place
    run(["umount", str(place)], check=True)


def fill(filler: Path) -> None:
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass


async def loaded(store: EntityStore, key: str) -> Envelope:
    """What is kept, as soon as the store has noticed that there is room."""
    async with asyncio.timeout(2 * DEADLINE_SECONDS):
        while True:
            with suppress(StoreAway):
                return await store.load(key, lease(3))


@pytest.mark.parametrize("kind", ["sqlite", "rocksdb"])
async def test_a_full_disk_keeps_a_commit_whole_or_not_at_all(kind: str, disk: Path) -> None:
    store = await store_for(f"{kind}:{disk / 'store'}")("counters", "hashed")
    stored = await put(store, "a", lease(3), Envelope(3, 7, _encode({"value": 0})))
    await put(store, "b", lease(3), Envelope(3, 7, _encode({"value": 0})))
    await asyncio.to_thread(fill, disk / "filler")
    sent = 0
    while not store.is_away:  # what the store has reserved is used up first
        sent += 1
        large = Envelope(3, 7, _encode({"value": sent, "rest": os.urandom(100_000)}))
        with suppress(StoreFailed):
            stored = await store.save("a", lease(3), stored, large)
    if kind == "rocksdb":  # a file of SQLite has room for little things
        with pytest.raises(StoreAway):
            await store.look("b")
    (disk / "filler").unlink()
    found = await loaded(store, "a")
    value = msgspec.msgpack.decode(found.state)["value"]
    assert value in {sent - 1, sent}
    again = await store.load("a", lease(4))
    assert again.state == found.state
    last = Envelope(4, 7, _encode({"value": -1}))
    await store.save("a", lease(4), again, last)
    await store.look("a")
    await store.close()
    reopened = await store_for(f"{kind}:{disk / 'store'}")("counters", "hashed")
    assert (await reopened.load("a", lease(5))).state == last.state
    assert (await reopened.load("b", lease(5))).state == _encode({"value": 0})
    await reopened.close()
