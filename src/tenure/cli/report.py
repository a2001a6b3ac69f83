"""The report of a running manager on its output: where it listens, whether it leads, when it
grants.

The report has three forms: lines, lines with a bar of progress on a terminal, and JSON for
programs, which learn the URL of a manager on a free port from the first object.
"""

import asyncio
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import msgspec

from tenure import __version__
from tenure.base.instants import in_seconds
from tenure.base.noted import Noted
from tenure.cli.output import say
from tenure.manager.service import ManagerService
from tenure.protocol.lease.leader.first_start import listening_ns
from tenure.protocol.lease.leader.view import JournalPast
from tenure.protocol.log.noted import LogKind

LOOK_SECONDS = 0.25
"""How often a running manager is looked at, beside when it says that something changed. One that
leads and grants says everything."""
PROGRESS_SECONDS = 10.0
"""How often a line tells how long is still to wait."""
CHANGES = (LogKind.LEADING, LogKind.DEPOSED, LogKind.RESIGNED, LogKind.STARTED_OVER)


class ReportedState(NamedTuple):
    """The state of a manager whose changes are reported."""

    role: str
    leader: str | None
    leadership: int
    waits: bool
    listens: bool
    """Whether it waits for a moment only, to hear of an earlier manager."""


class ManagerReport(Protocol):
    """A form of telling."""

    def listening(self, service: ManagerService) -> None: ...
    def changed(self, view: ReportedState, service: ManagerService) -> None: ...
    def waiting(self, seconds: float) -> None: ...
    def stopping(self, service: ManagerService) -> None: ...
    def stopped(self) -> None: ...
    def close(self) -> None: ...


def view_of(service: ManagerService) -> ReportedState:
    """How the manager is now."""
    view = service.engine.view
    waits = view.grants_in_ns > 0
    return ReportedState(view.role, view.leader, view.leadership, waits, view.is_listening)


async def watch(service: ManagerService, report: ManagerReport) -> None:
    """Tell `report` whatever changes, until cancelled."""
    changed = asyncio.Event()

    def on_noted(noted: Noted) -> None:
        if noted.kind in CHANGES:
            changed.set()

    service.observer.subscribe(on_noted)
    last: ReportedState | None = None
    while True:
        view = view_of(service)
        if view != last and not (view.role == "standing by" and view.leader is None):
            report.changed(view, service)
            last = view
        if view.waits and not view.listens:
            report.waiting(in_seconds(service.engine.view.grants_in_ns))
        is_settled = view.role == "leading" and not view.waits and not view.listens
        try:
            async with asyncio.timeout(None if is_settled else LOOK_SECONDS):
                await changed.wait()
        except TimeoutError:
            continue
        changed.clear()


class LineReport:
    """Lines on standard output."""

    def __init__(self) -> None:
        self._told_at = float("inf")
        self._waited = False

    def listening(self, service: ManagerService) -> None:
        timing = service.settings.timing
        say(f"tenure {__version__}: manager at {service.url}")
        say(f"  journal: {service.journal_url}")
        term, hold = in_seconds(timing.term_ns), in_seconds(timing.hold_ns)
        say(f"  preset:  {timing.name} (term {term:g} s, hold {hold:g} s)")
        creates = service.engine.view.creates_pools
        say(f"  pools:   {'created by their first owner' if creates else 'to be created by hand'}")

    def changed(self, view: ReportedState, service: ManagerService) -> None:
        if view.role == "standing by":
            say(f"standing by: {view.leader} leads")
        elif view.role == "leading" and view.listens:
            leads = f"leader (leadership {view.leadership})"
            say(f"{leads}: waiting for owners of a previous manager")
        elif view.role == "leading" and view.waits:
            self._waited = True
            self._told_at = in_seconds(service.engine.view.grants_in_ns)
            say(f"leader (leadership {view.leadership}), not granting leases yet:")
            listens = in_seconds(listening_ns(service.settings.timing))
            say(f"  {_why(self._told_at, service.engine.view.past, listens)}")
        elif view.role == "leading":
            waited = ", and has waited long enough" if self._waited else ""
            say(f"leader (leadership {view.leadership}){waited}: granting leases")

    def waiting(self, seconds: float) -> None:
        if seconds <= self._told_at - PROGRESS_SECONDS:
            self._told_at = seconds
            say(f"  grants begin in {seconds:.0f} s")

    def stopping(self, service: ManagerService) -> None:
        leads = service.engine.view.leads
        say("stopping" + (": resigning, so that a standby need not wait" if leads else ""))

    def stopped(self) -> None:
        say("stopped")

    def close(self) -> None:
        return


def _why(seconds: float, past: JournalPast, listens: float) -> str:
    if past == "restored":
        return (
            "the journal was restored from an old copy, and what was promised since that was made "
            f"may be believed for up to {seconds:.1f} s"
        )
    if past == "another journal":
        return (
            "owners or lookups have come with the history of another journal, and what its "
            f"managers have promised may be believed for up to {seconds:.1f} s"
        )
    return (
        "the journal knows of no earlier manager, and one that it does not know of may have "
        f"promised keys for up to {seconds:.1f} s. If there was no earlier manager, pass "
        f"--first-start, and it grants leases in {listens:g} s"
    )


class BarReport(LineReport):
    """Lines, and a bar while it waits: for a terminal."""

    def __init__(self) -> None:
        super().__init__()
        self._progress: Any = None
        self._whole = 0.0

    def waiting(self, seconds: float) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        if self._progress is None:
            self._whole = seconds
            columns = TextColumn("  grants begin in {task.fields[seconds]:.0f} s"), BarColumn()
            self._progress = Progress(*columns, transient=True)
            self._progress.add_task("", total=seconds, seconds=seconds)
            self._progress.start()
        (task,) = self._progress.task_ids
        self._progress.update(task, completed=self._whole - seconds, seconds=seconds)

    def changed(self, view: ReportedState, service: ManagerService) -> None:
        self.close()
        super().changed(view, service)

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


class JsonReport:
    """An object a line, each with its `event`."""

    def listening(self, service: ManagerService) -> None:
        self._tell(
            "listening",
            url=service.url,
            journal=service.journal_url,
            preset=service.settings.preset,
            version=__version__,
        )

    def changed(self, view: ReportedState, service: ManagerService) -> None:
        match view.role:
            case "standing by":
                self._tell("standing by", leader=view.leader)
            case "leading":
                seconds = round(in_seconds(service.engine.view.grants_in_ns), 3)
                self._tell("leading", leadership=view.leadership, grants_in_seconds=seconds)

    def waiting(self, seconds: float) -> None:
        return

    def stopping(self, service: ManagerService) -> None:
        self._tell("stopping")

    def stopped(self) -> None:
        self._tell("stopped")

    def close(self) -> None:
        return

    def _tell(self, event: str, **what: object) -> None:
        line = msgspec.json.encode({"event": event, **what}).decode()
        print(line, flush=True)


def report_for_people() -> ManagerReport:
    """The form for standard output as it is."""
    make: Callable[[], ManagerReport] = BarReport if sys.stdout.isatty() else LineReport
    return make()
