"""Passwords that stand in URLs: whatever is wrong with the URL, nothing that we say shows one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tenure.base.origin import parse
from tenure.cache.cache import checked_server
from tenure.cli.columns_stores import path_of_url
from tenure.cli.serve import ServeOptions, serve
from tenure.client.arguments import checked_told_address
from tenure.client.managers import manager_urls
from tenure.columns.opening import open_store
from tenure.columns.tables import Family, Table
from tenure.errors import ConfigurationError, TenureError
from tenure.fencing.databases import PostgresDatabase
from tenure.journals import open_journal
from tenure.manager.config import check_url
from tenure.services.documents.client import DocumentsClient
from tenure.stores.opening import store_for
from tenure.wire.lease_records import LEASE_RECORDS

SHOWN_NOWHERE = "hunter2"
POSTGRES = [
    "app:hunter2@127.0.0.1:1/chat?unknown=1",
    "app:hunter2%zz@127.0.0.1:1/chat",
    "app:p@hunter2@127.0.0.1:1/chat",
    "app:p/hunter2@127.0.0.1:1/chat",
    "app:p@q/hunter2@127.0.0.1:1/chat",
    "app:p?q@hunter2@127.0.0.1:1/chat",
    "app:hunter2",
    "app:hunter2@[::1/chat",
    "127.0.0.1:1/chat?password=hunter2&unknown=1",
    "127.0.0.1:1/chat?passwd=hunter2",
]
OTHERS = [
    "mysql://app:hunter2@db/chat",
    "postgresql+asyncpg://app:hunter2@db/chat",
    "postgresql:app:hunter2@db/chat",
    "cassandra:app:hunter2@db",
    "cassandra:app:hunter2@db/chat",
    "cassandra:app:p,hunter2@db/chat",
    "columns:http://app:p,hunter2:3@n1:7500",
    "columns:http://app:hunter2@n1:7500",
]
HTTP = [
    "http://app:p,http://hunter2:3@db",
    "http://app:hunter2#@db",
    "http://app:hunter2@127.0.0.1:1",
    "htp://app:hunter2@db",
    "app:hunter2@db",
]
TABLE = Table("mail", state=Family(columns=str))


def not_shown(tried: Callable[[], object], secret: str = SHOWN_NOWHERE) -> str:
    """What it says, which does not show the secret; an error before may."""
    with pytest.raises(TenureError) as raised:
        tried()
    assert secret not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("rest", POSTGRES)
def test_a_database_that_cannot_be_named_shows_no_password(rest: str) -> None:
    assert "PostgreSQL" in not_shown(lambda: store_for(f"postgresql://{rest}"))


@pytest.mark.parametrize("url", OTHERS)
def test_a_store_that_is_none_shows_no_password(url: str) -> None:
    not_shown(lambda: open_store(url, TABLE))
    not_shown(lambda: path_of_url(url))


@pytest.mark.parametrize("url", OTHERS[:3])
def test_a_store_of_entities_that_is_none_shows_no_password(url: str) -> None:
    not_shown(lambda: store_for(url))


@pytest.mark.parametrize("url", HTTP)
def test_no_server_is_asked_at_a_url_with_a_password(url: str) -> None:
    for check in (
        manager_urls,
        checked_server,
        DocumentsClient,
        lambda given: check_url("--others", given),
        lambda given: parse(given, "--route"),
    ):
        not_shown(lambda check=check: check(url))  # type: ignore[misc]


@pytest.mark.parametrize("url", HTTP[3:])
def test_an_address_that_is_none_shows_no_password(url: str) -> None:
    not_shown(lambda: checked_told_address(url))


@pytest.mark.parametrize(
    "url", ["etcd:http://h:1?user=a&password=hunter2", "etcd:http://h:1?hunter2", "etc:a:hunter2@h"]
)
def test_a_journal_shows_no_password(url: str) -> None:
    not_shown(lambda: open_journal(url, LEASE_RECORDS))


def test_where_a_database_is_has_no_password_in_it() -> None:
    url = "postgresql://app:hunter2@db:5432/chat?sslpassword=hunter2"
    assert PostgresDatabase(url).name == "postgresql://db/chat"


def test_a_service_warns_of_a_password_on_its_command_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Every user of a host can read the command lines of all processes."""
    for options in ("?connect_timeout=1", "?password=hunter2"):
        caplog.clear()
        user = "" if "password" in options else "app:hunter2@"
        store = f"postgresql://{user}127.0.0.1:1/chat{options}"
        with pytest.raises(TenureError) as raised:
            serve("documents", options=ServeOptions(manager=["http://127.0.0.1:1"], store=store))
        assert "passfile" in caplog.messages[0]
        assert SHOWN_NOWHERE not in caplog.text + str(raised.value)


def test_a_service_says_nothing_of_a_password_that_is_elsewhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = f"postgresql://app@127.0.0.1:1/chat?passfile={tmp_path}/pgpass"
    with pytest.raises((TenureError, ConfigurationError)):
        serve("documents", options=ServeOptions(manager=["http://127.0.0.1:1"], store=store))
    assert "passfile" not in caplog.text
