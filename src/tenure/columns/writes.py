"""One write of a store: an attempt, another one if that was outrun, and repeats."""

from collections.abc import Callable, Coroutine, Generator
from typing import Any

from tenure.columns.backends.contract import Backend
from tenure.columns.requests import RowMutation
from tenure.errors import ConfigurationError, Fenced, TooLate, WriteUnknown
from tenure.protocol.replication.admission import (
    Ahead,
    Attempt,
    AttemptKind,
    Late,
    Outranked,
    Outrun,
)
from tenure.protocol.replication.clock import WriteClock
from tenure.protocol.replication.versions import Version


def outranking(refused: Outranked, number: int) -> str:
    """The reason why a lease of that number may not write the row."""
    if refused.fence > number:
        return f"a lease of number {refused.fence} has been here, so number {number} is refused"
    return (
        f"the lease of number {number} is refused, because its journal is not the one whose leases "
        "the row takes: the managers began with a new one"
    )


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
        self.version: Version | None = None
        """The version of the last attempt; None before the first."""

    def __await__(self) -> Generator[Any, None, Version]:
        return self._write().__await__()

    def repeat(self) -> Coroutine[Any, Any, Version]:
        """Write it again with its version: the effect is that of one write."""
        if self.version is None or self.mutation.time is not None:
            return self._write()
        return self._send("repeat", self.version)

    async def _write(self) -> Version:
        given = self.mutation.time
        if given is not None:
            return await self._send("merge", Version(self.mutation.number, given))
        return await self._send("first", self._draw())

    def _draw(self) -> Version:
        return Version(self.mutation.number, self._clock.draw(self._wall()))

    async def _send(self, kind: AttemptKind, version: Version) -> Version:
        while True:
            self.version = version
            refused = await self._attempt(Attempt(version, kind, self.mutation.journal))
            match refused:
                case None:
                    return version
                case Outrun(newest):
                    self._clock.see(newest)
                case Late(horizon) if kind == "first":
                    self._clock.see(Version(0, horizon))
                case Late(horizon):
                    raise TooLate(
                        f"the time {version.time} is not above {horizon}: everything up to there "
                        "is settled, and what was deleted by then is forgotten. Write with a later "
                        "time, or without one",
                        horizon=horizon,
                    )
                case Ahead(bound) if kind == "first" and self._wall() <= bound:
                    self._clock.begin_anew()
                case Ahead(bound):
                    raise ConfigurationError(
                        f"the time {version.time} lies past {bound}, a minute ahead of the clock: "
                        "nothing could be written over it until then. Give microseconds since 1970"
                    )
                case Outranked():
                    why = outranking(refused, version.number)
                    raise Fenced(f"{why}; nothing was written")
            version = self._draw()

    async def _attempt(self, attempt: Attempt) -> Outrun | Late | Ahead | Outranked | None:
        try:
            return await self._backend.write(self.mutation, attempt)
        except WriteUnknown as error:
            error.write = self
            raise
