"""The gate: it keeps what an operation has changed, and only then lets anything out.

Answers, frames, alarms and calls to other entities leave only after their state is where a hand-off
takes it from (and, with a store, durable under the number of the lease), and if the lease was held
throughout. A failure before that leaves the envelope unchanged.
"""

from collections.abc import Callable, Coroutine, Mapping
from contextlib import nullcontext
from typing import Any, TypeAlias

from msgspec import structs

from tenure.client.lease import Lease
from tenure.entities.copies_given import CopiesGiven
from tenure.entities.entity_turn import EntityTurn
from tenure.entities.envelopes import Envelopes
from tenure.entities.live_entity import NOTHING_KEPT, UNREAD, LiveEntity
from tenure.entities.state_codec import STATE_BYTES, StateCodec
from tenure.entities.turn_items import check_room
from tenure.errors import Fenced, LeaseLost, StoreAway
from tenure.protocol.entity.envelope import Envelope, KeptAnswer, Push, TurnChanges
from tenure.stores.opening import EntityStore

LetOut: TypeAlias = Callable[[LiveEntity, Lease, list[Push]], None]
"""Sends frames to their edges, while the lease is held."""
Arm: TypeAlias = Callable[[str | int, float | None], None]
"""Makes the first alarm of a key ring at this time."""


class EntityGate:
    """The gate of all entities of one process."""

    def __init__(
        self,
        codec: StateCodec,
        envelopes: Envelopes,
        store: EntityStore | None,
        wall: Callable[[], float],
        let_out: LetOut,
        arm: Arm,
        copies: CopiesGiven | None = None,
    ) -> None:
        self._codec = codec
        self.envelopes = envelopes
        self.store = store
        self.copies = copies
        """The copies that other processes read, if they do."""
        self.wall = wall
        self._let_out = let_out
        self.arm = arm

    async def load(self, key: str | int, lease: Lease) -> Envelope:
        """What is kept of the key, unbroken up to `lease`. Raises LeaseLost if the store has seen a
        newer lease, StoreAway if the store cannot be asked, or refuses a lease that is held, as
        where the managers lost their journal, and StoreFailed if what it has cannot be read.
        """
        if self.store is None:
            async with nullcontext() if self.copies is None else self.copies.loading(key):
                return self.envelopes.counting(key, lease)
        try:
            return await self.store.load(key, lease)
        except Fenced as error:
            if self.envelopes.guards.board.holds(lease):
                raise StoreAway(f"nothing was begun: {error}") from error
            raise self.envelopes.guards.lease_lost(key, lease) from error

    @property
    def is_in_question(self) -> bool:
        """Whether the store failed the last time: who begins a turn then looks whether it answers,
        so that a call that could not be kept is not begun.
        """
        return self.store is not None and self.store.is_away

    async def look(self, key: str | int) -> None:
        """Look whether the store answers for the key. Raises StoreAway."""
        if self.store is not None:
            await self.store.look(key)

    def keep(self, turn: EntityTurn, answer: bytes | None) -> Coroutine[Any, Any, None]:
        """Keep what the turn has changed, with its answer if it has ended; let out what waits for
        that. Raises LeaseLost if the lease was not held throughout.
        """
        if self.store is None and (self.copies is None or not turn.live.is_copied):
            return self._keep(turn, answer)
        return self._keep_in_order(turn, answer)

    async def _keep_in_order(self, turn: EntityTurn, answer: bytes | None) -> None:
        """Several tasks of a turn may commit, and each save follows the one before."""
        async with turn.saving:
            await self._keep(turn, answer)

    async def _keep(self, turn: EntityTurn, answer: bytes | None) -> None:
        live, changes = turn.live, turn.pending
        state = live.envelope.state
        if turn.at_end == "forget" and answer is not None:
            state = b""
        else:
            # What is in a collection or at a socket is of this version, too: the state says it.
            says_version = not state and bool(changes) and self._codec.has_version
            if turn.is_touched or says_version:
                state = self._codec.encode(live.key, live.read(), live.unknown)
        await self._keep_state(turn, answer, state)

    async def _keep_state(self, turn: EntityTurn, answer: bytes | None, state: bytes) -> None:
        live, before = turn.live, turn.live.envelope.state
        if self.copies is None or state == before or (self.store is None and not live.is_copied):
            # Without a store it is kept in this very step, so nobody asks for a copy meanwhile.
            await self._hold(turn, answer, state)
        elif live.is_copied:
            async with self.copies.changing(turn):
                await self._hold(turn, answer, state)
        else:
            # In the store it takes a while: who asks for a copy meanwhile waits for the new state.
            live.is_changing = True
            try:
                await self._hold(turn, answer, state)
            finally:
                live.end_change()

    async def put(self, turn: EntityTurn, state: bytes) -> None:
        """Keep this state, which the class need not know, with the other changes of a turn of an
        operator. The next call begins with it.
        """
        try:
            async with turn.saving:
                await self._keep_state(turn, None, state)
        finally:
            turn.live.drop()

    async def replace(self, turn: EntityTurn, by: Envelope) -> None:
        """Keep this in place of all that was kept but the sockets, in a turn of an operator."""
        turn.at_end = by
        try:
            await self.put(turn, by.state)
        finally:
            turn.at_end = "keep"

    async def _hold(self, turn: EntityTurn, answer: bytes | None, state: bytes) -> None:
        if turn.at_end == "forget" and answer is not None:
            await self._forget(turn)
            return
        if isinstance(turn.at_end, Envelope):
            await self._replace(turn, turn.at_end)
            return
        live, before, changes = turn.live, turn.live.envelope, turn.pending
        is_changed = bool(changes) or state != before.state
        kept = None
        if turn.record != "none" and (is_changed if answer is None else self._may_be_asked(turn)):
            is_known = turn.record in {"begun", "repeat"}
            kept = turn.call.id, KeptAnswer(self.wall(), answer), is_known
            if not is_known:
                turn.record = "begun"
        if is_changed or kept is not None:
            lease = turn.lease.number, turn.lease.journal
            store = self.store
            new, pushes = before.after(
                changes, state, lease, turn.latest, kept, over_store=store is not None
            )
            turn.pending = None
            try:
                if store is None:
                    check_room(self._codec.name, live.key, new, STATE_BYTES)
                elif is_changed:
                    new = await self._save(store, turn, new)
                self._put(turn, new)
            except BaseException:
                turn.put_back(changes)
                raise
            if changes:
                self._let_out(live, turn.lease, pushes)
                self.arm(live.key, new.next_alarm())
        elif not turn.guard.has_lasted():
            raise self._lost(turn)

    def _may_be_asked(self, turn: EntityTurn) -> bool:
        """Whether the call may be repeated once its answer is kept. A caller in this process gets
        the answer in the same step, and nobody else knows the id; only a store may have kept it,
        and the caller heard nothing.
        """
        return turn.record != "new" or self.store is not None

    async def _save(self, store: EntityStore, turn: EntityTurn, new: Envelope) -> Envelope:
        live = turn.live
        if not turn.guard.has_lasted():
            raise self._lost(turn)
        try:
            live.stored = await store.save(live.key, turn.lease, live.stored, new)
        except BaseException as error:
            live.drop()  # the store may have saved it, or not
            if isinstance(error, Fenced):
                raise self._lost(turn) from error
            raise
        return live.stored

    async def _forget(self, turn: EntityTurn) -> None:
        """See `Entity.forget`."""
        live, lease = turn.live, turn.lease
        if self.store is not None:
            empty = Envelope(lease.number, lease.journal)
            self._put(turn, await self._save(self.store, turn, empty))
        else:
            self._put(turn, NOTHING_KEPT)
            with self.envelopes.lock:
                self.envelopes.pop(live.key, None)
        live.number_on()
        live.state = UNREAD
        self.arm(live.key, None)

    async def _replace(self, turn: EntityTurn, by: Envelope) -> None:
        live, lease = turn.live, turn.lease
        new = structs.replace(
            by, number=lease.number, journal=lease.journal, step=0, sockets=live.envelope.sockets
        )
        if self.store is not None:
            new = await self._save(self.store, turn, new)
        self._put(turn, new)
        live.state = UNREAD
        self.arm(live.key, new.next_alarm())

    def _put(self, turn: EntityTurn, new: Envelope) -> None:
        live = turn.live
        with self.envelopes.lock:
            if not turn.guard.has_lasted():
                live.drop()
                raise self._lost(turn)
            live.keep(new)
            if self.store is None:
                self.envelopes[live.key] = new

    def _lost(self, turn: EntityTurn) -> LeaseLost:
        return self.envelopes.guards.lease_lost(turn.live.key, turn.lease)

    def send_early(self, turn: EntityTurn, changes: TurnChanges) -> None:
        """See `Socket.send`: number the frame and let it out, while the lease is held, and do
        nothing else.
        """
        before = turn.live.envelope
        lease = turn.lease.number, turn.lease.journal
        new, pushes = before.after(changes, before.state, lease, 0.0, None)
        self._put(turn, new)
        self._let_out(turn.live, turn.lease, pushes)

    def confirm(self, live: LiveEntity, received: Mapping[bytes, int]) -> None:
        """Edges have received frames up to these numbers."""
        with self.envelopes.lock:
            before, live.envelope = live.envelope, live.envelope.confirmed(received)
            # An edge may answer late, when the key has gone and come back with a newer envelope.
            if live.envelope is not before and self.envelopes.get(live.key) is before:
                self.envelopes[live.key] = live.envelope
