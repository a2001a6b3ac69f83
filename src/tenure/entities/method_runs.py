"""Runs the methods of entities: for a limited time, as the body of a turn or a reading, and takes
back what a turn has changed if it fails.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, TypeAlias

from tenure.entities.entity import seen_by
from tenure.entities.entity_turn import CURRENT, EntityTurn
from tenure.entities.methods import CallHere, EntityMethod
from tenure.errors import (
    Busy,
    EntityError,
    NewerState,
    NoOwner,
    NotOwner,
    OutcomeUnknown,
    Overloaded,
    StoreAway,
    TurnTooLong,
    Unreachable,
)
from tenure.protocol.entity.key_line import EntityCall
from tenure.runtime.task_limits import EqualLimit, EqualLimits

Body: TypeAlias = Callable[[EntityTurn], Awaitable[bytes]]
NOT_BEGUN = Busy | NewerState | NoOwner | Overloaded | StoreAway
"""The errors of which a caller is told that nothing was begun."""


class MethodRuns:
    """The methods that run in one process, of entities of one pool."""

    def __init__(self, pool: str, seconds: float) -> None:
        self._pool = pool
        self._seconds = seconds
        """How long a turn, or a reading, may run."""
        self._loop = asyncio.get_running_loop()
        self._turns = EqualLimits[EntityCall](self._loop, seconds)
        self._readings = EqualLimits[EntityCall](self._loop, seconds)

    def __len__(self) -> int:
        return len(self._turns)

    @property
    def oldest(self) -> EqualLimit[EntityCall] | None:
        """The turn that has run for longest."""
        return self._turns.oldest

    async def run(self, turn: EntityTurn, body: Body) -> bytes:
        """Run `body` in the turn, and keep what that has changed."""
        before = CURRENT.get()
        CURRENT.set(turn)
        limits = self._readings if turn.phase == "reading" else self._turns
        limit = limits.begin(turn.call)
        try:
            with limit:
                answer = await body(turn)
            if turn.phase == "alone":
                await turn.gate.keep(turn, answer)
        except BaseException as error:
            if turn.phase == "alone":
                turn.roll_back()
            is_reading = limits is self._readings
            told = self._told(turn.call, limit, error, is_reading=is_reading)
            if told is None:
                raise
            raise told from error
        finally:
            turn.phase = "over"
            CURRENT.set(before)
            limits.end(limit)
        return answer

    def _told(
        self,
        call: EntityCall,
        limit: EqualLimit[EntityCall],
        error: BaseException,
        *,
        is_reading: bool,
    ) -> Exception | None:
        """The error to raise instead, where a caller would take the method's own for another."""
        what = f"{call.method} of {self._pool} {call.key!r:.100}"
        if isinstance(error, TimeoutError) and limit.has_ended_it:
            return TurnTooLong(
                f"{what} has run for {self._seconds:g} s, and what it had not committed was "
                "taken back. Let it do less, or give it longer with turn="
            )
        if isinstance(error, asyncio.CancelledError) and not limit.was_cancelled:
            return EntityError(f"{what} has awaited something that was cancelled")
        is_cut_off = isinstance(error, Unreachable) and not is_reading  # readings wait for changes
        if is_cut_off or isinstance(error, NOT_BEGUN):  # of another entity: this one was begun
            name = type(error).__name__
            return OutcomeUnknown(f"{what} was begun, and has raised {name}: {error}")
        if isinstance(error, NotOwner):  # of another pool: the call itself was begun
            return EntityError(f"{what} has raised NotOwner: {error}")
        return None

    async def invoke(self, method: EntityMethod, here: CallHere | None, turn: EntityTurn) -> bytes:
        """Call the method, and return its answer."""
        taken = None
        if here is not None:
            taken, here.taken = here.taken, None
        arguments, named = taken or method.decode(turn.call.data)
        view = seen_by(turn)
        if method.is_coroutine:
            value = await method.function(view, *arguments, **named)
        else:
            value = await self._in_thread(partial(method.function, view, *arguments, **named))
        data, value = method.answered(value)
        if here is not None:
            here.data, here.value = data, value
        return data

    async def _in_thread(self, work: Callable[[], Any]) -> Any:  # noqa: ANN401  # the user's
        running = self._loop.run_in_executor(None, copy_context().run, _called, work)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            while not running.done():  # a thread cannot be stopped: the turn lasts as long
                with suppress(asyncio.CancelledError):  # by another, as of the turn's time
                    await asyncio.wait({running})
            raise


def _called(work: Callable[[], Any]) -> Any:  # noqa: ANN401  # the user's
    try:
        return work()
    except StopIteration as error:  # which no future can have; coroutines do the same
        raise RuntimeError("the method raised StopIteration") from error
