"""One write of a store: an attempt, another where that was outrun, and the same one again."""

from collections.abc import Callable, Coroutine, Generator, Sequence
from typing import Any

from tenure.columns.backends.contract import Backend, Consistency
from tenure.columns.tables import Table
from tenure.errors import ConfigurationError, Fenced, TooLate, WriteUnknown
from tenure.protocol.replication.admission import Ahead, Attempt, Late, Outranked, Outrun
from tenure.protocol.replication.clock import WriteClock
from tenure.protocol.replication.edits import Edit
from tenure.protocol.replication.versions import Version


class RowWrite:
    """A write that is awaited. It may be cancelled: then nobody knows its outcome, and `repeat`
    writes exactly it again, however often.
    """

    def __init__(
        self,
        backend: Backend,
        clock: WriteClock,
        wall: Callable[[], int],
        table: Table,
        key: bytes,
        edits: Sequence[Edit],
        level: Consistency,
        given: int | None,
    ) -> None:
        self._backend = backend
        self._clock = clock
        self._wall = wall
        self._table = table
        self._key = key
        self._edits = edits
        self._level: Consistency = level
        self._given = given
        self.version: Version | None = None
        """That of the last attempt; None before the first."""

    def __await__(self) -> Generator[Any, None, Version]:
        return self._write().__await__()

    def repeat(self) -> Coroutine[Any, Any, Version]:
        """Write it again, with the version that it has: as if it was written once."""
        return self._write() if self.version is None else self._send("repeat", self.version)

    async def _write(self) -> Version:
        if self._given is not None:
            return await self._send("repeat", Version(0, self._given))
        return await self._send("first", Version(0, self._clock.draw(self._wall())))

    async def _send(self, kind: Any, version: Version) -> Version:  # noqa: ANN401
        while True:
            self.version = version
            attempt = Attempt(version, kind)
            try:
                refused = await self._backend.write(
                    self._table, self._key, self._edits, attempt, self._level
                )
            except WriteUnknown as error:
                error.write = self
                raise
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
                case Ahead(bound):
                    raise ConfigurationError(
                        f"the time {version.time} lies past {bound}, a minute ahead of the clock: "
                        "nothing could be written over it until then. Give microseconds since 1970"
                    )
                case Outranked(fence):
                    raise Fenced(
                        f"a lease of number {fence} has been here, so number {version.number} is "
                        "refused; nothing was written"
                    )
            version = Version(version.number, self._clock.draw(self._wall()))
