"""The processes of the demo with caches: a manager, owners with a database, frontends."""

import asyncio
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from lab.demo.caches.cache_reports import (
    CacheFrontendOrders,
    CacheFrontendReport,
    CacheOwnerOrders,
    decode_cache_report,
)
from lab.demo.caches.products import make_database
from tenure import Lookup
from tenure.cli.demo.children import Child
from tenure.cli.demo.places import OwnerPlace
from tenure.cli.demo.reports import POOL
from tenure.cli.demo.service import DemoSettings, PresenceService
from tenure.runtime.clock import boot_clock

TERMS_IN_A_TERM = 4
"""Volume leases are so much shorter than an owner's."""
PRODUCTS = 200


class CacheDemoSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a demo with caches."""

    service: DemoSettings
    products: int = PRODUCTS
    written: int = PRODUCTS
    """How many of the products are ever written."""
    reads_per_second: float = 400.0
    """The rate of each frontend."""
    writes_per_second: float = 5.0
    """The rate of each frontend."""

    @property
    def term_seconds(self) -> float:
        """The term of volume leases, in seconds."""
        return self.service.timing.term_ns / TERMS_IN_A_TERM / 1e9


class CacheService(PresenceService):
    """Owners with a database, and frontends with caches."""

    owner_role = "cache-owner"
    module = "lab.demo"

    def __init__(
        self, settings: CacheDemoSettings, directory: Path, tell: Callable[[str], None]
    ) -> None:
        super().__init__(settings.service, directory, tell)
        self.of_caches = settings
        self._reports: dict[int, CacheFrontendReport] = {}
        self._reported = asyncio.Event()

    @property
    def totals(self) -> CacheFrontendReport:
        """The sums of what all frontends have counted."""
        first, *others = self._reports.values() or [CacheFrontendReport()]
        for other in others:
            first = first.plus(other)
        return first

    async def start(self) -> None:
        """Start everything; done when every cache is warm."""
        settings = self.settings
        self.tell(
            f"starting a manager, {settings.owners} owners with a database and "
            f"{settings.frontends} frontends with caches"
        )
        make_database(self.directory, self.of_caches.products)
        await self.managers.start()
        await asyncio.gather(*map(self.start_owner, self.owners))
        for number in range(settings.frontends):
            on_line = partial(self._on_line, number)
            name = f"frontend-{number + 1}"
            child = await self.children.start("cache-frontend", name, on_line)
            self.frontends.children.append(child)
        await self.managers.are_ready()
        self.tell(f"manager at {self.managers.shown}, preset {settings.preset}")
        for place in self.owners:
            self.order(place)
        await asyncio.gather(*(place.is_serving() for place in self.owners))
        self.lookup = await Lookup(self.managers.urls, pool=POOL).__aenter__()
        for number, child in enumerate(self.frontends.children):
            child.tell(self._orders_for(number, child))
        while len(self._reports) < settings.frontends or not self.totals.is_warm:
            self._reported.clear()
            await self._reported.wait()
        warm_at = boot_clock()  # an older report does not count all that has warmed the caches
        await asyncio.gather(*(place.next_report(warm_at) for place in self.owners))
        self.tell(
            f"{settings.frontends} caches have {self.of_caches.products} products each, and "
            f"their volume leases last {self.of_caches.term_seconds:g} s"
        )

    def _on_line(self, number: int, line: bytes) -> None:
        self._reports[number] = decode_cache_report(line)
        self._reported.set()

    def order(self, place: OwnerPlace) -> None:
        assert place.child is not None
        place.child.tell(
            CacheOwnerOrders(
                self.managers.urls,
                place.child.name,
                str(self.directory),
                self.of_caches.term_seconds,
            )
        )

    def _orders_for(self, number: int, child: Child) -> CacheFrontendOrders:
        settings = self.of_caches
        return CacheFrontendOrders(
            manager=self.managers.urls,
            name=child.name,
            directory=str(self.directory),
            products=settings.products,
            written=tuple(range(number, settings.written, self.settings.frontends)),
            reads_per_second=settings.reads_per_second,
            writes_per_second=settings.writes_per_second,
            hold_ns=self.settings.timing.hold_ns,
            passes_by=self.settings.scenario == "break-owner",
        )

    # --- trouble ---

    def stop_frontend(self, number: int) -> None:
        """Have a frontend stand still: writers wait for it, for as long as its leases last."""
        self.frontends.children[number].send(signal.SIGSTOP)

    def wake_frontend(self, number: int) -> None:
        """Have it go on. It does not know that it stood still."""
        self.frontends.children[number].send(signal.SIGCONT)
