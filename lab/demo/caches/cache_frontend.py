"""A process with visitors who look at products, through one cache; and with people who change them.

Every read and every write goes into the record, with the instants of its call and of its return.
"""

import asyncio
from pathlib import Path
from random import Random, SystemRandom

import msgspec

from lab.demo.caches.cache_reports import CacheFrontendOrders, CacheFrontendReport
from lab.demo.caches.products import product, write_past
from lab.demo.caches.read_record import READ, WRITTEN, ReadRecordWriter
from lab.demo.caches.stale_reads import FIRST_VERSION
from tenure import Cache, Lookup, OutcomeUnknown, TenureError
from tenure.base.instants import Instant
from tenure.cli.demo.leash import Leash, tell
from tenure.cli.demo.reports import POOL
from tenure.runtime.clock import boot_clock

FLUSH_SECONDS = 0.1
VISITORS = 20
LOOKED_AT = 5
"""Products that a visitor looks at one after the other, before a pause."""
PATIENCE_HOLDS = 4
"""The patience in holds of the pool: no fault of the demo keeps a product unread for longer."""


class CacheFrontend:
    """The visitors and writers of one process."""

    def __init__(
        self, orders: CacheFrontendOrders, cache: Cache[int], record: ReadRecordWriter
    ) -> None:
        self._orders = orders
        self._cache = cache
        self._record = record
        self._random: Random = SystemRandom()
        self._stopping = asyncio.Event()
        self._reads = self._failed = self._writes = self._unknown = self._not_written = 0
        self._slowest_read_ns = self._slowest_write_ns = 0
        self._is_warm = False

    async def live(self) -> None:
        """Read everything once; then read and write until told to stop."""
        for number in range(self._orders.products):
            await self._read(number)
        self._is_warm = True
        async with asyncio.TaskGroup() as group:
            for _ in range(VISITORS):
                group.create_task(self._visit())
            for number in self._orders.written:
                group.create_task(self._write(number))

    def stop(self) -> None:
        """Begin nothing more."""
        self._stopping.set()

    async def _pause(self, seconds: float) -> bool:
        """False where it is over."""
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return True
        return False

    async def _visit(self) -> None:
        pause = VISITORS * LOOKED_AT / self._orders.reads_per_second
        while await self._pause(self._random.expovariate(1 / pause)):
            for _ in range(LOOKED_AT):
                # Some products are looked at much more often than others.
                await self._read(int(self._orders.products * self._random.random() ** 3))

    async def _read(self, number: int) -> None:
        began = boot_clock()
        try:
            version = await self._cache.get(product(number))
        except TenureError:
            self._failed += 1
            return
        ended = boot_clock()
        self._reads += 1
        self._slowest_read_ns = max(self._slowest_read_ns, ended - began)
        self._record.add(READ, number, version or 0, began, ended)

    async def _write(self, number: int) -> None:
        version = FIRST_VERSION
        pause = len(self._orders.written) / self._orders.writes_per_second
        while await self._pause(self._random.expovariate(1 / pause)):
            version += 1
            began = boot_clock()
            try:
                await self._store(number, version)
            except OutcomeUnknown:
                self._unknown += 1  # it may be written yet: the next version is higher
                continue
            except TenureError:
                self._not_written += 1
                continue
            ended = boot_clock()
            self._writes += 1
            self._slowest_write_ns = max(self._slowest_write_ns, ended - began)
            self._record.add(WRITTEN, number, version, began, ended)

    async def _store(self, number: int, version: int) -> None:
        if self._orders.passes_by:
            write_past(Path(self._orders.directory), product(number), version)
        else:
            await self._cache.write(product(number), version)

    def report(self) -> CacheFrontendReport:
        """How it is."""
        return CacheFrontendReport(
            is_warm=self._is_warm,
            reads=self._reads,
            hits=self._cache.stats()["hits"],
            failed=self._failed,
            writes=self._writes,
            unknown=self._unknown,
            not_written=self._not_written,
            slowest_read_ns=self._slowest_read_ns,
            slowest_write_ns=self._slowest_write_ns,
        )

    def flush(self) -> None:
        """Record every read and write that has ended by now."""
        self._record.flush(Instant(boot_clock()))


async def be_cache_frontend(leash: Leash) -> None:
    """Read and write until told to stop."""
    orders = msgspec.json.decode(await leash.orders(), type=CacheFrontendOrders)
    record = ReadRecordWriter(Path(orders.directory), orders.name)
    patience = PATIENCE_HOLDS * orders.hold_ns / 1e9
    async with Lookup(orders.manager, pool=POOL) as lookup:
        cache: Cache[int] = Cache(
            lookup, value_type=int, patience=patience, write_patience=patience
        )
        async with cache:
            frontend = CacheFrontend(orders, cache, record)
            living = asyncio.create_task(frontend.live())
            while not await leash.stopped_within(FLUSH_SECONDS) and not living.done():
                frontend.flush()
                tell(frontend.report())
            frontend.stop()
            await living
            frontend.flush()
            tell(frontend.report())
    record.close()
