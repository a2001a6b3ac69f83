"""A path that is a URL is refused wherever files are named, and nothing is made."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tenure.base.file_urls import path_in
from tenure.cli.columns_stores import path_of_url
from tenure.columns.opening import open_store
from tenure.columns.tables import Family, Table
from tenure.errors import ConfigurationError
from tenure.journals import open_copy, open_journal
from tenure.stores.opening import store_for
from tenure.wire.lease_records import LEASE_RECORDS

OPENERS: dict[str, Callable[[str], object]] = {
    "entities": store_for,
    "columns": lambda url: open_store(url, Table("t", f=Family(columns=str))),
    "journal": lambda url: open_journal(url, LEASE_RECORDS),
    "copy": lambda url: open_copy(url, LEASE_RECORDS),
    "command": path_of_url,
}


@pytest.mark.parametrize(
    ("opener", "scheme"),
    [
        ("entities", "sqlite"),
        ("entities", "rocksdb"),
        ("columns", "rocksdb"),
        ("command", "rocksdb"),
        ("journal", "sqlite"),
        ("copy", "sqlite"),
    ],
)
def test_a_url_is_not_a_path(
    opener: str, scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match=f"' is not {scheme}:PATH"):
        OPENERS[opener](f"{scheme}:http://ann:secret@node:7600")
    assert not [*tmp_path.iterdir()]


def test_the_error_shows_no_password() -> None:
    with pytest.raises(ConfigurationError) as refused:
        path_in("rocksdb:http://ann:secret@node:7600")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("path", ["data", "/var/lib/data", "//var/lib/data", "C:/data", "a:b"])
def test_every_path_is_taken(path: str) -> None:
    assert path_in(f"sqlite:{path}") == path
