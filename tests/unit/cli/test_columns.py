"""`tenure columns`: what operators do with a store in a directory."""

import json
import shlex
import shutil
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tenure.cli import columns_copy
from tenure.cli.app import run
from tenure.columns import copying
from tenure.columns.engines.rocksdb import RocksEngine
from tenure.columns.opening import open_store
from tenure.columns.tables import Family, Table

MAIL = Table(
    "mail",
    terms=Family(supers=str, columns=int, order="time"),
    profile=Family(columns=str, values=dict[str, int]),
    raw=Family(columns=bytes),
    ids=Family(columns=UUID),
)
ROOMS = Table("rooms", fenced_by="rooms", state=Family(columns=str))
SOME = UUID(int=7)


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"rocksdb:{tmp_path / 'mail'}"
    with open_store(url, MAIL, ROOMS) as store:
        for n in range(5):
            store.insert(MAIL, "ann", {"terms": {"tea": {n: b"m%d" % n}, "milk": {n: b""}}})
        store.insert(MAIL, "ann", {"profile": {"x": {"a": 1}}, "ids": {SOME: b"\xff"}})
        store.insert(MAIL, "bob", {"raw": {b"\0": b"zero", b"k": b"v"}})
    return url


def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert run(["columns", *arguments]) == code
    found = capsys.readouterr()
    return found.out if code == 0 else found.out + found.err


def test_inspect_shows_tables_and_families(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "inspect", url)
    assert "mail\tterms\tsupers=str, columns=int, order='time', values=bytes" in text
    found = json.loads(said(capsys, "inspect", url, "--json"))
    assert {each["family"] for each in found["families"]} == {*MAIL.families, "state"}


def test_get_shows_what_a_path_names(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "get", url, "mail", "ann", "terms", "tea", "3").startswith("3\tm3\t")
    page = said(capsys, "get", url, "mail", "ann", "terms", "tea", "--first", "2").splitlines()
    assert [line.split("\t")[0] for line in page] == ["4", "3"]
    page = said(capsys, "get", url, "mail", "ann", "terms").splitlines()
    assert [line.split("\t")[0] for line in page] == ["milk"] * 5 + ["tea"] * 5
    assert said(capsys, "get", url, "mail", "ann", "ids", str(SOME)).startswith(f"{SOME}\t0xff\t")
    assert said(capsys, "get", url, "mail", "bob", "raw", "0x00").startswith("0x00\tzero\t")
    assert "no such column" in said(capsys, "get", url, "mail", "ann", "terms", "tea", "9")
    row = json.loads(said(capsys, "get", url, "mail", "ann", "--json"))
    assert row["families"]["profile"][0]["value"] == {"a": 1}
    assert [each["name"] for each in row["families"]["terms"]] == ["milk", "tea"]


def test_scan_goes_in_the_order_of_keys(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [json.loads(line) for line in said(capsys, "scan", url, "mail", "--json").splitlines()]
    assert [row["key"] for row in rows] == ["ann", "bob"]
    assert said(capsys, "scan", url, "mail", "--end", "b", "--limit", "1").startswith("ann\t")
    assert said(capsys, "scan", url, "mail", "--start", "c") == ""


def test_insert_and_delete(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "insert", url, "mail", "cid", "terms", "tea", "-1", "0x00ff")
    said(capsys, "insert", url, "mail", "cid", "profile", "y", '{"b": 2}')
    assert said(capsys, "get", url, "mail", "cid", "terms", "tea", "-1").startswith("-1\t0x00ff\t")
    said(capsys, "delete", url, "mail", "cid", "terms", "tea")
    row = json.loads(said(capsys, "get", url, "mail", "cid", "--json"))
    assert list(row["families"]) == ["profile"]
    said(capsys, "delete", url, "mail", "cid")
    assert json.loads(said(capsys, "get", url, "mail", "cid", "--json"))["families"] == {}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["get", "{url}", "no", "k"], "no table 'no'; there are: mail, rooms"),
        (["get", "{url}", "mail", "k", "no"], "no family 'no'"),
        (["scan", "{url}", "mail", "--limit", "0"], "--limit 0: show one row or more"),
        (["scan", "{url}", "mail", "--limit=-5"], "--limit -5: show one row or more"),
        (["get", "{url}", "mail", "k", "terms", "tea", "x"], "not of type int"),
        (["get", "{url}", "mail", "k", "raw", "a", "b"], "too long"),
        (["insert", "{url}", "mail", "k", "raw"], "and a value"),
        (["insert", "{url}", "rooms", "k", "state", "a", "b"], "through OwnedRows"),
        (["inspect", "{url}-not"], "there is no store"),
        (["inspect", "memory:"], "not a store in a directory"),
        (["copy", "{url}", "{url}-new", "--table", "no"], "no table 'no'"),
        (["copy", "{url}", "cassandra:a/k", "--table", "mail", "--driver", "no:X"], "nothing at"),
        (["copy", "{url}", "{url}-new"], "nothing of its fences"),
        (["copy", "{url}", "{url}-new", "--after", "a"], "which with --table"),
        (["restore", "{path}", "{url}"], "move it away first"),
        (["up", "--data", "{path}/CURRENT"], "CURRENT cannot be made: File exists. Name another"),
        (["up", "--data", "{path}/CURRENT/x"], "x cannot be made: Not a directory. Name another"),
        (["backup", "{url}", "{path}"], "already exists"),
    ],
)
def test_what_is_asked_wrongly_is_told(
    url: str, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = url.removeprefix("rocksdb:")
    given = [each.format(url=url, path=path) for each in arguments]
    assert words in said(capsys, *given, code=2)
    assert not Path(f"{path}-not").exists()


def test_a_backup_is_restored(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = said(capsys, "scan", url, "mail")
    said(capsys, "backup", url, str(tmp_path / "monday"))
    said(capsys, "delete", url, "mail", "ann")
    shutil.move(tmp_path / "mail", tmp_path / "away")
    assert "it was checked" in said(capsys, "restore", str(tmp_path / "monday"), url)
    assert said(capsys, "scan", url, "mail") == before
    assert said(capsys, "scan", f"rocksdb:{tmp_path / 'monday'}", "mail") == before


def test_compact_keeps_everything(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = said(capsys, "scan", url, "mail")
    assert "compacted" in said(capsys, "compact", url)
    assert said(capsys, "scan", url, "mail") == before


def test_copy_keeps_times_and_may_be_begun_again(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = f"rocksdb:{tmp_path / 'new'}"
    for _ in range(2):
        assert "mail: 14 columns copied" in said(capsys, "copy", url, target, "--table", "mail")
    assert said(capsys, "scan", target, "mail") == said(capsys, "scan", url, "mail")
    behind = said(capsys, "copy", url, target, "--table", "mail", "--after", "ann")
    assert "mail: 2 columns copied" in behind


def test_a_copy_says_how_to_go_on_after_each_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns_copy, "PROGRESS_SECONDS", -1.0)
    monkeypatch.setattr(copying, "ROWS_AT_ONCE", 1)
    url, keys = f"rocksdb:{tmp_path / 'odd'}", ["--odd", "ann smith", "it's"]
    with open_store(url, MAIL) as store:
        for key in keys:
            store.insert(MAIL, key, {"raw": {b"k": b""}})
    lines = said(capsys, "copy", url, f"rocksdb:{tmp_path / 'whole'}").splitlines()
    told = [line.partition("to go on here: ")[2] for line in lines]
    for number, line in enumerate(filter(None, told), 1):
        target = f"rocksdb:{tmp_path / str(number)}"
        said(capsys, "copy", url, target, *shlex.split(line))
        with open_store(target, MAIL) as store:
            assert [row.key for row in store.scan(MAIL)] == keys[number:]
    assert len(list(filter(None, told))) == len(keys)


def test_check_finds_what_does_not_agree(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no damage" in said(capsys, "check", url)

    def damage(space: str, which: int) -> None:
        engine = RocksEngine.open(Path(url.removeprefix("rocksdb:")))
        entries = list(engine.cursor(space).walk(b"", None))
        engine.apply([(space, entries[which][0], None)])
        engine.sync()
        engine.close()

    damage("mail.raw", 0)
    text = said(capsys, "check", url, code=1)
    assert "row 'bob': its digest is not that of its entries" in text
    assert "the sums are not those of its rows" in text
    assert "columns restore" in text
    damage("mail.terms", 0)
    assert "a place in the order of time of terms has no column" in said(
        capsys, "check", url, code=1
    )
    damage("mail.terms", -1)
    assert "has no place in the order of time" in said(capsys, "check", url, code=1)
    damage("mail/rows", 1)
    assert "mail.raw: 1 entries belong to no row" in said(capsys, "check", url, code=1)


def test_check_reads_every_block(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "compact", url)
    [*files] = Path(url.removeprefix("rocksdb:")).glob("*.sst")
    file = max(files, key=lambda each: each.stat().st_size)
    text = bytearray(file.read_bytes())
    text[10] ^= 0xFF
    file.write_bytes(text)
    assert file.name in said(capsys, "check", url, code=1)


def test_every_command_says_what_it_did_as_json(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def told(*arguments: str, code: int = 0) -> dict[str, Any]:
        assert run(["columns", *arguments, "--json"]) == code
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    monday, new = str(tmp_path / "monday"), f"rocksdb:{tmp_path / 'new'}"
    written = told("insert", url, "mail", "eve", "raw", "x", "1")["time"]
    deleted = told("delete", url, "mail", "eve", "raw", "x")["time"]
    assert 0 < written < deleted
    assert told("compact", url) == {"deletes_gone": 0}
    assert told("backup", url, monday) == {"directory": monday}
    assert told("restore", monday, f"rocksdb:{tmp_path / 'again'}") == {
        "path": str(tmp_path / "again")
    }
    assert told("copy", url, new, "--table", "mail") == {"table": "mail", "columns": 14}
    assert told("check", url) == {"wrong": []}
    engine = RocksEngine.open(tmp_path / "new")
    [(key, _)] = list(engine.cursor("mail.raw").walk(b"", None))[:1]
    engine.apply([("mail.raw", key, None)])
    engine.close()
    wrong = told("check", new, code=1)["wrong"]
    assert "row 'bob': its digest is not that of its entries" in " ".join(wrong)
