"""How long one attempt may take, in an event loop.

Until the deadline; and a request that may be repeated, only until its key is elsewhere. An owner
that stands still keeps its connections: whoever waits there for an answer waits in vain, while
another owner has the key already. Most attempts are over before anybody looks.
"""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self

from tenure.routing.finder import Finder, Watching
from tenure.routing.trying import InDoubt, Wanted

LOOKS_AFTER_SECONDS = 0.5
"""Most requests are answered by then, and cost no look."""


class AttemptLimit:
    """`async with`, around one attempt: ends it by TimeoutError."""

    __slots__ = (
        "_address",
        "_deadline",
        "_limit",
        "_look",
        "_lookup",
        "_loop",
        "_wanted",
        "_watch",
    )

    def __init__(
        self, lookup: Finder, wanted: Wanted, address: str, deadline: float | None
    ) -> None:
        self._lookup = lookup
        self._wanted = wanted
        self._address = address
        self._deadline = deadline
        self._loop = asyncio.get_running_loop()
        self._limit = asyncio.timeout(None)
        self._look: asyncio.TimerHandle | None = None
        self._watch: Watching | None = None

    async def __aenter__(self) -> Self:
        # One timer for both, since nearly all attempts are over before it rings.
        until = self._loop.time() + LOOKS_AFTER_SECONDS
        if self._deadline is not None:
            until = min(until, self._deadline)
        self._look = self._loop.call_at(until, self._begin_to_look)
        await self._limit.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._look is not None:
            self._look.cancel()
        if self._watch is not None:
            self._watch.cancel()
        await self._limit.__aexit__(kind, error, trace)

    def ended_it(self) -> InDoubt | None:
        """What came of the attempt where this has ended it; None where it did not."""
        if not self._limit.expired():
            return None
        is_late = self._deadline is not None and self._loop.time() >= self._deadline
        why = "the deadline has come" if is_late else "the key is elsewhere by now"
        return InDoubt(f"it had not answered when it was given up, because {why}")

    def _begin_to_look(self) -> None:
        self._limit.reschedule(self._deadline)
        if self._wanted.is_repeatable:
            self._watch = self._lookup.watch(self._wanted.key, self._on_change)
            self._give_up_if_moved()

    def _on_change(self, _: object) -> None:
        self._loop.call_soon_threadsafe(self._give_up_if_moved)

    def _give_up_if_moved(self) -> None:
        if self._lookup.find(self._wanted.key) not in (None, self._address):
            with suppress(RuntimeError):  # it is over already
                self._limit.reschedule(self._loop.time())
