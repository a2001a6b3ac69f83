"""A write: a body that runs when no cache serves the old value any longer."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import AsyncExitStack, ExitStack
from types import TracebackType
from typing import Protocol, Self

from tenure.base.instants import in_seconds
from tenure.base.keys import Key, UserKey
from tenure.client.guard import Guard
from tenure.errors import UsageError
from tenure.protocol.volume.server.events import RunBody
from tenure.runtime.loops import wait_for


class AskedWrite:
    """A write that waits for its turn, and then for its holders."""

    __slots__ = ("ticket", "turn")

    def __init__(self, ticket: int) -> None:
        self.ticket = ticket
        self.turn: Future[RunBody] = Future()


class RunsWrites(Protocol):
    """The runner of a volume's server. Any thread may call it."""

    @property
    def is_async(self) -> bool:
        """Whether the application lives in an event loop."""
        ...

    def has_ended(self) -> bool:
        """Whether it has ended."""
        ...

    def guard(self, name: UserKey) -> Guard | None:
        """The guard under which the body runs, beside the write; None if there are no owners."""
        ...

    def ask(self, keys: tuple[Key, ...]) -> AskedWrite:
        """Ask for a write of these keys. Raises if it is not possible."""
        ...

    def give_up(self, asked: AskedWrite) -> None:
        """Give the write up: its body will not run."""
        ...

    def end(self, body: RunBody, error: BaseException | None) -> None:
        """The body has ended."""
        ...


class VolumeWrite:
    """A write of some objects of a volume: no cache serves an old one while its body runs."""

    def __init__(
        self,
        runs: RunsWrites,
        keys: tuple[Key, ...],
        names: tuple[UserKey, ...],
        *,
        is_guarded: bool = True,
    ) -> None:
        self._runs = runs
        self._is_guarded = is_guarded
        """Whether the body runs under the owner's lease; otherwise the caller sees to that."""
        self._keys = keys
        self._names = names
        self._guarding = AsyncExitStack()
        self._guarding_here = ExitStack()
        self._asked: AskedWrite | None = None
        self._body: RunBody | None = None

    @property
    def fence(self) -> int:
        """The number under which this server writes: a later one has a higher number, so that a
        store can refuse what comes late from an earlier one.
        """
        return self._entered().fence

    @property
    def waited(self) -> float:
        """How many seconds the write waited for caches, once its turn had come."""
        return in_seconds(self._entered().waited_ns)

    def _entered(self) -> RunBody:
        if self._body is None:
            raise UsageError(f"the write of {self._names[0]!r} has not been entered")
        return self._body

    async def pass_through(self) -> None:
        """Invalidate the objects with an empty body."""
        async with self:
            pass

    def _ask(self) -> AskedWrite:
        if self._asked is not None:
            raise UsageError(
                f"this write of {self._names[0]!r} was entered already; call volume.write for each"
            )
        self._asked = self._runs.ask(self._keys)
        return self._asked

    async def __aenter__(self) -> Self:
        asked = self._ask()
        try:
            await wait_for(asked.turn)  # type: ignore[arg-type]  # of what it is does not matter
        except asyncio.CancelledError:
            self._runs.give_up(asked)
            raise
        self._body = body = asked.turn.result()
        try:
            for guard in self._guards():
                await self._guarding.enter_async_context(guard)
        except BaseException as error:
            self._runs.end(body, error)
            await self._guarding.aclose()
            raise
        return self

    def _guards(self) -> Iterator[Guard]:
        names = self._names if self._is_guarded else ()
        return filter(None, map(self._runs.guard, names))

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        self._runs.end(self._entered(), error)
        return await self._guarding.__aexit__(kind, error, trace)

    def __enter__(self) -> Self:
        asked = self._ask()
        try:
            self._body = body = asked.turn.result()
        except KeyboardInterrupt:
            self._runs.give_up(asked)
            raise
        try:
            for guard in self._guards():
                self._guarding_here.enter_context(guard)
        except BaseException as error:
            self._runs.end(body, error)
            self._guarding_here.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        self._runs.end(self._entered(), error)
        return self._guarding_here.__exit__(kind, error, trace)
