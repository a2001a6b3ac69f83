"""The demo with caches, from its start to its summary."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from lab.demo.caches.cache_faults import CacheFaults
from lab.demo.caches.cache_summary import CacheSummary
from lab.demo.caches.cache_view import CacheDisplay, CacheOwnerRow, CachePicture
from lab.demo.caches.read_record import ReadRecordReader
from lab.demo.caches.service import CacheDemoSettings, CacheService
from lab.demo.caches.stale_reads import ReadJudge
from tenure.base.instants import Instant, in_seconds, seconds
from tenure.cli.demo.places import OwnerPlace
from tenure.cli.demo.run import SIGNALS, Rate
from tenure.runtime.clock import boot_clock

SHOW_SECONDS = 0.2
SHOWN_AT_ONCE = 3


class MakesTrouble(Protocol):
    """The part that kills, stops and moves the processes of the service."""

    @property
    def counts(self) -> Counter[str]:
        """How often each fault happened, by the names of `CacheSummary`."""
        ...

    @property
    def dark(self) -> list[float]:
        """The times for which the keys of killed owners had no owner, in seconds."""
        ...

    async def play(self, end: Instant) -> None:
        """Cause faults until shortly before `end`."""
        ...


class CacheDemo:
    """One run."""

    def __init__(
        self,
        settings: CacheDemoSettings,
        directory: Path,
        view: CacheDisplay,
        trouble: Callable[[CacheService, Callable[[str], None]], MakesTrouble] = CacheFaults,
    ) -> None:
        self._settings = settings
        self._view = view
        self.service = CacheService(settings, directory, self._tell)
        self._trouble = trouble(self.service, self._tell)
        self._record = ReadRecordReader(directory)
        self.judge = ReadJudge(settings.service.frontends)
        self._began: Instant | None = None
        self._ended: Instant | None = None
        self._phase = "starting"
        self._rate = Rate()
        self._loads_before = 0
        self._interrupted = asyncio.Event()

    async def run(self) -> CacheSummary:
        """All of it. Raises TenureError where a process died that was not killed."""
        self._listen_to_signals()
        showing = asyncio.create_task(self._go_on_showing())
        try:
            if await self._unless_interrupted(self.service.start(), showing):
                self._began, self._phase = boot_clock(), "running"
                self._loads_before = self._loads()
                await self._unless_interrupted(self._go_on(), showing)
            self._phase, self._ended = "ending", boot_clock()
            await self.service.finish()
            self._look(is_over=True)
        finally:
            showing.cancel()
            await self.service.close()
        return self._summary()

    def _listen_to_signals(self) -> None:
        loop, main = asyncio.get_running_loop(), asyncio.current_task()
        assert main is not None

        def on_signal() -> None:
            if self._interrupted.is_set():  # asked twice: end it, without the summary
                main.cancel()
            self._interrupted.set()

        for number in SIGNALS:
            loop.add_signal_handler(number, on_signal)

    async def _unless_interrupted(
        self, work: Coroutine[Any, Any, None], showing: "asyncio.Task[None]"
    ) -> bool:
        task = asyncio.create_task(work)
        interrupted = asyncio.create_task(self._interrupted.wait())
        ends: set[asyncio.Future[Any]] = {
            task,
            interrupted,
            showing,
            self.service.children.failed,
        }
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

    async def _go_on(self) -> None:
        assert self._began is not None
        end = Instant(self._began + seconds(self._settings.service.seconds))
        await self._trouble.play(end)
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

    def _look(self, *, is_over: bool = False) -> None:
        found = len(self.judge.found)
        for frontend, entry in self._record.new():
            self.judge.add(frontend, entry)
        self.judge.judge(is_over=is_over)
        for each in self.judge.found[found : found + SHOWN_AT_ONCE]:
            self._tell(f"A STALE READ: {each}")
        self._view.show(self._picture())

    def _picture(self) -> CachePicture:
        service, shares = self.service, self.service.shares()
        totals = service.totals
        return CachePicture(
            elapsed=self._elapsed,
            seconds=self._settings.service.seconds,
            phase=self._phase,
            owners=tuple(self._row(place, shares) for place in service.owners),
            totals=totals,
            reads_per_second=self._rate(boot_clock(), totals.reads),
            judged=self.judge.reads,
            stale=len(self.judge.found),
        )

    def _row(self, place: OwnerPlace, shares: dict[str | None, float]) -> CacheOwnerRow:
        return CacheOwnerRow(
            number=place.number,
            state=place.state,
            share=shares.get(place.address, 0.0) if place.address else 0.0,
            loads=place.total(lambda it: it.loads),
            stores=place.total(lambda it: it.served),
        )

    def _loads(self) -> int:
        return sum(place.total(lambda it: it.loads) for place in self.service.owners)

    def _summary(self) -> CacheSummary:
        totals, settings = self.service.totals, self._settings
        counts = self._trouble.counts
        return CacheSummary(
            reads=totals.reads,
            hits=totals.hits,
            stale=len(self.judge.found),
            writes=totals.writes,
            slowest_write_ms=round(totals.slowest_write_ns / 1e6, 3),
            owner_kills=counts["owner_kills"],
            moves=sum(place.total(lambda it: it.with_state) for place in self.service.owners),
            judged=self.judge.reads,
            failed=totals.failed,
            unknown=totals.unknown,
            not_written=totals.not_written,
            slowest_read_ms=round(totals.slowest_read_ns / 1e6, 3),
            loads=self._loads() - self._loads_before,
            owner_stops=counts["owner_stops"],
            owner_restarts=counts["owner_restarts"],
            frontend_stops=counts["frontend_stops"],
            slowest_dark_seconds=round(max(self._trouble.dark, default=0.0), 3),
            products=settings.products,
            owners=settings.service.owners,
            frontends=settings.service.frontends,
            preset=settings.service.preset,
            seconds=round(self._elapsed, 3),
        )


def run_caches_demo(
    settings: CacheDemoSettings,
    view: CacheDisplay,
    trouble: Callable[[CacheService, Callable[[str], None]], MakesTrouble] = CacheFaults,
) -> CacheSummary:
    """Run the demo; nothing of it is left when this returns, or raises."""

    async def main() -> CacheSummary:
        with TemporaryDirectory(prefix="tenure-demo-") as directory:
            return await CacheDemo(settings, Path(directory), view, trouble).run()

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        view.close()
