"""Owners and frontends as the demo knows them: by what it did to them, and what they report."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from tenure.base.instants import Instant
from tenure.cli.demo.children import Child
from tenure.cli.demo.display import OwnerState
from tenure.cli.demo.reports import FrontendReport, OwnerReport, decode_report
from tenure.runtime.clock import boot_clock

Count = TypeVar("Count", int, float)


class OwnerPlace:
    """One of the owners: a process, and after a kill the next."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.life = 0
        self.child: Child | None = None
        self.state: OwnerState = "starting"
        self.since: Instant = boot_clock()
        self.report: OwnerReport | None = None
        self._past: list[OwnerReport] = []
        self._reported = asyncio.Event()

    @property
    def address(self) -> str | None:
        """The address at which the owner serves, or served before it was killed."""
        return self.report.address if self.report else None

    def become(self, state: OwnerState) -> None:
        """Take on a state from now on."""
        self.state, self.since = state, boot_clock()

    def begin_life(self) -> str:
        """The name of its next process: another, for the last one's may still be held."""
        if self.report is not None:
            self._past.append(self.report)
            self.report = None
        self.life += 1
        self.become("starting")
        return f"owner-{self.number}" + (f"-life-{self.life}" if self.life > 1 else "")

    def on_line(self, line: bytes) -> None:
        """The process reports."""
        report = decode_report(line)
        assert isinstance(report, OwnerReport), report
        self.report = report
        if self.state == "starting" and report.ranges:
            self.become("serving")
        self._reported.set()

    def total(self, count: Callable[[OwnerReport], Count]) -> Count:
        """Return the sum of what all processes of this place have counted."""
        return sum(map(count, [*self._past, *([self.report] if self.report else [])]))

    async def next_report(self, after: Instant) -> None:
        """Wait for a report that was made after `after`."""
        await self._until(lambda: self.report is not None and self.report.at > after)

    async def has_joined(self) -> None:
        """Wait until it is an owner; it may have to wait for something to serve."""
        await self._until(lambda: self.report is not None)

    async def is_serving(self) -> None:
        """Wait until it holds something."""
        await self._until(lambda: self.state == "serving")

    async def _until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            self._reported.clear()
            await self._reported.wait()


class Frontends:
    """All frontends, and the sum of their reports."""

    def __init__(self) -> None:
        self.children: list[Child] = []
        self._reports: dict[int, FrontendReport] = {}
        self._reported = asyncio.Event()

    def on_line(self, number: int, line: bytes) -> None:
        """One of them reports."""
        report = decode_report(line)
        assert isinstance(report, FrontendReport), report
        self._reports[number] = report
        self._reported.set()

    @property
    def totals(self) -> FrontendReport:
        """The sums of what all frontends have counted."""
        first, *others = self._reports.values() or [FrontendReport()]
        for other in others:
            first = first.plus(other)
        return first

    async def have_published(self) -> None:
        """Wait until all clients of all frontends have published once."""
        while len(self._reports) < len(self.children) or not self.totals.has_published:
            self._reported.clear()
            await self._reported.wait()
