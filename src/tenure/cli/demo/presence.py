"""The way in which an owner of the presence service carries out an operation: the four steps of PRS
2.2.

The presence of users is kept in a `KeyedState`: what is in it of a range that this process holds is
the state of that range, whether it was published here or came from the owner before. So step 2 asks
whether the lease still holds, and not under which lease something was stored; and between that
question and the last one nothing is waited for, so that a write is in what is handed over, or is
not answered.
"""

import asyncio
from collections.abc import Awaitable, Callable
from random import SystemRandom
from typing import NamedTuple, Protocol, TypeAlias

import msgspec

from tenure import KeyedState, Lease
from tenure.cli.demo.record import RecordWriter
from tenure.runtime.clock import Clock

SHORTEST_WORK_SECONDS, LONGEST_WORK_SECONDS = 0.002, 0.008
"""Long enough that a process that is stopped is usually stopped in the middle of an operation."""


class Status(msgspec.Struct, frozen=True):
    """The text that a user has published, with a version that the user's client counts."""

    text: str
    version: int


class Answered(NamedTuple):
    """The operation was done under one unbroken lease."""

    status: Status | None


class NotServed(NamedTuple):
    """This process is not the owner, and nothing was begun; or it was at first."""

    was_voided: bool
    """Whether the lease was there at first, and ended while the operation was done: what was stored
    may have moved along."""


Outcome: TypeAlias = Answered | NotServed
Operation: TypeAlias = Callable[[Status | None], Status | None]
"""The function that takes the stored presence, and returns the one to store and to answer."""
Work: TypeAlias = Callable[[], Awaitable[None]]

_random = SystemRandom()


class Checks(Protocol):
    """The checks of an `Owner`."""

    def check(self, key: str, /) -> Lease | None: ...
    def holds(self, lease: Lease, /) -> bool: ...


async def some_work() -> None:
    """Wait like an operation that, for example, filters bad language."""
    await asyncio.sleep(_random.uniform(SHORTEST_WORK_SECONDS, LONGEST_WORK_SECONDS))


class Presence:
    """The presence of the users whose keys this process owns."""

    def __init__(
        self,
        checks: Checks,
        state: KeyedState[Status],
        record: RecordWriter,
        clock: Clock,
        work: Work,
    ) -> None:
        self._checks = checks
        self._record = record
        self._clock = clock
        self._work = work
        self._state = state
        self.served = 0
        self.refused = 0
        self.voided = 0

    def __len__(self) -> int:
        return len(self._state)

    async def read(self, user: str) -> Outcome:
        """Return what `user` has published; None if nothing is known."""
        return await self._serve(user, lambda stored: stored)

    async def publish(self, user: str, status: Status) -> Outcome:
        """Store what `user` has published; the answer is the newest that is known.

        A request that was overtaken, by one that its client sent later, changes nothing.
        """

        def newest(stored: Status | None) -> Status:
            return stored if stored and stored.version > status.version else status

        return await self._serve(user, newest)

    async def _serve(self, user: str, operation: Operation) -> Outcome:
        lease = self._checks.check(user)  # (1) is this the owner?
        if lease is None:
            self.refused += 1
            return NotServed(was_voided=False)
        began = self._clock()
        await self._work()
        if not self._checks.holds(lease):  # (2) does what is stored still count?
            return self._void()
        stored = self._state.get(user)
        status = operation(stored)  # (3) the operation itself
        if status is not None and status != stored:
            self._state[user] = status
        ended = self._clock()
        if not self._checks.holds(lease):  # (4) did the lease cover all of it?
            return self._void()
        self._record.add(lease.key, lease.number, began, ended)
        self.served += 1
        return Answered(status)  # (5) let it out

    def _void(self) -> NotServed:
        self.voided += 1
        return NotServed(was_voided=True)


class NoChecks:
    """The checks of an owner that tests break on purpose: it keeps every lease for ever."""

    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        self._remembered: dict[str, Lease] = {}

    def check(self, key: str, /) -> Lease | None:
        """The lease for `key` that it has, or had."""
        lease = self._checks.check(key)
        if lease is not None:
            self._remembered[key] = lease
        return self._remembered.get(key)

    def holds(self, lease: Lease, /) -> bool:
        """Whether `lease` was ever its own."""
        return True
