"""The real Cassandra answers as the comparison needs it: both of its protocols, and its rules."""

from pathlib import Path

import pytest

from tests.integration.cassandra import server
from tests.integration.cassandra.server import JAVA_VARIABLE, Cassandra, why_not
from tests.integration.cassandra.thrift import Column, Deletion, Slice, SuperColumn, ThriftClient

BYTES = "BytesType"
FAMILIES = {"simple": (BYTES, None), "supers": (BYTES, BYTES)}


def test_it_is_the_release_that_is_meant_and_orders_rows_by_their_keys(
    old_cassandra: Cassandra,
) -> None:
    with ThriftClient(old_cassandra.host, old_cassandra.thrift_port) as client:
        assert client.version().startswith("19.")
        client.add_keyspace("looks", FAMILIES)
        client.set_keyspace("looks")
        for key in (b"b", b"a", b"c"):
            client.mutate(key, {"simple": [Column(b"n", key, 1)]})
        assert [key for key, _ in client.rows("simple", b"", b"", Slice())] == [b"a", b"b", b"c"]
        client.mutate(b"a", {"supers": [SuperColumn(b"s", (Column(b"x", b"1", 5),))]})
        client.mutate(b"a", {"supers": [Deletion(4, b"s")], "simple": [Deletion(2, None, (b"n",))]})
        assert client.slice(b"a", "supers", Slice()) == [
            SuperColumn(b"s", (Column(b"x", b"1", 5),))
        ]
        assert client.slice(b"a", "simple", Slice()) == []
        client.mutate(b"a", {"supers": [Deletion(5, b"s")]})
        assert client.slice(b"a", "supers", Slice(), b"s") == []


def test_a_java_that_is_not_there_is_told_by_where_it_was_sought(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(server, "_package", lambda: tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(JAVA_VARIABLE, raising=False)
    assert "no `java` on PATH" in str(why_not())
    monkeypatch.setenv(JAVA_VARIABLE, "/no/java")
    assert f"no `java` at /no/java, which {JAVA_VARIABLE} names" in str(why_not())
