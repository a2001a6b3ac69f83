"""A journal is opened by its URL."""

import asyncio
from pathlib import Path

import pytest

from tenure.errors import ConfigurationError
from tenure.journals import Journal, MemoryJournal, SqliteJournal, open_journal
from tenure.protocol.lease.records import AnyRecord, State
from tenure.wire.lease_records import LEASE_RECORDS


def identity(journal: Journal[AnyRecord, State]) -> int:
    async def read_and_close() -> int:
        found = (await journal.load()).journal
        await journal.close()
        return found

    return asyncio.run(read_and_close())


def test_memory_begins_anew_each_time() -> None:
    one, two = open_journal("memory", LEASE_RECORDS), open_journal("memory", LEASE_RECORDS)
    assert isinstance(one, MemoryJournal)
    assert identity(one) != identity(two)


def test_sqlite_is_the_same_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = open_journal(f"sqlite:{tmp_path}/journal.sqlite", LEASE_RECORDS)
    assert isinstance(one, SqliteJournal)
    known = identity(one)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for path in ("journal.sqlite", "~/journal.sqlite", f"//{tmp_path}/x/../journal.sqlite"):
        assert identity(open_journal(f"sqlite:{path}", LEASE_RECORDS)) == known


@pytest.mark.parametrize(
    "url", ["", "sqlite", "sqlite:", "memory:", "redis:localhost", "/var/journal", "sqlite:a\0b"]
)
def test_any_other_url_is_refused_with_those_there_are(url: str) -> None:
    with pytest.raises(ConfigurationError, match="it is either memory") as caught:
        open_journal(url, LEASE_RECORDS)
    assert repr(url) in str(caught.value)


def test_a_home_that_is_nobodys_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no journal can be at ~nobody-has-this-name"):
        open_journal("sqlite:~nobody-has-this-name/journal.sqlite", LEASE_RECORDS)
