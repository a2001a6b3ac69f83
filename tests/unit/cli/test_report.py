"""What a starting manager says: that it waits, for how long, and that it has waited."""

import asyncio

import pytest

from leasehold.cli import report
from leasehold.cli.report import BarReport, LineReport, Report, View, watch
from tests.unit.manager.serving import serving

pytestmark = pytest.mark.asyncio

Capture = pytest.CaptureFixture[str]


async def watched(form: Report) -> None:
    """Watch a manager with a new journal until it has waited."""
    async with serving(first_start=False, preset="test") as manager:
        form.listening(manager.service)
        granting = asyncio.Event()
        form_changed = form.changed

        def changed(view: View, *rest: object) -> None:
            form_changed(view, manager.service)
            if not view.waits:
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
    assert lines[4] == "leading (leadership 1); it waits before it grants anything:"
    assert "for up to 1.3 s" in lines[5]
    assert lines[6].startswith("  grants begin in ")
    assert lines[-3:] == [
        "leading (leadership 1), and has waited long enough: it grants",
        "stopping: resigning, so that a standby need not wait",
        "stopped",
    ]


async def test_a_bar_leaves_the_same_lines(capsys: Capture) -> None:
    await watched(BarReport())
    lines = capsys.readouterr().out.splitlines()
    assert "leading (leadership 1); it waits before it grants anything:" in lines
    assert "leading (leadership 1), and has waited long enough: it grants" in lines
