"""Limits how long one attempt may take, in an event loop, and how many may wait for one owner.

An attempt may take until the deadline; that of a request that may be repeated, only until its key
is elsewhere. A hung owner keeps its connections: a client would wait there in vain for an answer,
while another owner has the key already. Most attempts are soon over, so they have no timers of
their own: one timer of the loop looks at all that take long.
"""

import asyncio
from collections.abc import Callable
from typing import Self

from tenure.routing.finder import Finder, Watching
from tenure.routing.outstanding import Outstanding
from tenure.routing.trying import InDoubt, Wanted
from tenure.runtime.loops import call_in
from tenure.runtime.task_limits import TaskLimit

LOOKS_AFTER_SECONDS = 0.5
"""How long an attempt takes before it is looked at; most requests are answered by then."""
LOOKS_EVERY_SECONDS = 0.1


class Lookout:
    """Looks at the attempts of one event loop that are under way."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, lookup: Finder, outstanding: Outstanding
    ) -> None:
        self.loop = loop
        self.lookup = lookup
        self.outstanding = outstanding
        self.under_way: dict[AttemptLimit, float] = {}
        """The times at which to look at each attempt. Attempts that began first come first."""
        self._is_looking = False

    def add(self, limit: "AttemptLimit", now: float) -> None:
        """An attempt has begun."""
        self.under_way[limit] = now + LOOKS_AFTER_SECONDS
        if not self._is_looking:
            self._is_looking = True
            self.loop.call_later(LOOKS_EVERY_SECONDS, self._look)

    def _look(self) -> None:
        now = self.loop.time()
        for limit, due in list(self.under_way.items()):
            if now < due:
                break
            del self.under_way[limit]
            limit.watch_key()
        self._is_looking = bool(self.under_way)
        if self._is_looking:
            self.loop.call_later(LOOKS_EVERY_SECONDS, self._look)


class AttemptLimit(TaskLimit):
    """Put it with `with` around one attempt in a task: it ends the attempt by TimeoutError. Raises
    Overloaded.
    """

    _began: float
    _timer: asyncio.TimerHandle | None = None
    _watch: Watching | None = None

    def __init__(
        self,
        lookout: Lookout,
        wanted: Wanted,
        address: str,
        deadline: float | None,
        seconds: Callable[[], float] | None = None,
    ) -> None:
        super().__init__(lookout.loop)
        self._lookout = lookout
        self._wanted = wanted
        self._address = address
        self._deadline = deadline
        self._seconds = seconds
        """How long a request may take from when it begins, if there is no deadline yet; asked once
        it matters.
        """

    def __enter__(self) -> Self:
        lookout = self._lookout
        lookout.outstanding.begin(self._address)
        super().__enter__()
        now, deadline = self._loop.time(), self._deadline
        self._began = now
        if deadline is not None and deadline < now + LOOKS_AFTER_SECONDS:
            self._timer = self._loop.call_at(deadline, self.end_it)
        else:
            lookout.add(self, now)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        lookout = self._lookout
        lookout.outstanding.end(self._address)
        lookout.under_way.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
        if self._watch is not None:
            self._watch.cancel()
        if self.has_ended_it:
            super().__exit__(kind, error, trace)
        else:
            self._task = None

    @property
    def deadline(self) -> float | None:
        """When the attempt must be over, on the clock of the loop."""
        if self._deadline is None and self._seconds is not None:
            self._deadline = self._began + self._seconds()
        return self._deadline

    def ended_it(self) -> InDoubt | None:
        """The outcome of the attempt if this limit has ended it; None otherwise."""
        if not self.has_ended_it:
            return None
        deadline = self.deadline
        is_late = deadline is not None and self._loop.time() >= deadline
        why = "the deadline has come" if is_late else "the key is elsewhere by now"
        return InDoubt(f"it had not answered when it was given up, because {why}")

    def watch_key(self) -> None:
        """The attempt takes long: end it at the deadline, or when its key is elsewhere."""
        if self.deadline is not None:
            self._timer = self._loop.call_at(self.deadline, self.end_it)
        if self._wanted.is_repeatable:
            self._watch = self._lookout.lookup.watch(self._wanted.key, self._on_change)
            self._end_it_if_moved()

    def _on_change(self, _: object) -> None:
        call_in(self._loop, self._end_it_if_moved)

    def _end_it_if_moved(self) -> None:
        if self._lookout.lookup.find(self._wanted.key) not in (None, self._address):
            self.end_it()
