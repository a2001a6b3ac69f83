"""The application's side of a hand-off: its handler, called where the application lives.

A call may take long, or fail; its caller waits for it in a loop of its own. A discard runs in the
order of the callbacks: after the `on_revoke` that belongs to it, and before any `on_grant` that
follows. Only if a chunk is still being imported does the discard wait outside that order, because
the handler may never return, and would keep all other callbacks waiting. The owner has not let go
of that range meanwhile, so the manager grants it to others.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future

from tenure.base.instants import SECOND_NS
from tenure.base.ranges import KeyRange
from tenure.client.callbacks import Callbacks, Job
from tenure.client.guard import Guards
from tenure.client.hand_off.handler import HandOffHandler, Mark, exported_by, result_of, settling
from tenure.errors import TenureError
from tenure.protocol.lease.owner.giving import SETTLE_NS, SMALL_BYTES

UNTAKEN = "the range is not taken here before it returns, and goes to other owners"
RETRY_SECONDS = 1.0
"""How long to wait after a discard failed. The range is not served here before a discard has
succeeded.
"""


NOT_WANTED = "it is no longer wanted"
"""The reason that a taker gives for a range that it will not get after all, as when it leaves."""


class NotWanted(TenureError):
    """The state that arrives is no longer wanted."""


class Arrival:
    """The state of an arriving range that the application has taken in."""

    def __init__(self, key_range: KeyRange, number: int) -> None:
        self.range = key_range
        self.number = number
        self.is_stopped = False
        """Set in the engine's loop, for good: no chunk is taken in from then on, but for one that
        is under way."""
        self.under_way = asyncio.Lock()


class Application:
    """Calls one handler."""

    def __init__(
        self,
        handler: HandOffHandler,
        callbacks: Callbacks,
        counts: Counter[str],
        name: str,
        logger: logging.Logger,
        guards: Guards,
    ) -> None:
        self._handler = handler
        self._settles = settling(handler)
        self._guards = guards
        self._callbacks = callbacks
        self._counts = counts
        self._name = name
        self._log = logger
        self._turn = asyncio.Lock()
        self.is_leaving = False
        """Whether no range will be granted any longer, so that a discard that fails is not tried
        again.
        """

    @property
    def settle_ns(self) -> int:
        """Return for how long to wait until a range has settled, unless the handler sets another
        time.
        """
        given = getattr(self._handler, "settle_seconds", None)
        return SETTLE_NS if given is None else round(given * SECOND_NS)

    async def _wait_for_turn(self) -> None:
        """Handle only one large chunk in each turn of the application's event loop, so that its
        requests, and small urgent chunks, wait for one large chunk and not for all of them.
        """
        async with self._turn:
            await asyncio.sleep(0)

    # --- giving ---

    async def export(
        self, key_range: KeyRange, since: Mark | None
    ) -> tuple[Mark, AsyncIterator[bytes]]:
        call = self._callbacks.run(lambda: exported_by(self._handler, key_range, since))
        return await asyncio.wrap_future(call)

    def next_of(
        self, chunks: AsyncIterator[bytes], *, is_urgent: bool = False
    ) -> "Future[bytes | None]":
        """The next chunk; None at the end."""

        async def following() -> bytes | None:
            if not is_urgent:
                await self._wait_for_turn()
            return await anext(chunks, None)

        return self._callbacks.run(following)

    async def settle(self, key_range: KeyRange, seconds: float) -> None:
        """Let what has begun in the range finish: the bodies that are to finish, and what the
        handler waits for. The caller calls `resume` afterwards.
        """
        handler, waits = self._settles, [self._guards.settle(key_range)]

        async def settle() -> None:
            assert handler is not None
            try:
                await result_of(handler.settle_range(key_range, seconds))
            except Exception:  # noqa: BLE001  # the application's: the range moves all the same
                self._log.exception("%s: settle_range failed for %s", self._name, key_range)

        if handler is not None:
            waits.append(self._callbacks.run(settle))
        await asyncio.gather(*map(asyncio.wrap_future, waits))

    def resume(self, key_range: KeyRange) -> None:
        """The range that was to settle has moved, or does not move after all."""
        self._guards.resume(key_range)
        if self._settles is not None:
            call = Job("resume_range", self._settles.resume_range, key_range, str(key_range))
            self._callbacks.put(call)

    def say_unsettled(self, key_range: KeyRange) -> None:
        """Log that the range is handed over although what had begun there still runs."""
        self._counts["ranges not settled"] += 1
        self._log.warning(
            "%s hands over %s before everything that was to finish there is done: it has waited "
            "for as long as it may, and what goes on there has lost its lease",
            self._name,
            key_range,
        )

    def close(self, chunks: AsyncIterator[bytes]) -> None:
        """Take no more arrivals."""

        async def close() -> None:
            if hasattr(chunks, "aclose"):
                await chunks.aclose()

        self._callbacks.run(close)

    # --- taking ---

    async def begin(self, arrival: Arrival) -> None:
        """Remove what a late task may have left behind in the range."""

        async def begin() -> None:
            async with arrival.under_way:
                with self._callbacks.watched("discard_range", str(arrival.range), UNTAKEN):
                    await result_of(self._handler.discard_range(arrival.range))

        await asyncio.wrap_future(self._callbacks.run(begin))

    async def take(self, arrival: Arrival, chunk: bytes, *, is_urgent: bool = False) -> None:
        async def take() -> None:
            if len(chunk) > SMALL_BYTES and not is_urgent:
                await self._wait_for_turn()
            async with arrival.under_way:
                if arrival.is_stopped:
                    raise NotWanted(NOT_WANTED)
                with self._callbacks.watched("import_chunk", str(arrival.range), UNTAKEN):
                    await result_of(self._handler.import_chunk(arrival.range, chunk))

        await asyncio.wrap_future(self._callbacks.run(take))

    # --- dropping ---

    def discard(
        self, ranges: Sequence[KeyRange], arrivals: Sequence[Arrival], then: Callable[[], None]
    ) -> None:
        """Discard what is in `ranges` when the callbacks that were put before are done, and the
        chunks of `arrivals` that are under way are in; then call `then`, however often it takes.
        """
        discard = _Discard(tuple(ranges), tuple(arrivals), then)
        self._put(discard)

    def _put(self, discard: "_Discard") -> None:
        about = ", ".join(map(str, discard.ranges[:3]))
        then = discard.end
        self._callbacks.put(Job("discard_range", self._discard, discard, about, then=then))

    async def _put_later(self, discard: "_Discard") -> None:
        for arrival in discard.arrivals:
            async with arrival.under_way:
                """Its chunk is in."""
        self._put(discard)

    async def _discard(self, discard: "_Discard") -> None:
        discard.is_to_come = True
        if any(arrival.under_way.locked() for arrival in discard.arrivals):
            self._callbacks.run(lambda: self._put_later(discard))
            return
        try:
            for key_range in discard.ranges:
                await result_of(self._handler.discard_range(key_range))
            discard.is_to_come = False
        except Exception as error:  # noqa: BLE001  # the application's: the library goes on
            self._counts["discards failed"] += 1
            before, discard.why = discard.why, repr(error)
            again = "" if self.is_leaving else f", and is called again in {RETRY_SECONDS:g} s"
            self._log.log(
                logging.ERROR if before != discard.why else logging.DEBUG,
                "%s: discard_range failed for %s: what it was to drop must not be served, so the "
                "range is not taken before it succeeds%s",
                self._name,
                ", ".join(map(str, discard.ranges)),
                again,
                exc_info=before != discard.why,
            )
            if self.is_leaving:
                discard.is_to_come = False
            else:
                asyncio.get_running_loop().call_later(RETRY_SECONDS, self._put, discard)


class _Discard:
    def __init__(
        self,
        ranges: tuple[KeyRange, ...],
        arrivals: tuple[Arrival, ...],
        then: Callable[[], None],
    ) -> None:
        self.ranges = ranges
        self.arrivals = arrivals
        self.is_to_come = False
        """Whether it has not been done, and is put in the queue again."""
        self.why = ""
        """The last failure, which is logged as a warning only once."""
        self._then = then

    def end(self) -> None:
        if not self.is_to_come:
            self._then()
