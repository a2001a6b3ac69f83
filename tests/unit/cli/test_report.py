"""A starting manager reports that it waits, for how long, and that it has waited."""

import asyncio
import re
from pathlib import Path

import msgspec
import pytest

from tenure.cli import report
from tenure.cli.report import BarReport, LineReport, ManagerReport, ReportedState, watch
from tenure.journals import Journal, MemoryJournal, SqliteJournal
from tenure.manager.restore import read_copy
from tenure.protocol.lease.records import AnyRecord, PoolCreated, State
from tenure.protocol.lease.timing import PRESETS, TEST
from tenure.testing.contracts.journal import lead
from tenure.wire.lease_records import LEASE_RECORDS
from tests.unit.manager.serving import serving

pytestmark = pytest.mark.asyncio

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _a_short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the wait short: the report does not depend on its length."""
    short = msgspec.structs.replace(TEST, longest_hold_ns=TEST.hold_ns)
    monkeypatch.setitem(PRESETS, TEST.name, short)


async def watched(
    form: ManagerReport, journal: Journal[AnyRecord, State] | None = None, **said: object
) -> None:
    """Watch a manager with a new journal, or this one, until it has waited."""
    told = {"first_start": False, "preset": "test", **said}
    async with serving(journal, None, **told) as manager:
        form.listening(manager.service)
        granting = asyncio.Event()
        form_changed = form.changed

        def changed(view: ReportedState, *rest: object) -> None:
            form_changed(view, manager.service)
            if view.role == "leading" and not view.waits:
                granting.set()

        form.changed = changed  # type: ignore[assignment, method-assign]
        watching = asyncio.create_task(watch(manager.service, form))
        await granting.wait()
        watching.cancel()
        form.close()
        form.stopping(manager.service)
    form.stopped()


async def test_lines_tell_the_wait_its_progress_and_its_end(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "PROGRESS_SECONDS", 0.4)
    await watched(LineReport())
    lines = capsys.readouterr().out.splitlines()
    assert "manager at http://127.0.0.1:" in lines[0]
    assert lines[4] == "leader (leadership 1), not granting leases yet:"
    assert re.search(r"for up to (1\.\d|0\.\d) s", lines[5])  # what is left of 1.3 s by then
    assert lines[5].endswith("pass --first-start, and it grants leases in 0.3 s")
    assert lines[6].startswith("  grants begin in ")
    assert lines[-3:] == [
        "leader (leadership 1), and has waited long enough: granting leases",
        "stopping: resigning, so that a standby need not wait",
        "stopped",
    ]


async def restored(journal: SqliteJournal[AnyRecord, State]) -> SqliteJournal[AnyRecord, State]:
    """Restore a journal with a pool in the copy."""
    await journal.append(await lead(journal), 0, (PoolCreated(pool="rooms", kind="hashed"),))
    copy = await read_copy(journal)
    assert await journal.restore(copy.seat, copy.lsn, copy.beginning())
    return journal


async def test_lines_of_a_first_start(capsys: Capture) -> None:
    await watched(LineReport(), MemoryJournal(LEASE_RECORDS), first_start=True)
    assert capsys.readouterr().out.splitlines()[4:6] == [
        "leader (leadership 1): waiting for owners of a previous manager",
        "leader (leadership 1): granting leases",
    ]


async def test_a_restored_journal_is_waited_for_whatever_is_said_and_why_is_told(
    capsys: Capture, tmp_path: Path
) -> None:
    journal = await restored(SqliteJournal.open(tmp_path / "journal.sqlite", LEASE_RECORDS))
    await watched(LineReport(), journal, first_start=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[4] == "leader (leadership 1000000002), not granting leases yet:"
    assert "the journal was restored from an old copy" in lines[5]
    assert "--first-start" not in lines[5]
    assert "leader (leadership 1000000002), and has waited long enough: granting leases" in lines


async def test_why_a_journal_is_waited_for_whose_owners_have_met_another_is_told(
    capsys: Capture,
) -> None:
    """Passing --first-start would not help: it was passed, or it is not true."""
    journal = MemoryJournal(LEASE_RECORDS, State(older=4711))
    await watched(LineReport(), journal, first_start=True)
    lines = capsys.readouterr().out.splitlines()
    assert "have come with the history of another journal" in lines[5]
    assert "--first-start" not in lines[5]


async def test_a_bar_leaves_the_same_lines(capsys: Capture) -> None:
    await watched(BarReport())
    lines = capsys.readouterr().out.splitlines()
    assert "leader (leadership 1), not granting leases yet:" in lines
    assert "leader (leadership 1), and has waited long enough: granting leases" in lines
