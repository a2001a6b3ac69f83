"""Copies of states that other processes read, as the owner gives them: under the read leases of a
volume.

Nobody sees a change of a state while a copy of the state before may still be read. So a change is a
write of the volume, which waits for the readers that have a copy. Most entities are read nowhere
else, and should not pay for that: once a change has waited, and until a copy is asked for, nobody
can have one, and changes wait for nothing.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from typing import Protocol, Unpack

from tenure.base.instants import in_seconds
from tenure.cache.object_keys import KeysOf
from tenure.cache.volume import Volume, VolumeOptions
from tenure.cache.volume_write import RunsWrites, VolumeWrite
from tenure.entities.copy_keys import EntityKeys
from tenure.entities.entity_turn import EntityTurn
from tenure.entities.method_runs import Body
from tenure.errors import ClosedError, KeyTypeError, LeaseLost, NotOwner
from tenure.protocol.entity.key_line import EntityCall

COPY = ".copy"
"""The method in whose name a state is copied."""


class CopiesVolume(Volume[bytes]):
    """The states of the entities that one process owns, as other processes read them."""

    def __init__(
        self, load: Callable[[str | int], object], **options: Unpack[VolumeOptions]
    ) -> None:
        super().__init__(load, value_type=bytes, **options)

    def serve(self, runs: RunsWrites, of: KeysOf) -> None:
        super().serve(runs, of)
        self.keys = EntityKeys(of=of)

    def change(self, key: str | int) -> VolumeWrite:
        """A write of that state. Its turn holds the lease already."""
        return VolumeWrite(self.runs, (self.keys.key(key),), (key,), is_guarded=False)

    @property
    def longest_read(self) -> float:
        """How many seconds a copy may be read at most from when it is given to nobody any more."""
        return in_seconds(self.terms.held_ns(self.terms.term_ns))


class HasEntities(Protocol):
    """The entities of one process: an `EntityHost`."""

    async def read(self, call: EntityCall, body: Body) -> bytes:
        """Run `body` on the state that was kept last. Raises NotOwner."""
        ...


class CopiesGiven:
    """Gives copies of the entities of one process, and has changes wait for them."""

    host: HasEntities

    def __init__(self, **options: Unpack[VolumeOptions]) -> None:
        self.volume = CopiesVolume(self._load, **options)

    async def _load(self, key: str | int) -> bytes:
        return await self.host.read(EntityCall(key, b"", COPY, b""), self._copied)

    async def _copied(self, turn: EntityTurn) -> bytes:
        live = turn.live
        while live.is_changing:
            # It did not wait for this copy, which must have the state after it.
            await live.until_changed()
        if not live.is_active(turn.lease):  # a change has failed: the store knows whether it counts
            raise LeaseLost(f"the state of {live.key!r:.100} must be read anew")
        live.is_copied = True
        return live.envelope.state

    @asynccontextmanager
    async def loading(self, key: str | int) -> AsyncIterator[None]:
        """Nobody can read an earlier state of the key any longer. Without a store that may have
        died with its owner, and then what is loaded is a change of what was read elsewhere. Raises
        NotOwner.
        """
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(self._change(key))
            except ClosedError as error:
                raise NotOwner(f"{key!r:.100} is given back: {error}") from error
            yield

    @asynccontextmanager
    async def changing(self, turn: EntityTurn) -> AsyncIterator[None]:
        """Nobody can read the state before the change any longer, and copies are of the state after
        it. For a state of which others may have copies. Raises LeaseLost.
        """
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(self._change(turn.call.key))
            except (NotOwner, ClosedError):
                await self._until_unread(turn)
            yield
            turn.live.is_copied = False

    def _change(self, key: str | int) -> AbstractAsyncContextManager[object]:
        try:
            return self.volume.change(key)
        except KeyTypeError:  # it is too long to be asked for, so nobody has a copy
            return nullcontext()

    async def _until_unread(self, turn: EntityTurn) -> None:
        """The key is given back when the turn is done. Nobody is given a copy any more."""
        if turn.guard.has_lasted():
            await asyncio.sleep(self.volume.longest_read)
        if not turn.guard.has_lasted():
            raise LeaseLost(f"{turn.call.key!r:.100} was lost before it was changed")
