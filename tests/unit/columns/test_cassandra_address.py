"""Addresses name a store on Cassandra, and others are refused with the reason."""

import pytest

from tenure.columns.backends.cassandra.address import CassandraAddress, parse_address
from tenure.errors import ConfigurationError


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("cassandra:a/k", CassandraAddress(("a",), 9042, "k")),
        ("cassandra:a,10.0.0.2/k_1", CassandraAddress(("a", "10.0.0.2"), 9042, "k_1")),
        ("cassandra:a:7,b:7/K", CassandraAddress(("a", "b"), 7, "K")),
        ("cassandra:[::1]:7,[::2]:7/k", CassandraAddress(("::1", "::2"), 7, "k")),
    ],
)
def test_what_names_one(url: str, address: CassandraAddress) -> None:
    assert parse_address(url) == address


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("cassandra:a", "names no keyspace"),
        ("cassandra:a/", "names no keyspace"),
        ('cassandra:a/k"; DROP', "names no keyspace"),
        ("cassandra:/k", "is not HOST"),
        ("cassandra:a,,b/k", "is not HOST"),
        ("cassandra:a:0/k", "is not HOST"),
        ("cassandra:a:99999/k", "is not HOST"),
        ("cassandra:u:p@a/k", "is not HOST"),
        ("cassandra:a:1,b:2/k", "listen on one port"),
    ],
)
def test_what_names_none(url: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        parse_address(url)


def test_an_address_is_said_as_it_is_typed() -> None:
    for url in ("cassandra:a,b/k", "cassandra:a:7,b:7/k"):
        assert str(parse_address(url)) == url
