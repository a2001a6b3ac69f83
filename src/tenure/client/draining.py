"""How an owner leaves without losing anything: bodies finish, and state is handed over."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from tenure.base.instants import SECOND_NS, Instant
from tenure.base.ranges import WHOLE
from tenure.client.guard import Guards
from tenure.client.hand_off.transfers import Transfers
from tenure.client.shell import Shell
from tenure.protocol.lease.owner.events import DrainRequested, OwnerView

RECONNECT_SECONDS = 1.0
"""For an owner that leaves with nothing in its hands: a lost connection is made again sooner, and a
manager that is there should hear of it."""
SETTLING_PART = 0.75
"""Of the time in which a leaving owner hands over: so long it waits for what is to finish. The rest
is for the state, which would be lost otherwise."""


class OwnerDrain:
    """One owner that goes on serving until it has nothing left."""

    def __init__(
        self,
        shell: Shell[Any, Any, Any],
        guards: Guards,
        transfers: Transfers | None,
        view: Callable[[], OwnerView],
        closed: asyncio.Event,
        log: logging.Logger,
    ) -> None:
        self._shell = shell
        self._guards = guards
        self._transfers = transfers
        self._view = view
        self._closed = closed
        self._log = log

    async def run(self, seconds: float) -> None:
        """Go on serving until all bodies are done that are to finish, and then until everything is
        handed over, or given back, or that has taken `seconds`.
        """
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + seconds
        if self._guards.finishing():
            await self._finish(seconds if self._transfers is None else seconds * SETTLING_PART)
        left_over = ends_at - loop.time()
        if self._transfers is not None and left_over > 0:
            settling_ns = int(left_over * SETTLING_PART * SECOND_NS)
            self._transfers.settle_by = Instant(self._shell.clock() + settling_ns)
            await self._hand_over_all(left_over)

    async def _finish(self, seconds: float) -> None:
        finished = asyncio.Event()
        self._guards.when_finished((WHOLE,), lambda: self._shell.call(finished.set))
        try:
            async with asyncio.timeout(seconds):
                await finished.wait()
        except TimeoutError:
            self._log.warning(
                "%s leaves before %d guarded bodies that were to finish are done: it has waited "
                "for them for %g s",
                self._shell.name,
                self._guards.finishing(),
                seconds,
            )

    async def _hand_over_all(self, seconds: float) -> None:
        limit, view, counts = seconds, self._view(), self._shell.counts
        if view.is_searching and not (view.listed or view.copies):
            limit = min(limit, RECONNECT_SECONDS)  # nothing to hand over, and nobody to tell
        handed_before = counts["ranges handed over"]
        self._shell.post(DrainRequested())
        try:
            async with asyncio.timeout(limit):
                await self._closed.wait()
            handed = counts["ranges handed over"] - handed_before
            self._log.info("%s has handed over %d ranges, and leaves", self._shell.name, handed)
        except TimeoutError:
            view = self._view()
            held = view.leases + view.copies
            if not held:
                return  # its term ran out meanwhile
            counts["drains cut short"] += 1
            self._log.warning(
                "%s could not hand over everything within %.3g s: it returns %d ranges without "
                "their state, and their loss is signalled",
                self._shell.name,
                seconds,
                held,
            )
