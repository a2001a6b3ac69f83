"""Runs the entities of this process: turns, what they commit, readings beside.

A call waits in its key's line, holds the lease as a guard does, and runs its method. Then what it
has changed is made one new envelope, which is stored where there is a store, put where a hand-off
takes it from, and only then let out: all of it, and only while the lease is held. Whatever goes
wrong before that leaves the envelope as it was.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Any, Protocol, TypeAlias

import msgspec

from tenure.client.guard import Guard, Guards
from tenure.client.lease import Lease
from tenure.entities.entity_kind import EntityKind
from tenure.entities.entity_turn import CURRENT, UNREAD, EntityTurn
from tenure.entities.envelopes import Envelopes
from tenure.entities.live_entity import NOTHING_KEPT, LiveEntity
from tenure.entities.methods import NOTHING, EntityMethod
from tenure.entities.options import EntityOptions
from tenure.entities.stores import EmptyRow, EntityStore
from tenure.entities.turn_limits import TurnLimit, TurnLimits
from tenure.errors import Busy, Fenced, LeaseLost, StoreFailed, TurnTooLong, UsageError
from tenure.protocol.entity.envelope import Envelope, KeptAnswer, Push, TurnChanges
from tenure.protocol.entity.key_line import Begin, EntityCall, TooMany
from tenure.protocol.lease.reports import SHOWN_CHARACTERS, EntityReport

TIDIED_AT_ONCE = 200
Body: TypeAlias = Callable[[EntityTurn], Awaitable[bytes]]


class Outlet(Protocol):
    """What is told when something was kept."""

    def push(self, live: LiveEntity, lease: Lease, pushes: list[Push]) -> None:
        """Send frames to their edges, while the lease is held."""
        ...

    def arm(self, key: str | int, at: float | None) -> None:
        """Ring when the first alarm of the key does."""
        ...


class EntityHost:
    """The entities of one process."""

    def __init__(
        self,
        pool: str,
        kind: EntityKind,
        options: EntityOptions,
        envelopes: Envelopes,
        store: EntityStore | None,
        outlet: Outlet,
        wall: Callable[[], float],
    ) -> None:
        self.pool = pool
        self.kind = kind
        self._options = options
        self.envelopes = envelopes
        self.store = store
        self._outlet = outlet
        self.wall = wall
        self._live: OrderedDict[str | int, LiveEntity] = OrderedDict()
        self._empty: list[EmptyRow] = []
        """Of instances that were dropped."""
        self._loop = asyncio.get_running_loop()
        self._calls = 0
        """Turns that run, and calls that wait for one."""
        self._turns = TurnLimits(self._loop, options.turn)
        self._readings = TurnLimits(self._loop, options.turn)

    @property
    def _guards(self) -> Guards:
        return self.envelopes.guards

    def __len__(self) -> int:
        return len(self._live)

    # --- calls ---

    async def perform(self, call: EntityCall) -> bytes:
        """Carry a call out. Raises NotOwner where the key is not held, and nothing was begun."""
        method = self.kind.method(call.method)

        async def body(turn: EntityTurn) -> bytes:
            return method.encode_answer(await self._invoke(turn, method))

        return await (self.read if method.is_reading else self.take_turn)(call, body)

    async def _invoke(self, turn: EntityTurn, method: EntityMethod) -> Any:  # noqa: ANN401
        arguments, named = method.decode(turn.call.data)
        view = turn.live.seen_by(turn)
        if method.is_coroutine:
            return await method.function(view, *arguments, **named)
        context = copy_context()
        running = self._loop.run_in_executor(
            None, lambda: context.run(method.function, view, *arguments, **named)
        )
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait({running})  # a thread cannot be stopped: the turn lasts as long
            raise

    async def take_turn(self, call: EntityCall, body: Body) -> bytes:
        """Run `body` when it is its turn."""
        live = self._live.get(call.key) or self._add(call.key)
        step = live.line.ask(self._loop.time(), call)
        if isinstance(step, TooMany):
            raise Busy(step.why)
        self._calls += 1
        try:
            if not isinstance(step, Begin):
                await self._wait(live, call)
            guard = Guard(self._guards, call.key, finish=True)
            async with guard as lease:
                if not live.is_active(lease):
                    await self._activate(live, guard, lease)
                kept = live.envelope.answer_to(call.id) if call.id else None
                if kept is not None and kept.data is not None:
                    return kept.data
                turn = EntityTurn(self, live, lease, guard, call, is_repeat=kept is not None)
                return await self._in_turn(turn, body)
        finally:
            self._calls -= 1
            self._end(live, call)

    async def _in_turn(self, turn: EntityTurn, body: Body) -> bytes:
        before = CURRENT.get()
        CURRENT.set(turn)
        limit = self._turns.begin(turn.call)
        try:
            with limit:
                answer = await body(turn)
            await self.keep(turn, answer)
        except BaseException as error:
            turn.roll_back()
            if isinstance(error, TimeoutError):
                raise self._too_long(turn.call, limit, error) from error
            raise
        finally:
            turn.is_over = True
            CURRENT.set(before)
            self._turns.end(limit)
        return answer

    def _too_long(self, call: EntityCall, limit: TurnLimit, error: TimeoutError) -> Exception:
        """What to raise: a method may have raised TimeoutError by itself."""
        if not limit.has_ended_it:
            return error
        return TurnTooLong(
            f"{call.method} of {self.pool} {call.key!r:.100} has run for {self._options.turn:g} s, "
            "and what it had not committed was taken back. Let it do less, or give it longer with "
            "turn="
        )

    def _add(self, key: str | int) -> LiveEntity:
        live = LiveEntity(key, self.pool, self.kind, self._options.most_waiting)
        self._live[key] = live
        if len(self._live) > self._options.limit:
            idle = next((each for each in self._live.values() if each.is_idle), live)
            if idle is not live:
                self._drop(idle)
        return live

    async def _wait(self, live: LiveEntity, call: EntityCall) -> None:
        come = live.waiting[call] = self._loop.create_future()
        try:
            async with asyncio.timeout(self._options.wait):
                await come
        except TimeoutError:
            if not come.done() or come.cancelled():
                raise Busy(
                    f"{call.method} did not get its turn within {self._options.wait:g} s with "
                    f"{live.line.holder(self._loop.time())}"
                ) from None

    def _end(self, live: LiveEntity, call: EntityCall) -> None:
        if live.line.running is not call:
            live.waiting.pop(call, None)
            live.line.leave(call)
            return
        now = live.used_at = self._loop.time()
        self._live.move_to_end(live.key)
        while (following := live.line.end(now)) is not None:
            come = live.waiting.pop(following)
            if not come.done():  # otherwise it has waited too long, and is about to leave
                come.set_result(None)
                return

    async def read(self, call: EntityCall, body: Body) -> bytes:
        """Run `body` beside the turns, on what was kept last."""
        guard = Guard(self._guards, call.key)
        async with guard as lease:
            live = self._live.get(call.key)
            if live is None or not live.is_active(lease):
                await self.take_turn(EntityCall(call.key, b"", "on_activate", b""), _nothing)
                live = self._live[call.key]
            live.readings += 1
            turn = EntityTurn(self, live, lease, guard, call, is_reading=True)
            before = CURRENT.get()
            CURRENT.set(turn)
            limit = self._readings.begin(call)
            try:
                with limit:
                    return await body(turn)
            except TimeoutError as error:
                raise self._too_long(call, limit, error) from error
            finally:
                self._readings.end(limit)
                turn.is_over = True
                CURRENT.set(before)
                live.readings -= 1
                live.used_at = self._loop.time()

    # --- what is shown of it ---

    def report(self, alarms: int) -> EntityReport:
        """How many there are, and which turn has run for longest."""
        longest = self._turns.oldest
        return EntityReport(
            kind=self.kind.name[:SHOWN_CHARACTERS],
            instances=len(self._live),
            turns=len(self._turns),
            waiting=self._calls - len(self._turns),
            alarms=alarms,
            longest=f"{longest.call.method} of {longest.call.key!r:.100}"[:SHOWN_CHARACTERS]
            if longest
            else "",
            longest_seconds=round(self._loop.time() - longest.began, 1) if longest else 0.0,
        )

    # --- instances ---

    async def _activate(self, live: LiveEntity, guard: Guard, lease: Lease) -> None:
        live.begin(await self._found(live.key, lease))
        live.decoded()  # which raises for what cannot be read
        if self.kind.handles["on_activate"]:
            call = EntityCall(live.key, b"", "on_activate", b"")
            turn = EntityTurn(self, live, lease, guard, call)

            async def body(turn: EntityTurn) -> bytes:
                await live.seen_by(turn).on_activate()
                return NOTHING

            await self._in_turn(turn, body)
        if not guard.has_lasted():
            raise self._guards.lease_lost(live.key, lease)
        live.activated(lease)
        self._outlet.arm(live.key, live.envelope.next_alarm())

    async def _found(self, key: str | int, lease: Lease) -> Envelope:
        if self.store is not None:
            try:
                return await self.store.load(key, lease)
            except Fenced as error:
                raise self._guards.lease_lost(key, lease) from error
        return self.envelopes.counting(key, lease)

    def silent_sockets(self, seconds: float) -> list[tuple[str | int, bytes]]:
        """The sockets whose edges have not been heard for so long, with their keys."""
        now = self._loop.time()
        return [
            (live.key, each)
            for live in self._live.values()
            if live.envelope.sockets
            for each in live.silent_sockets(now, seconds)
        ]

    def passivate(self, before: float) -> None:
        """Drop the instances that nobody has used since `before`."""
        for live in [each for each in self._live.values() if each.is_idle]:
            if live.used_at < before:
                self._drop(live)

    def _drop(self, live: LiveEntity) -> None:
        del self._live[live.key]
        row = live.empty_row
        if row is not None and self.store is not None:
            self._empty.append(row)

    @property
    def has_empty_rows(self) -> bool:
        """Whether there is something to tidy."""
        return bool(self._empty)

    async def tidy(self) -> None:
        """Have the store keep no rows of keys that were only asked for, some at a time."""
        while self._empty and self.store is not None:
            rows, self._empty = self._empty[:TIDIED_AT_ONCE], self._empty[TIDIED_AT_ONCE:]
            with suppress(StoreFailed):  # such a row stays until the key is used and left again
                await self.store.forget(rows)

    def arm_again(self, key: str | int) -> None:
        """An alarm has rung: the agenda has none of the key."""
        live = self._live.get(key)
        if live is not None:
            self._outlet.arm(key, live.envelope.next_alarm())

    # --- keeping ---

    async def keep(self, turn: EntityTurn, answer: bytes | None) -> None:
        """Keep what the turn has changed, with its answer if it has come to its end; let out what
        waits for that. Raises LeaseLost where the lease was not held all the while.
        """
        live, before, changes = turn.live, turn.live.envelope, turn.changes
        if turn.is_forgetting and answer is not None:
            await self._forget(turn)
            return
        state = before.state
        if turn.is_touched:
            state = self.kind.encode(live.key, turn.live.state)
        is_changed = bool(changes) or state != before.state
        kept = None
        if turn.keeps_answer and (answer is not None or is_changed):
            kept = turn.call.id, KeptAnswer(self.wall(), answer)
        if is_changed or kept is not None:
            lease = turn.lease.number, turn.lease.journal
            new, pushes = before.after(changes, state, lease, turn.latest, kept)
            if self.store is not None and is_changed:
                new = msgspec.structs.replace(new, step=new.step + 1)
                await self._store(live, new, turn)
            self._put(turn, new)
            if changes:
                turn.changes = TurnChanges()
                self._outlet.push(live, turn.lease, pushes)
                self._outlet.arm(live.key, new.next_alarm())
        elif not turn.guard.has_lasted():
            raise self._lost(turn)

    async def _store(self, live: LiveEntity, new: Envelope, turn: EntityTurn) -> None:
        assert self.store is not None
        if not turn.guard.has_lasted():
            raise self._lost(turn)
        try:
            await self.store.save(live.key, turn.lease, new)
        except BaseException as error:
            live.drop()  # it may have been stored, or not
            if isinstance(error, Fenced):
                raise self._lost(turn) from error
            raise

    async def _forget(self, turn: EntityTurn) -> None:
        """See `Entity.forget`."""
        live, lease = turn.live, turn.lease
        if self.store is not None:
            step = live.envelope.step + 1
            empty = Envelope(lease.number, lease.journal, step=step)
            await self._store(live, empty, turn)
            self._put(turn, empty)
        else:
            self._put(turn, NOTHING_KEPT)
            with self.envelopes.lock:
                self.envelopes.pop(live.key, None)
        live.state = UNREAD
        self._outlet.arm(live.key, None)

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
        return self._guards.lease_lost(turn.live.key, turn.lease)

    def send_early(self, turn: EntityTurn, changes: TurnChanges) -> list[Push]:
        """See `Socket.send`: numbered and let out, while the lease is held, and nothing else."""
        before = turn.live.envelope
        lease = turn.lease.number, turn.lease.journal
        new, pushes = before.after(changes, before.state, lease, 0.0, None)
        self._put(turn, new)
        self._outlet.push(turn.live, turn.lease, pushes)
        return pushes

    def confirm(self, key: str | int, received: dict[bytes, int]) -> None:
        """Edges have frames up to these numbers."""
        live = self._live.get(key)
        if live is not None:
            live.envelope = live.envelope.confirmed(received)
            with self.envelopes.lock:
                if self.store is None and key in self.envelopes:
                    self.envelopes[key] = live.envelope


async def _nothing(_: EntityTurn) -> bytes:
    return NOTHING


def check_coroutine(method: EntityMethod, *, in_threads: bool) -> None:
    """Raise UsageError for a `def` method in an event loop, which it would hold up."""
    if not (method.is_coroutine or in_threads):
        raise UsageError(
            f"{method.label} is no coroutine function: write `async def {method.name}`. In "
            "threads, with `with Entities(...)`, it may be a plain one"
        )
