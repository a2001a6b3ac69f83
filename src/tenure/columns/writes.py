"""One write of a store: its version is drawn once, and a repeat says exactly the same again."""

from collections.abc import Callable, Coroutine, Generator
from typing import Any

from tenure.columns.backends.contract import Backend
from tenure.columns.requests import RowMutation
from tenure.errors import (
    ConfigurationError,
    Fenced,
    NotEnoughReplicas,
    Overloaded,
    TenureError,
    TooLate,
    Unreachable,
    UsageError,
    WriteUnknown,
)
from tenure.protocol.replication.clock import WriteClock
from tenure.protocol.replication.row.admission import Ahead, Attempt, Late, Outranked, Refused
from tenure.protocol.replication.row.versions import Version

NOTHING_SENT = (UsageError, NotEnoughReplicas, Overloaded, Unreachable)
"""A backend raises these if it has not sent the write."""


def outranking(refused: Outranked, number: int) -> str:
    """The reason why a lease of that number may not write the row."""
    if refused.fence > number:
        return f"a lease of number {refused.fence} has been here, so number {number} is refused"
    return (
        f"the lease of number {number} is refused, because its journal is not the one whose leases "
        "the row takes: the managers began with a new one"
    )


MOST_DRAWS = 8
"""How often a version is drawn: clocks that differ by so much that replicas refuse them all must
not keep a writer here for ever.
"""


class RowWrite:
    """A write to be awaited. It may be cancelled: then nobody knows its outcome, and `repeat`
    writes exactly the same again, any number of times.
    """

    def __init__(
        self,
        backend: Backend,
        clock: WriteClock,
        wall: Callable[[], int],
        mutation: RowMutation,
    ) -> None:
        self._backend = backend
        self._clock = clock
        self._wall = wall
        self.mutation = mutation
        self._attempt: Attempt | None = None
        self._draws = 0
        self._may_be_there = False
        """Whether it was sent once and its outcome was not told: what is refused now may have been
        taken then.
        """

    @property
    def version(self) -> Version | None:
        """The version, once it is drawn: no replica has the write before."""
        return self._attempt.version if self._attempt else None

    def __await__(self) -> Generator[Any, None, Version]:
        return self.repeat().__await__()

    def repeat(self) -> Coroutine[Any, Any, Version]:
        """Write it again with its version: the effect is that of one write."""
        return self._write()

    async def _write(self) -> Version:
        while True:
            if self._attempt is None:
                self._draws += 1
                self._attempt = await self._drawn()
            version = self._attempt.version
            refused = await self._send(self._attempt)
            if refused is None:
                self._clock.see(version)
                return version
            if self._is_final(refused):
                raise self._error(refused, version)
            self._attempt = None

    async def _drawn(self) -> Attempt:
        mutation = self.mutation
        number, journal = mutation.number, mutation.journal
        if mutation.time is not None:
            return Attempt(Version(number, mutation.time), journal=journal)
        self._clock.see(Version(number, mutation.above))
        time = self._clock.draw(self._wall())
        if mutation.is_ordered:
            return await self._backend.draw(mutation, time)
        return Attempt(Version(number, time), journal=journal)

    def _is_final(self, refused: Refused) -> bool:
        """Whether another version must not, or need not, be drawn."""
        if self._may_be_there or self.mutation.time is not None or self._draws >= MOST_DRAWS:
            return True
        match refused:
            case Late(horizon):
                self._clock.see(Version(0, horizon))
                return False
            case Ahead(bound) if self._wall() <= bound:
                self._clock.begin_anew()
                return False
            case _:
                return True

    async def _send(self, attempt: Attempt) -> Refused | None:
        """Send it once. Whatever ends this in the middle leaves the outcome unknown."""
        was_there, self._may_be_there = self._may_be_there, True
        try:
            refused = await self._backend.write(self.mutation, attempt)
        except WriteUnknown as error:
            error.write = self
            raise
        except NOTHING_SENT as error:
            self._may_be_there = was_there
            if was_there:
                raise self._unknown(f"this time nothing was sent: {error}") from error
            raise
        self._may_be_there = refused is not None and was_there
        return refused

    def _unknown(self, why: str) -> WriteUnknown:
        said = f"some replicas may have the write from before; {why}"
        return WriteUnknown(said, self)

    def _error(self, refused: Refused, version: Version) -> TenureError:
        may_be_there = self._may_be_there
        match refused:
            case Outranked():
                kept = (
                    "some replicas may have the write, and the owner that comes next may find it"
                    if may_be_there or refused.is_partial
                    else "nothing was written"
                )
                return Fenced(f"{outranking(refused, version.number)}; {kept}")
            case _ if may_be_there:
                return self._unknown(f"they no longer take its time, {version.time}: {refused}")
            case Late(horizon):
                return TooLate(
                    f"the time {version.time} is not above {horizon}: everything up to there is "
                    "settled, and what was deleted by then is forgotten. Write with a later time, "
                    "or without one",
                    horizon=horizon,
                )
            case Ahead(bound):
                return ConfigurationError(
                    f"the time {version.time} lies past {bound}, a minute ahead of the clock: "
                    "nothing could be written over it until then. Give microseconds since 1970, "
                    "and set the clocks of the store's hosts, of which one may be wrong"
                )
