"""The audit log on disks that fill up, and with bodies that nobody sends by accident."""

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tenure.base.instants import SECOND_NS, Instant
from tenure.manager.access import audit_file
from tenure.manager.access.audit import (
    BODY_CHARACTERS,
    CHANGES_AT_ONCE,
    PATH_CHARACTERS,
    Audit,
    AuditEntry,
)
from tenure.runtime.clock import boot_clock


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Let no file of this process become larger, as on a disk that is full from there on."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def audit(tmp_path: Path) -> Iterator[Audit]:
    audit = Audit(tmp_path / "audit", boot_clock)
    audit.open()
    yield audit
    audit.close()


def begins(audit: Audit, body: bytes = b"{}") -> AuditEntry:
    return audit.begins(
        who="nobody", role="admin", origin="", method="POST", path="/v1/pools", body=body
    )


def test_a_line_that_finds_room_for_a_part_of_it_is_not_written(
    audit: Audit, tmp_path: Path
) -> None:
    begins(audit)
    log = tmp_path / "audit"
    with room_for(log.stat().st_size + 20), pytest.raises(OSError, match="too large"):
        begins(audit)
    begins(audit)
    first, part, last = log.read_text().splitlines()
    assert json.loads(first)["number"] == 1
    assert len(part) == 20
    assert json.loads(last)["number"] == 3


def test_what_is_done_is_answered_though_its_outcome_finds_no_room(
    audit: Audit, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    entry = begins(audit)
    with room_for((tmp_path / "audit").stat().st_size):
        audit.ended(entry, 201)
    assert "the outcome 201 of change 1: " in caplog.text


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 1000, b"[" * 1000 + b"]" * 1000])
def test_a_body_that_is_too_deep_to_be_read_is_shown_as_it_came(audit: Audit, body: bytes) -> None:
    assert begins(audit, body).body == ascii(body.decode())[:BODY_CHARACTERS]


def test_a_line_is_bounded_whatever_its_request_has(audit: Audit, tmp_path: Path) -> None:
    audit.begins(
        who="w",
        role="admin",
        origin="",
        method="POST",
        path="/" + "a" * 8000,
        body=b'"' + b"\xc3\xa4" * (8 << 20) + b'"',
    )
    assert (tmp_path / "audit").stat().st_size < BODY_CHARACTERS * 7 + PATH_CHARACTERS + 200


def test_old_files_are_put_aside_and_the_oldest_goes(
    audit: Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_file, "FILE_BYTES", 1000)
    numbers = [begins(audit).number for _ in range(200)]
    names = ["audit", *(f"audit.{n}" for n in range(1, audit_file.FILES_KEPT))]
    assert sorted(each.name for each in tmp_path.iterdir()) == names
    kept = [
        json.loads(line)["number"]
        for name in reversed(names)
        for line in (tmp_path / name).read_text().splitlines()
    ]
    assert kept == numbers[-len(kept) :], "the latest are there, in order"
    assert {each.stat().st_mode & 0o777 for each in tmp_path.iterdir()} == {0o600}
    assert max(each.stat().st_size for each in tmp_path.iterdir()) < 1300


def test_the_last_of_the_disk_is_left_to_the_journal(
    audit: Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begins(audit)
    before = (tmp_path / "audit").read_bytes()
    for name in ("RESERVE_BYTES", "RESERVE_PART"):  # so that every disk counts as nearly full
        monkeypatch.setattr(audit_file, name, 1 << 60 if name == "RESERVE_BYTES" else 1)
    with pytest.raises(OSError, match=r"MiB are free, and the last \d+ are the journal's"):
        begins(audit)
    assert (tmp_path / "audit").read_bytes() == before
    monkeypatch.undo()
    begins(audit)


def test_one_token_changes_so_much_a_second_and_keeps_no_other_from_it() -> None:
    now = [Instant(0)]
    audit = Audit(None, lambda: now[0])
    assert [audit.allows("a") for _ in range(CHANGES_AT_ONCE)] == [True] * CHANGES_AT_ONCE
    assert (audit.allows("a"), audit.allows("b")) == (False, True)
    now[0] = Instant(now[0] + SECOND_NS)
    assert audit.allows("a")
