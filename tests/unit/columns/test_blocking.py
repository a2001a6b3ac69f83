"""The blocking forms: the same store and the same rows of owners, from any thread."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tenure.base.keys import hashed_key
from tenure.client.lease import Lease
from tenure.columns.blocking import BlockingOwnedRows
from tenure.columns.opening import open_store
from tenure.columns.tables import Family, Table
from tenure.errors import ClosedError, ConfigurationError, ForkedError, LeaseLost

ROOMS = Table("rooms", fenced_by="rooms", state=Family(columns=str), lines=Family(columns=int))
PLAIN = Table("plain", state=Family(columns=str))


def lease(number: int, key: str = "attic") -> Lease:
    return Lease(hashed_key(key), number, 1, "rooms")


def test_rows_of_owners_wait_and_a_former_owner_is_refused() -> None:
    with open_store("memory:", ROOMS) as store:
        former = BlockingOwnedRows(store, ROOMS).load(lease(5), "attic")
        version = former.insert({"state": {"topic": b"tea", "old": b""}})
        former.delete("state", "old")
        assert [each.name for each in former.get("state")] == ["topic"]
        present = BlockingOwnedRows(store, ROOMS).load(lease(6), "attic")
        assert present.get("state", "topic").version == version
        with pytest.raises(LeaseLost, match="newer owner"):
            former.insert({"state": {"topic": b"late"}})
        assert store.get(ROOMS, "attic", "state", "topic").value == b"tea"
        with pytest.raises(ConfigurationError, match="another key"):
            BlockingOwnedRows(store, ROOMS).load(lease(5, "cellar"), "attic")


def test_many_threads_write_and_read_one_row() -> None:
    with open_store("memory:", ROOMS) as store:
        kept = BlockingOwnedRows(store, ROOMS)

        def work(writer: int) -> None:
            row = kept.load(lease(5), "attic")
            for n in range(20):
                row.insert({"lines": {writer * 100 + n: b""}})
                assert row.get("lines", writer * 100 + n) is not None

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        assert len(kept.load(lease(5), "attic").get("lines")) == 160
        assert len(store.get(ROOMS, "attic", "lines", first=200)) == 160


def test_every_call_says_that_the_store_is_closed_or_of_another_process() -> None:
    with open_store("memory:", ROOMS, PLAIN) as store:
        rows = BlockingOwnedRows(store, ROOMS)
        row = rows.load(lease(5), "attic")
        calls: list[Callable[[], object]] = [
            lambda: store.insert(PLAIN, "k", {"state": {"x": b""}}),
            lambda: store.delete(PLAIN, "k"),
            lambda: store.get(PLAIN, "k"),
            lambda: store.warm(PLAIN, "k"),
            lambda: list(store.scan(PLAIN)),
            lambda: rows.load(lease(5), "attic"),
            lambda: row.get("state"),
            lambda: row.insert({"state": {"x": b""}}),
            row.delete,
        ]
        for call in calls:
            call()
        with pytest.MonkeyPatch.context() as child:
            child.setattr(os, "getpid", lambda: 1)
            for call in calls:
                with pytest.raises(ForkedError, match="open stores after forking"):
                    call()
    for call in calls:
        with pytest.raises(ClosedError, match="not open"):
            call()
