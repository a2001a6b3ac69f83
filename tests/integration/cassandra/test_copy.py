"""`tenure columns` on Cassandra: looking into it, and copying there and back with times."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pytest

from tenure.cli.app import run
from tenure.columns.opening import open_store
from tenure.columns.tables import Family, Table
from tests.integration.cassandra import cql_server, server
from tests.integration.cassandra.server import Cassandra

MAIL = Table(
    "mail",
    writes="clock",
    kind="hashed",
    terms=Family(supers=str, columns=int, order="time"),
    profile=Family(columns=str, values=dict[str, int]),
    raw=Family(columns=bytes),
)
ROWS = 70
"""More than a copy reads at once."""
OPTIONS: dict[str, object] = {}
"""The driver's options; the tests name this dict as `--driver`."""


class Remote(NamedTuple):
    url: str


@pytest.fixture(params=["1.2.0", "small server"])
def remote(request: pytest.FixtureRequest) -> Iterator[Remote]:
    OPTIONS.clear()
    if request.param == "1.2.0":
        running: Cassandra = request.getfixturevalue("old_cassandra")
        OPTIONS.update(server.DRIVER_OPTIONS)
        yield Remote(f"cassandra:127.0.0.1:{running.cql_port}/k{uuid4().hex}")
        return
    with cql_server.small_server() as small:
        OPTIONS.update(cql_server.DRIVER_OPTIONS)
        yield Remote(f"cassandra:127.0.0.1:{small.port}/k{uuid4().hex}")


@pytest.fixture
def local(tmp_path: Path) -> str:
    url = f"rocksdb:{tmp_path / 'mail'}"
    with open_store(url, MAIL, log=tmp_path / "log") as store:
        for n in range(ROWS):
            store.insert(MAIL, f"user-{n}", {"raw": {b"n": b"%d" % n}})
        for n in range(5):
            store.insert(MAIL, "ann", {"terms": {"tea": {n: b"m%d" % n}, "milk": {n: b""}}})
        store.insert(MAIL, "ann", {"profile": {"x": {"a": 1}, "gone": {}}})
        store.insert(MAIL, "ann", {"raw": {bytes([n]): bytes(300_000) for n in range(9)}})
        store.delete(MAIL, "ann", "profile", "gone")
    return url


def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert run(["columns", *arguments, "--driver", f"{__name__}:OPTIONS"]) == code
    found = capsys.readouterr()
    return found.out if code == 0 else found.err


def rows(capsys: pytest.CaptureFixture[str], url: str) -> dict[str, object]:
    lines = said(capsys, "scan", url, "mail", "--json", "--limit", "1000").splitlines()
    return {row["key"]: row for row in map(json.loads, lines)}


def test_there_and_back_everything_has_its_time(
    local: str, remote: Remote, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    back = f"rocksdb:{tmp_path / 'back'}"
    for _ in range(2):  # it may be begun again
        assert f"mail: {ROWS + 20} columns copied" in said(capsys, "copy", local, remote.url)
    assert f"mail: {ROWS + 20} columns copied" in said(capsys, "copy", remote.url, back)
    whole = rows(capsys, local)
    assert len(whole) == ROWS + 1
    assert rows(capsys, remote.url) == whole
    assert rows(capsys, back) == whole
    assert run(["columns", "check", back]) == 0


def test_an_interrupted_copy_goes_on_behind_a_key(
    local: str, remote: Remote, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "copy", local, remote.url)
    keys = list(rows(capsys, remote.url))
    back = f"rocksdb:{tmp_path / 'back'}"
    after = ("--table", "mail", "--after", keys[ROWS // 2])
    said(capsys, "copy", remote.url, back, *after)
    assert set(rows(capsys, back)) == set(keys[ROWS // 2 + 1 :])


def test_a_store_there_is_looked_into_and_written(
    local: str, remote: Remote, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "copy", local, remote.url)
    found = json.loads(said(capsys, "inspect", remote.url, "--json"))
    assert {each["family"] for each in found["families"]} == {*MAIL.families}
    assert "mail\tterms\tsupers=str" in said(capsys, "inspect", remote.url)
    said(capsys, "insert", remote.url, "mail", "cid", "profile", "y", '{"b": 2}')
    assert said(capsys, "get", remote.url, "mail", "cid", "profile", "y").startswith('y\t{"b": 2}')
    said(capsys, "delete", remote.url, "mail", "cid")
    assert "cid" not in rows(capsys, remote.url)
    assert "no table 'no'" in said(capsys, "get", remote.url, "no", "k", code=2)
    assert run(["columns", "backup", remote.url, "x"]) == 2
    assert "nodetool" in capsys.readouterr().err
