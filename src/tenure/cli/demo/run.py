"""The demo from its start to its summary."""

import asyncio
import signal
from collections import deque
from collections.abc import Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import msgspec

from tenure.base.instants import Instant, in_seconds, seconds
from tenure.cli.demo.crash import Crashes
from tenure.cli.demo.display import DemoState, Display, OwnerRow
from tenure.cli.demo.faults import BrokenOwner, LeaderFaults, OwnerFaults
from tenure.cli.demo.hot_keys import HotKeys
from tenure.cli.demo.judge import RecordJudge
from tenure.cli.demo.places import OwnerPlace
from tenure.cli.demo.record import RecordReader
from tenure.cli.demo.rolling_restart import RollingRestart
from tenure.cli.demo.scenario import Scenario
from tenure.cli.demo.service import DemoSettings, PresenceService, ScenarioName
from tenure.cli.demo.summary import Summary
from tenure.runtime.clock import boot_clock

SHOW_SECONDS = 0.2
RATE_SECONDS = 2.0
"""The time over which a rate is measured."""
SLICES = 216
"""How many slices of the key space are shown: three lines of a narrow terminal."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SHOWN_AT_ONCE = 3
"""How many of the keys that two owners served are told of at once: the first ones are enough."""


SETTINGS_SHOWN = ("managers", "journal", "owners", "frontends", "preset")
"""The settings that the summary repeats."""
SCENARIOS: dict[ScenarioName, type[Scenario]] = {
    "owner-faults": OwnerFaults,
    "break-owner": BrokenOwner,
    "kill-leader": LeaderFaults,
    "rolling-restart": RollingRestart,
    "crash": Crashes,
    "hot-keys": HotKeys,
}


class Rate:
    """How fast a count grows."""

    def __init__(self) -> None:
        self._seen: deque[tuple[Instant, int]] = deque()

    def __call__(self, now: Instant, count: int) -> float:
        """Return by how much the count grows in a second, if it is `count` at `now`."""
        self._seen.append((now, count))
        while now - self._seen[0][0] > seconds(RATE_SECONDS):
            self._seen.popleft()
        before, counted = self._seen[0]
        return max(count - counted, 0) / max(in_seconds(now - before), SHOW_SECONDS)


class Demo:
    """One run."""

    def __init__(self, settings: DemoSettings, directory: Path, view: Display) -> None:
        self._settings = settings
        self._view = view
        self._service = PresenceService(settings, directory, self._tell)
        self._scenario = SCENARIOS[settings.scenario](self._service, self._tell)
        self._record = RecordReader(directory)
        self._judge = RecordJudge()
        self._began: Instant | None = None
        self._ended: Instant | None = None
        self._phase = "starting"
        self._interrupted = asyncio.Event()
        self._rate = Rate()
        self._rates = {place.number: Rate() for place in self._service.owners}

    async def run(self) -> Summary:
        """All of it. Raises TenureError where a process died that was not killed."""
        self._listen_to_signals()
        showing = asyncio.create_task(self._go_on_showing())
        try:
            if await self._unless_interrupted(self._service.start(), showing):
                self._begin()
                await self._unless_interrupted(self._go_on(), showing)
            self._phase = "ending"
            self._ended = boot_clock()
            await self._service.finish()
            self._look()
        finally:
            showing.cancel()
            await self._service.close()
        return self._summary()

    # --- until the end ---

    async def _unless_interrupted(
        self, work: Coroutine[Any, Any, None], showing: "asyncio.Task[None]"
    ) -> bool:
        """Do it, unless a signal comes before it is done.

        Raises what a process raises that dies meanwhile, or a screen that cannot be written to.
        """
        task = asyncio.create_task(work)
        interrupted = asyncio.create_task(self._interrupted.wait())
        failed = self._service.children.failed
        ends: set[asyncio.Future[Any]] = {task, interrupted, failed, showing}
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for end in ends - {interrupted}:
                if end.done():
                    end.result()
            return not self._interrupted.is_set()
        finally:
            task.cancel()
            interrupted.cancel()
            await asyncio.wait({task, interrupted})

    def _listen_to_signals(self) -> None:
        loop, main = asyncio.get_running_loop(), asyncio.current_task()
        assert main is not None

        def on_signal() -> None:
            if self._interrupted.is_set():  # asked twice: end it, without the summary
                main.cancel()
            self._interrupted.set()

        for number in SIGNALS:
            loop.add_signal_handler(number, on_signal)

    def _begin(self) -> None:
        self._began = boot_clock()
        self._phase = "running"

    async def _go_on(self) -> None:
        assert self._began is not None
        end = Instant(self._began + seconds(self._settings.seconds))
        trouble = asyncio.create_task(self._play(end))
        try:
            await asyncio.wait({trouble}, timeout=self._settings.seconds)
            if trouble.done():
                trouble.result()
        finally:
            trouble.cancel()
            await asyncio.wait({trouble})

    async def _play(self, end: Instant) -> None:
        await self._scenario.play(end)
        if not self._scenario.ends_the_demo:
            await asyncio.sleep(max(in_seconds(end - boot_clock()), 0))

    # --- showing ---

    @property
    def _elapsed(self) -> float:
        until = self._ended or boot_clock()
        return in_seconds(until - (self._began or until))

    def _tell(self, text: str) -> None:
        self._view.event(None if self._began is None else self._elapsed, text)

    async def _go_on_showing(self) -> None:
        while True:
            self._look()
            await asyncio.sleep(SHOW_SECONDS)

    def _look(self) -> None:
        found = len(self._judge.found)
        for served in self._record.new():
            self._judge.add(served)
        for each in list(self._judge.found)[found : found + SHOWN_AT_ONCE]:
            self._tell(f"TWO OWNERS AT ONCE: {each}")
        self._view.show(self._picture())

    def _picture(self) -> DemoState:
        service, now = self._service, boot_clock()
        shares, totals = service.shares(), service.frontends.totals
        return DemoState(
            elapsed=self._elapsed,
            seconds=self._settings.seconds,
            phase=self._phase,
            manager=service.managers.shown,
            term=in_seconds(self._settings.timing.term_ns),
            hold=in_seconds(self._settings.timing.hold_ns),
            owners=tuple(self._row(place, shares, now) for place in service.owners),
            strip=service.strip(SLICES),
            clients=len(self._settings.users),
            requests_per_second=self._rate(now, totals.requests),
            totals=totals,
            served=self._judge.entries,
            double_owner=len(self._judge.found),
        )

    def _row(self, place: OwnerPlace, shares: dict[str | None, float], now: Instant) -> OwnerRow:
        report = place.report
        return OwnerRow(
            number=place.number,
            state=place.state,
            state_seconds=in_seconds(now - place.since),
            share=shares.get(place.address, 0.0) if place.address else 0.0,
            ranges=report.ranges if report else 0,
            users=report.users if report else 0,
            served_per_second=self._rates[place.number](now, place.total(lambda it: it.served)),
            refused=place.total(lambda it: it.refused),
        )

    def _summary(self) -> Summary:
        counted = msgspec.structs.asdict(self._service.frontends.totals)
        del counted["has_published"]
        slowest = round(counted.pop("slowest_ns") / 1e9, 3)
        owners, settings = self._service.owners, self._settings
        lapsed = sum(place.total(lambda it: it.lapsed) for place in owners)
        return Summary(
            **counted,
            **cast("dict[str, Any]", self._scenario.figures()),
            slowest_seconds=slowest,
            double_owner=len(self._judge.found),
            served=self._judge.entries,
            voided=sum(place.total(lambda it: it.voided) for place in owners),
            leases_lost_to_failover=lapsed - self._scenario.lapsed,
            seconds=round(self._elapsed, 3),
            **{name: getattr(settings, name) for name in SETTINGS_SHOWN},
        )


def run(settings: DemoSettings, view: Display) -> Summary:
    """Run the demo; nothing of it is left when this returns, or raises."""

    async def main() -> Summary:
        with TemporaryDirectory(prefix="tenure-demo-") as directory:
            return await Demo(settings, Path(directory), view).run()

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        view.close()
