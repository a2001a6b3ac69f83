"""A process that owns products: an `Owner` with a `Volume`, and nothing else.

SIGTERM is for leaving as a service should: everything is handed over, and read until it is.
"""

import asyncio
import os
import signal
from pathlib import Path

import msgspec

from lab.demo.caches.cache_reports import CacheOwnerOrders
from lab.demo.caches.products import Products
from tenure import KeyRange, Owner, Volume
from tenure.cli.demo.leash import Leash, tell
from tenure.cli.demo.owner import DRAIN_SECONDS, HOST, REPORT_SECONDS, held
from tenure.cli.demo.reports import POOL, OwnerReport
from tenure.client.hand_off.handler import Granted
from tenure.runtime.clock import boot_clock


async def be_cache_owner(leash: Leash) -> None:
    """Serve until told to stop."""
    orders = msgspec.json.decode(await leash.orders(), type=CacheOwnerOrders)
    to_leave = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, to_leave.set)
    products, with_state = Products(Path(orders.directory)), 0

    def on_grant(ranges: tuple[KeyRange, ...]) -> None:
        nonlocal with_state
        assert isinstance(ranges, Granted)
        with_state += len(ranges.with_state)

    volume = Volume(
        products.load, products.store, value_type=int, durable=True, term=orders.term_seconds
    )
    owner = Owner(
        orders.manager,
        pool=POOL,
        name=orders.name,
        address=f"http://{HOST}:{os.getpid()}",  # only a name: caches have a port of their own
        on_grant=on_grant,
        hand_off=products.state,
        volume=volume,
    )

    def report() -> OwnerReport:
        return OwnerReport(
            at=boot_clock(),
            address=owner.address,
            ranges=held(owner),
            users=len(products.state),
            served=products.stores,
            loads=products.loads,
            with_state=with_state,
        )

    async with owner:
        told = [asyncio.create_task(each.wait()) for each in (leash.stopping, to_leave)]
        while not any(each.done() for each in told):
            tell(report())
            await asyncio.wait(told, timeout=REPORT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        closing = asyncio.ensure_future(
            owner.close(drain=DRAIN_SECONDS if to_leave.is_set() else 0)
        )
        while not closing.done():
            tell(report())
            await asyncio.wait({closing}, timeout=REPORT_SECONDS)
        for each in told:
            each.cancel()
    tell(report())
    products.close()
