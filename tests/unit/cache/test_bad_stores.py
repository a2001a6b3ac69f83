"""A `load` or a `store` blocks, or a disk fills up: some wait for that, and others do not."""

import asyncio
import errno
import logging
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tenure import (
    MISSING,
    Busy,
    Cache,
    CacheServer,
    LoadFailed,
    OutcomeUnknown,
    Unreachable,
    Volume,
)
from tenure.cache import volume_engine
from tenure.errors import LocalProtocolError
from tenure.protocol.volume.messages import Fetched, ToCache
from tenure.protocol.volume.server import write_turns
from tenure.wire.volume import encode_volume
from tests.patience import DEADLINE_SECONDS
from tests.unit.cache.stage import stage
from tests.unit.cache.test_memory_file import _closed, entered, settled

TERM = 0.3


def test_a_load_that_blocks_its_thread_holds_up_no_hits() -> None:
    """Leases are renewed in the library's thread, whatever the application's is doing."""
    gate = threading.Event()

    def load(key: str) -> str:
        if key == "stuck":
            gate.wait(DEADLINE_SECONDS)
        return key

    with (
        CacheServer(Volume(load, value_type=str, term=TERM), listen="127.0.0.1:0") as server,
        Cache(server.url, value_type=str, patience=DEADLINE_SECONDS) as cache,
        Cache(server.url, value_type=str, patience=TERM) as impatient,
        ThreadPoolExecutor() as threads,
    ):
        assert cache.get("a") == "a"
        reading = threads.submit(cache.get, "stuck")
        with pytest.raises(Unreachable, match=rf"'stuck' was not read.*{server.url}"):
            impatient.get("stuck")
        renewed = server.stats()["received"] + 10
        while server.stats()["received"] < renewed:
            assert cache.get("a") == "a"
        assert not reading.done()
        gate.set()
        assert reading.result(DEADLINE_SECONDS) == "stuck"


@pytest.mark.asyncio
async def test_a_store_that_never_returns_holds_up_its_object_only() -> None:
    """Its readers get the old value, and may not keep it (C2)."""
    async with stage() as it:
        gate = asyncio.Event()

        async def store(key: str, value: str, fence: int) -> None:
            if value == "stuck":
                await gate.wait()
            it.store(key, value, fence)

        await it.serve(it.volume(store=store))
        writer, other = await it.enter(write_patience=5), await it.enter()
        assert await other.get("a") == "old"
        writing = asyncio.ensure_future(writer.write("a", "stuck"))
        await it.turn(0.1)
        await other.write("b", "new")
        assert await other.get("b") == "new"
        assert await other.get("a") == "old"
        assert other.peek("a") is MISSING
        await it.turn(5)
        with pytest.raises(OutcomeUnknown, match="was sent, and no answer came"):
            await writing
        gate.set()
        await it.turn(0)
        assert await other.get("a") == "stuck"


@pytest.mark.asyncio
async def test_whoever_writes_too_much_is_told_that_nothing_was_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(write_turns, "WRITES", 1)
    async with stage() as it:
        volume = await it.serve()
        cache = await it.enter()
        await cache.get("a")
        async with volume.write("a"):
            with pytest.raises(Busy, match="was not begun"):
                await volume.changed("b")
            with pytest.raises(Busy, match=r"'b' was refused \(too many\); it was not begun"):
                await cache.write("b", "new")
        await cache.write("b", "new")
        assert it.rows["b"] == "new"


@pytest.mark.asyncio
async def test_an_answer_that_cannot_be_sent_ends_nothing_else(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is too large for any cache, say: the log says so, and the server goes on."""

    def encode(message: ToCache, version: int) -> bytes:
        if isinstance(message, Fetched) and b"long" in message.value:
            raise LocalProtocolError("a Fetched of 99 bytes; at most 98 are allowed")
        return encode_volume(message, version)

    async with stage() as it:
        it.rows["long"] = "long"
        await it.serve()
        cache = await it.enter(patience=1)
        monkeypatch.setattr(volume_engine, "encode_volume", encode)
        reading = asyncio.ensure_future(cache.get("long"))
        await it.turn(1.1)
        with pytest.raises(Unreachable):
            await reading
        assert await it.after(1, cache.get("a")) == "old"
        assert "not sent to a cache: a Fetched of 99 bytes" in caplog.text


# --- a disk that is full ---


class Disk:
    """Its last byte is taken, and freed again."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_full = False
        self.failed = threading.Event()
        sync = os.fsync

        def fsync(file: int) -> None:
            if self.is_full:
                self.failed.set()
                raise OSError(errno.ENOSPC, "No space left on device")
            sync(file)

        monkeypatch.setattr("os.fsync", fsync)


@pytest.mark.asyncio
async def test_no_lease_is_given_beyond_what_a_full_disk_remembers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Reads go on without leases, and with leases once there is room again (V16)."""
    disk = Disk(monkeypatch)
    async with stage() as it:
        volume = it.volume()
        server = await entered(it, volume, memory=tmp_path / "v", remembers="latest end")
        cache = await it.enter()
        assert await cache.get("a") == "old"
        disk.is_full = True
        with caplog.at_level(logging.WARNING):
            for _ in range(20):  # four terms are written down ahead
                await it.turn(1)
                assert await it.after(1, cache.get("a")) == "old"
        assert disk.failed.is_set()
        assert cache.peek("a") is MISSING
        assert "No space left on device" in caplog.text
        disk.is_full = False
        hit: Any = MISSING
        while hit is MISSING:  # the file is written on a thread
            await it.turn(1)
            assert await it.after(1, cache.get("a")) == "old"
            hit = cache.peek("a")
        await settled(it, asyncio.ensure_future(_closed(server)))


@pytest.mark.asyncio
async def test_a_server_closes_although_its_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It closes at once; the next server does not know that this one was drained, and waits."""
    disk = Disk(monkeypatch)
    async with stage() as it:
        server = await entered(it, it.volume(), memory=tmp_path / "v")
        disk.is_full = True
        await settled(it, asyncio.ensure_future(_closed(server)))
        assert "could not remember" in caplog.text
        assert "without an answer" not in caplog.text
        disk.is_full = False
        volume = it.volume()
        again = await entered(it, volume, memory=tmp_path / "v")
        changing = asyncio.ensure_future(volume.changed("a"))
        await it.turn(3.2)
        assert not changing.done()
        await it.turn(0.1)
        await changing
        await settled(it, asyncio.ensure_future(_closed(again)))


class SaysNothing(Exception):
    """An error that fails when it is asked what it says."""

    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("error", "said"),
    [(SaysNothing(), "SaysNothing: it cannot be shown"), (OSError("\ud800"), r"OSError: \\ud800")],
)
async def test_errors_that_cannot_be_shown_or_sent_end_what_they_are_of(
    error: Exception, said: str
) -> None:
    """Otherwise the read would get no answer, and nothing could be written any more (C7)."""
    async with stage() as it:
        broken = True

        def load(key: str) -> Any:  # noqa: ANN401  # as the rows have it
            if broken:
                raise error
            return it.rows[key]

        def store(key: str, value: str, fence: int) -> None:
            raise error

        volume = await it.serve(it.volume(load=load, store=store))
        cache = await it.enter()
        with pytest.raises(LoadFailed, match=said):
            await it.after(1, cache.get("a"))
        with pytest.raises(OutcomeUnknown, match=said):
            await it.after(1, cache.write("a", "new"))
        with pytest.raises(type(error)):
            async with volume.write("a"):
                raise error
        broken = False
        async with volume.write("a"):
            it.rows["a"] = "new"
        assert await it.after(1, cache.get("a")) == "new"
