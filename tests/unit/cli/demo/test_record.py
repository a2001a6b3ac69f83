"""The record: what was written is read once, whichever process dies."""

from pathlib import Path

import pytest

from tenure.base.instants import Instant
from tenure.cli.demo.record import ENTRY, RecordReader, RecordWriter, Served

KEY = b"8 bytes."


def test_what_is_added_is_read_once(tmp_path: Path) -> None:
    writer, reader = RecordWriter(tmp_path, "owner-1"), RecordReader(tmp_path)
    assert list(reader.new()) == []
    writer.add(KEY, 7, Instant(1), Instant(2))
    assert list(reader.new()) == [Served("owner-1", KEY, 7, Instant(1), Instant(2))]
    assert list(reader.new()) == []
    writer.add(KEY, 7, Instant(3), Instant(4))
    assert [each.began for each in reader.new()] == [3]
    writer.close()


def test_records_of_all_processes_are_read(tmp_path: Path) -> None:
    for name in ("owner-2", "owner-1", "owner-2-life-2"):
        writer = RecordWriter(tmp_path, name)
        writer.add(KEY, 1, Instant(1), Instant(2))
        writer.close()
    owners = sorted(each.owner for each in RecordReader(tmp_path).new())
    assert owners == ["owner-1", "owner-2", "owner-2-life-2"]


def test_an_entry_that_is_not_whole_is_left_until_it_is(tmp_path: Path) -> None:
    whole = ENTRY.pack(KEY, 7, 1, 2)
    path = tmp_path / "owner-1.served"
    path.write_bytes(whole + whole[:5])
    reader = RecordReader(tmp_path)
    assert len(list(reader.new())) == 1
    path.write_bytes(whole + whole)
    assert len(list(reader.new())) == 1


def test_two_processes_do_not_share_a_record(tmp_path: Path) -> None:
    RecordWriter(tmp_path, "owner-1").close()
    with pytest.raises(FileExistsError):
        RecordWriter(tmp_path, "owner-1")
