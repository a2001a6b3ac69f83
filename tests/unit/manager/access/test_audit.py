"""The audit log on disks that fill up, and with bodies that nobody sends by accident."""

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tenure.manager.access.audit import BODY_CHARACTERS, Audit, AuditEntry


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
    audit = Audit(tmp_path / "audit")
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
