"""The URL of an etcd journal is read, or refused before etcd is asked anything."""

import asyncio
from pathlib import Path

import pytest

from tenure.errors import ConfigurationError
from tenure.journals import EtcdJournal, open_journal
from tenure.journals.etcd.url import EtcdOptions, parse_etcd_url
from tenure.wire.lease_records import LEASE_RECORDS

PASSWORD_FILE = "/p"  # noqa: S105 - a path, not a password


def test_members_are_named_and_the_rest_has_defaults() -> None:
    found = parse_etcd_url("etcd:http://h1:2379,https://h2:2379/,http://[::1]:2379")
    endpoints = ("http://h1:2379", "https://h2:2379", "http://[::1]:2379")
    assert found == EtcdOptions(endpoints=endpoints)
    assert (found.prefix, found.timeout) == ("/tenure/", 0.5)


def test_every_option_can_be_given() -> None:
    found = parse_etcd_url(
        "etcd:https://h1:2379?prefix=/a/b%20c/&timeout=2.5&ca=/ca.pem&cert=/c.pem&key=/k.pem"
        "&user=u&password_file=" + PASSWORD_FILE
    )
    assert found == EtcdOptions(
        endpoints=("https://h1:2379",),
        prefix="/a/b c/",
        timeout=2.5,
        ca="/ca.pem",
        cert="/c.pem",
        key="/k.pem",
        user="u",
        password_file=PASSWORD_FILE,
    )


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("etcd:", "no endpoint"),
        ("etcd:?prefix=/a/", "no endpoint"),
        ("etcd:h1:2379", "is not an endpoint"),
        ("etcd:http://", "is not an endpoint"),
        ("etcd:http://h1:port", "is not an endpoint"),
        ("etcd:http://h1:2379/v3", "is not an endpoint"),
        ("etcd:http://root:secret@h1:2379", "takes no password"),
        ("etcd:http://h1:2379?password=secret", "does not know password"),
        ("etcd:http://h1:2379?prefix=/a/&prefix=/b/", "each once"),
        ("etcd:http://h1:2379?prefix", "is not name=value"),
        ("etcd:http://h1:2379?prefix=", "begins and ends with /"),
        ("etcd:http://h1:2379?prefix=a/", "begins and ends with /"),
        ("etcd:http://h1:2379?prefix=/a", "begins and ends with /"),
        ("etcd:http://h1:2379?prefix=/" + 1_024 * "a" + "/", "longer than"),
        ("etcd:http://h1:2379?timeout=soon", "cannot be read"),
        ("etcd:http://h1:2379?timeout=0", "timeout is 0"),
        ("etcd:http://h1:2379?timeout=61", "timeout is 61"),
        ("etcd:http://h1:2379?timeout=nan", "timeout is nan"),
        ("etcd:https://h1:2379?cert=/c.pem", "both cert= and key="),
        ("etcd:http://h1:2379?user=u", "both user= and password_file="),
        ("etcd:http://h1:2379?ca=/ca.pem", "no endpoint with https://"),
        ("etcd:https://h1:2379?ca=/no/such/file.pem", "certificates cannot be used"),
    ],
)
def test_what_cannot_be_is_refused(url: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why) as caught:
        open_journal(url, LEASE_RECORDS)
    assert "secret" not in str(caught.value)


def test_opening_asks_etcd_nothing() -> None:
    journal = open_journal("etcd:http://127.0.0.1:1", LEASE_RECORDS)
    assert isinstance(journal, EtcdJournal)
    asyncio.run(journal.close())


def test_the_password_is_read_anew_each_time(tmp_path: Path) -> None:
    file = tmp_path / "password"
    options = EtcdOptions(endpoints=("http://h",), user="u", password_file=str(file))
    with pytest.raises(ConfigurationError, match="cannot be read"):
        options.password()
    for written in ("first\n", " second "):
        file.write_text(written)
        assert options.password() == written.rstrip("\n")
