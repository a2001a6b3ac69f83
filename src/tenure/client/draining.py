"""How an owner leaves without losing anything: it lets bodies finish, and hands over its state."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from tenure.base.instants import FAR_FUTURE, SECOND_NS, Instant, in_seconds, seconds
from tenure.base.ranges import WHOLE
from tenure.client.guard import Guards
from tenure.client.hand_off.transfers import Transfers
from tenure.client.shell import Shell
from tenure.protocol.lease.owner.events import DrainRequested, OwnerView

RECONNECT_NS = SECOND_NS
"""How long an owner that holds nothing tries to leave in order: a lost connection is made again
sooner than this, and a manager that is up should hear of the departure.
"""
ALONE_SECONDS = 2.0
"""How long an owner that leaves waits for a manager, where none answers and nothing is at stake."""
FAILOVER_RENEWALS = 2
"""In how many renewals' time another manager leads at the latest: half a term. An owner that has
something to hand over waits for that, since its leases outlast it.
"""
SUCCESSOR_LOOKS_NS = SECOND_NS
"""How often an owner that waits for its successor looks whether that still runs."""
MISSED = 2
"""After so many looks at which there was none, it is waited for no longer: supervisors begin one
that has ended again.
"""
LOOKS_NS = SECOND_NS // 10
"""How often an owner that leaves looks whether a manager answers."""
SETTLING_PART = 0.75
"""The share of a leaving owner's time in which it waits for bodies that are to finish, or for an
owner that joins. The rest is for the state, which would otherwise be lost.
"""


class OwnerDrain:
    """Keeps one owner serving until it has nothing left."""

    def __init__(
        self,
        shell: Shell[Any, Any, Any],
        guards: Guards,
        transfers: Transfers | None,
        view: Callable[[], OwnerView],
        closed: asyncio.Event,
        log: logging.Logger,
        has_successor: Callable[[float], bool],
    ) -> None:
        self._shell = shell
        self._guards = guards
        self._transfers = transfers
        self._view = view
        self._closed = closed
        self._log = log
        self._has_successor = has_successor
        self.alone_seconds = 0.0
        """For how long it has waited for a manager, if it has given up because none has answered.
        """
        self._alone_since = FAR_FUTURE

    async def run(self, patience: float) -> None:
        """Serve until all bodies that are to finish are done, and then until everything is handed
        over or given back, or `patience` seconds have passed.
        """
        ends_at = Instant(self._shell.clock() + seconds(patience))
        if self._guards.finishing():
            await self._finish(patience if self._transfers is None else patience * SETTLING_PART)
        now = self._shell.clock()
        if self._transfers is not None and now < ends_at:
            settle_by = Instant(now + int((ends_at - now) * SETTLING_PART))
            self._transfers.settle_by = settle_by
            await self._hand_over_all(now, settle_by, ends_at)

    async def _finish(self, patience: float) -> None:
        finished = asyncio.Event()
        self._guards.when_finished((WHOLE,), lambda: self._shell.call(finished.set))
        by = Instant(self._shell.clock() + seconds(patience))
        if not await self._shell.happens(finished, by):
            self._log.warning(
                "%s leaves before %d guarded bodies that were to finish are done: it has waited "
                "for them for %g s",
                self._shell.name,
                self._guards.finishing(),
                patience,
            )

    async def _hand_over_all(self, now: Instant, settle_by: Instant, ends_at: Instant) -> None:
        by, view, counts = ends_at, self._view(), self._shell.counts
        if view.is_searching and not (view.listed or view.copies):
            by = min(by, Instant(now + RECONNECT_NS))  # nothing to hand over, and nobody to tell
        handed_before = counts["ranges handed over"]
        waits = self._has_successor(0.0)
        self._shell.post(DrainRequested(waits))
        if waits and not await self._is_succeeded(min(by, settle_by)):
            self._shell.post(DrainRequested(waits=False))
        if await self._closes(by):
            handed = counts["ranges handed over"] - handed_before
            if waits and view.leases and not handed:
                self._log.warning(
                    "%s leaves, and nobody has taken its state, whose loss is signalled: its "
                    "successor has not joined in time, or has ended",
                    self._shell.name,
                )
            else:
                self._log.info("%s has handed over %d ranges, and leaves", self._shell.name, handed)
            return
        view = self._view()
        held = view.leases + view.copies
        if not held:
            return  # its term ran out meanwhile
        counts["drains cut short"] += 1
        if self.alone_seconds:
            return  # the engine says what becomes of its ranges
        self._log.warning(
            "%s could not hand over everything within %.3g s: it returns %d ranges without "
            "their state, and their loss is signalled",
            self._shell.name,
            in_seconds(ends_at - now),
            held,
        )

    async def _is_succeeded(self, by: Instant) -> bool:
        """Wait as `_closes` does, while another process is about to take its place. Where all
        processes of a supervisor end at once, the last one that it began is a successor that goes.
        """
        began, missed = self._shell.clock(), 0
        while missed < MISSED:
            look_at = min(by, Instant(self._shell.clock() + SUCCESSOR_LOOKS_NS))
            if await self._closes(look_at):
                return True
            now = self._shell.clock()
            if self.alone_seconds or now >= by:
                return False
            missed = 0 if self._has_successor(in_seconds(now - began)) else missed + 1
        return False

    async def _closes(self, by: Instant) -> bool:
        """Wait until it is closed, at most until `by`. Without a manager nobody can take anything:
        so it gives up where none has answered for a while, and does not wait again.
        """
        while not self.alone_seconds:
            now, view = self._shell.clock(), self._view()
            self._alone_since = min(self._alone_since, now) if view.is_searching else FAR_FUTURE
            patience = seconds(ALONE_SECONDS)
            if view.leases + view.copies:
                patience = max(patience, FAILOVER_RENEWALS * view.renew_ns)
            if now - self._alone_since >= patience:
                self.alone_seconds = in_seconds(patience)
            if await self._shell.happens(self._closed, min(by, Instant(now + LOOKS_NS))):
                return True
            if self._shell.clock() >= by:
                return False
        return False
