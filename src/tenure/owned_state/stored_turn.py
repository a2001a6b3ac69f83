"""A turn whose value is kept in a store: durable before the body's caller goes on.

    (1) is the key ours?  (2) load what is stored under our lease, which keeps older ones out
    (3) the body  (4) ask for the lease, keep the value, and ask again  (5) only then go on

Each wait for the store is a future, which a task awaits and a thread blocks for; everything else
stands once, in generators that yield the futures.

Nothing is put off: what a body has changed is in the store before the turn is over, and what could
not be kept is not in memory either, so that the next turn loads what the store has.
"""

import asyncio
from collections.abc import Generator
from concurrent.futures import Future
from typing import Any, Self, TypeAlias, TypeVar

from tenure.base.instants import SECOND_NS
from tenure.base.keys import UserKey
from tenure.client.turns import InLine
from tenure.errors import Fenced, LeaseLost, StoreAway, StoreFailed, ValueTypeError
from tenure.owned_state.entries import NEVER, Stored
from tenure.owned_state.kept_values import VALUE_BYTES, KeptValue, KeptValues, envelope_of
from tenure.owned_state.turn import StateOfTurns, Turn

T = TypeVar("T")
V = TypeVar("V")
Steps: TypeAlias = Generator["Future[Any]", Any, T]
"""What waits for the store in between."""


class StoredTurn(Turn[V]):
    """A turn with one key, as `Turn`, over a store."""

    __slots__ = ("_kept", "_sweeps", "_values")

    def __init__(
        self,
        state: StateOfTurns[V],
        values: KeptValues,
        key: UserKey,
        wait: float,
        *,
        sweeps: bool = False,
    ) -> None:
        """`sweeps` says that a value that has ended is removed from the store."""
        super().__init__(state, key, wait)
        self._values = values
        self._sweeps = sweeps
        self._kept: KeptValue

    # --- entering and leaving ---

    async def __aenter__(self) -> Self:
        await _in_task(self._entering(*await self._place_of_task()))
        return self

    def __enter__(self) -> Self:
        _in_thread(self._entering(self._place_of_thread(), None))
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        await _in_task(self._leaving(error))

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        _in_thread(self._leaving(error))

    @property
    def ends_at(self) -> float | None:
        """When the value ends, by the wall clock; None if it does not, or has ended."""
        return None if self._stored is None else self._kept.ends_at

    # --- (1) and (2) ---

    def _entering(self, place: InLine, task: "asyncio.Task[Any] | None") -> Steps[None]:
        self._place = place
        try:
            self.begin(task)
            try:
                self._kept = yield from self._found()
                self._stored = self._counting(self._kept)
            except BaseException as error:
                self._refuse(error)
                raise
            if not self.has_lasted():
                self._refuse(None)
        except BaseException:
            self._state.turns.end(place)
            raise

    def _refuse(self, error: BaseException | None) -> None:
        """Leave before the body. Raises NotOwner if the lease is over: nothing was begun."""
        has_lasted = self.has_lasted()
        try:
            self.leave(error, has_lasted=has_lasted)
        except LeaseLost:
            raise self._guards.not_owner(self.key) from error
        if isinstance(error, Fenced):
            if has_lasted:  # as where the managers lost their journal, and its numbers
                raise StoreAway(f"nothing was begun: {error}") from error
            raise self._guards.not_owner(self.key) from error

    def _found(self) -> Steps[KeptValue]:
        assert self._lease is not None
        found = self._values.take(self.key, self._lease)
        if found is None:
            loaded: KeptValue = yield self._values.load(self.key, self._lease)
            if not self._sweeps:
                self._check_readable(loaded.envelope.state)
            return loaded
        if self._values.is_away:
            yield self._values.look(self.key)
        return found

    def _check_readable(self, data: bytes) -> None:
        try:
            if data:
                self._state.codec.decode(data)
        except ValueError as error:
            raise StoreFailed(
                f"the stored value of {self.key!r:.100} cannot be read as value_type= says: "
                f"{error}. What is stored is untouched; give new fields a default, and let fields "
                "keep their types"
            ) from None

    def _counting(self, kept: KeptValue) -> Stored | None:
        """The value, with its end by this machine's clock; None if there is none, or it ended."""
        data, ends_at = kept.envelope.state, kept.ends_at
        if not data:
            return None
        if ends_at is None:
            return Stored(kept.number, kept.journal, NEVER, data)
        left = ends_at - self._values.wall()
        if left <= 0:
            return None
        ends = self._guards.clock() + int(left * SECOND_NS)
        return Stored(kept.number, kept.journal, ends, data)

    # --- (4) ---

    def _leaving(self, error: BaseException | None) -> Steps[None]:
        try:
            has_lasted = error is None and (yield from self._keeping())
        except BaseException as failed:
            self.leave(failed, has_lasted=True)
            raise
        else:
            if error is not None:
                self._values.put(self.key, self._kept)
            self.leave(error, has_lasted=has_lasted)
        finally:
            self._state.turns.end(self._place)

    def _keeping(self) -> Steps[bool]:
        """Keep what the body made of the value, and return whether the lease has covered the whole
        turn.
        """
        data = self._outcome()
        if not self._is_to_keep(data):
            self._values.put(self.key, self._kept)
            return self.has_lasted()
        if not self.has_lasted():
            return False
        lease = self._lease
        assert lease is not None
        new = envelope_of(lease, data, self._end_of(data))
        try:
            kept: KeptValue = yield self._values.save(self.key, lease, self._kept, new)
        except Fenced as error:
            raise self._guards.lease_lost(self.key, lease) from error
        self._values.put(self.key, kept)
        return self.has_lasted()

    def _is_to_keep(self, data: bytes | None) -> bool:
        has_ended = self._stored is None and bool(self._kept.envelope.state)
        return self._has_changed(data) or (self._sweeps and has_ended)

    def _outcome(self) -> bytes | None:
        data = super()._outcome()
        if data is not None and len(data) > VALUE_BYTES:
            raise ValueTypeError(
                f"the value of {self.key!r:.100} has {len(data)} bytes; a store keeps values of "
                f"{VALUE_BYTES} at most, and this one was not stored: divide it among several keys"
            )
        return data

    def _end_of(self, data: bytes | None) -> float | None:
        """When the value ends, by the wall clock."""
        if data is None:
            return None
        now = self._guards.clock()
        ends_at = self._new(data, now).ends_at
        return None if ends_at == NEVER else self._values.wall() + (ends_at - now) / SECOND_NS


async def _in_task(steps: Steps[T]) -> T:
    """Run the steps, and await the store in between."""
    try:
        wanted = next(steps)
        while True:
            try:
                found = await asyncio.wrap_future(wanted)
            except BaseException as error:  # noqa: BLE001  # the steps decide
                wanted = steps.throw(error)
            else:
                wanted = steps.send(found)
    except StopIteration as end:
        value: T = end.value
        return value


def _in_thread(steps: Steps[T]) -> T:
    """Run the steps, and wait for the store in between."""
    try:
        wanted = next(steps)
        while True:
            try:
                found = wanted.result()
            except BaseException as error:  # noqa: BLE001  # as above
                wanted.cancel()
                wanted = steps.throw(error)
            else:
                wanted = steps.send(found)
    except StopIteration as end:
        value: T = end.value
        return value
