"""The same, with threads and real sockets: everything blocks."""

import sys
import time
from threading import Thread

import pytest

from tenure import MISSING, Cache, CacheServer, Unreachable, UsageError, Volume


def test_with_threads_over_websocket() -> None:
    rows = {"a": "old"}

    def store(key: str, value: str, fence: int) -> None:
        assert fence == 1
        rows[key] = value

    volume = Volume(rows.get, store, value_type=str, term=0.2)
    with (
        CacheServer(volume, listen="127.0.0.1:0") as server,
        Cache(server.url, value_type=str) as one,
        Cache(server.url, value_type=str) as other,
    ):
        assert [one.get("a"), other.get("a"), one.get("z")] == ["old", "old", None]
        assert [one.peek("a"), one.peek("z")] == ["old", None]
        with volume.write("a") as write:
            assert write.fence == 1
            assert [one.peek("a"), other.peek("a")] == [MISSING, MISSING]
            rows["a"] = "new"
        assert other.get("a") == "new"
        other.write("a", "newer")
        assert one.get("a") == "newer"
        rows["a"] = "by somebody"
        _ = volume.changed("a")
        assert one.get("a") == "by somebody"
        seen = one.proof("a")
        assert seen is not None
        other.saw("a", seen.as_of)
        assert one.stats()["hits"] == 2
    assert rows == {"a": "by somebody"}


def test_many_threads_share_few_fetches() -> None:
    loads = []

    def load(key: str) -> str:
        loads.append(key)
        time.sleep(0.05)
        return key.upper()

    found: list[str | None] = []
    with (
        CacheServer(Volume(load, value_type=str), listen="127.0.0.1:0") as server,
        Cache(server.url, value_type=str) as cache,
    ):
        threads = [Thread(target=lambda: found.append(cache.get("a"))) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == ["A"] * 20
    assert len(loads) <= 2  # those that came while it was read share the next


def test_stats_may_be_asked_for_while_entries_come_and_go() -> None:
    """A thread that does not read may ask: nobody loops over anything that the library's thread
    changes.
    """

    def read_others() -> None:
        for number in range(1_000):
            cache.get(f"another {number}")

    interval = sys.getswitchinterval()
    volume = Volume(str.upper, value_type=str)
    with (
        CacheServer(volume, listen="127.0.0.1:0") as server,
        Cache(server.url, value_type=str, limit=300) as cache,
    ):
        reader = Thread(target=read_others)
        sys.setswitchinterval(1e-6)
        try:
            reader.start()
            while reader.is_alive():
                assert 0 <= cache.stats()["live"] <= 301
        finally:
            sys.setswitchinterval(interval)
            reader.join()
        assert cache.stats()["live"] == cache.stats()["entries"] == 300


def test_a_port_where_nobody_listens() -> None:
    with (
        Cache("http://127.0.0.1:1", value_type=str, patience=0.3) as cache,
        pytest.raises(Unreachable, match=r"'a' was not read.*127\.0\.0\.1:1: connection refused"),
    ):
        cache.get("a")


async def _entering_in_a_loop() -> None:
    with Cache("http://127.0.0.1:1", value_type=str):
        pass


@pytest.mark.asyncio
async def test_the_blocking_form_does_not_block_a_loop() -> None:
    with pytest.raises(UsageError, match="async with Cache"):
        await _entering_in_a_loop()
