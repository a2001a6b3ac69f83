"""Turns with the entities of this process, one at a time for each key, and readings beside them.

A call waits in its key's line, holds the lease as a guard does, and runs its method. Its changes
then go through the gate, or are taken back. An instance begins with the first call under a lease,
and is dropped when nobody uses it.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import cached_property, partial
from itertools import count
from typing import Any

from tenure.client.guard import Found, Guard, GuardedBody, Guards
from tenure.client.lease import Lease
from tenure.entities.entity import seen_by
from tenure.entities.entity_kind import EntityKind
from tenure.entities.entity_turn import EntityTurn, Record
from tenure.entities.gate import EntityGate
from tenure.entities.live_entity import NOTHING_KEPT, LiveEntity
from tenure.entities.method_runs import Body, MethodRuns
from tenure.entities.methods import NOTHING, CallHere
from tenure.entities.settings import EntitySettings
from tenure.entities.sockets import TURNS, resumed
from tenure.errors import Busy, StoreFailed
from tenure.fencing.fenced_rows import EmptyRow
from tenure.protocol.entity.envelope import Envelope
from tenure.protocol.entity.key_line import WAIT, EntityCall, TooMany
from tenure.protocol.entity.messages import RESUME
from tenure.protocol.lease.reports import SHOWN_CHARACTERS, SHOWN_EDGES, EntityReport, SocketsAt

TIDIED_AT_ONCE = 200
ACTIVATION = "on_activate"
INSPECTION, EXPORT, IMPORT = ".inspect", ".export", ".import"
OPERATIONS = frozenset((INSPECTION, EXPORT, IMPORT))
"""Turns of operators, for which the entity does not begin: nothing of its class runs."""


class EntityHost:
    """The entities of one process."""

    def __init__(
        self, kind: EntityKind, settings: EntitySettings, gate: EntityGate, runs: MethodRuns
    ) -> None:
        self.pool = settings.pool
        self.kind = kind
        self._settings = settings
        self.gate = gate
        self._live: OrderedDict[str | int, LiveEntity] = OrderedDict()
        self.on_edge: Callable[[str], None] = _no_edge
        """Called when an entity begins here, for each process that has sockets of it."""
        self._beginnings = count(1)
        self._empty: list[EmptyRow] = []
        """Rows of dropped entities that hold nothing: the store can forget them."""
        self._loop = asyncio.get_running_loop()
        self._calls = 0
        """Turns that run, and calls that wait for one."""
        self.runs = runs

    @cached_property
    def guards(self) -> Guards:
        """The guards of the owner, once there is one."""
        return self.gate.envelopes.guards

    def __len__(self) -> int:
        return len(self._live)

    # --- calls ---

    def perform(
        self, call: EntityCall, here: CallHere | None = None, found: Found | None = None
    ) -> Coroutine[Any, Any, bytes]:
        """Carry out a request for a key: a call, or something about a socket. Raises NotOwner if
        the key is not held; then nothing was begun.
        """
        if here is not None:
            method, is_first = here.method, here.is_first
        else:
            of_socket = TURNS.get(call.method)
            if of_socket is not None:
                return self.take_turn(call, of_socket, found)
            if call.method == RESUME:
                return self.read(call, resumed)
            method, is_first = self.kind.method(call.method), False
        body = partial(self.runs.invoke, method, here)
        if method.is_reading:
            return self.read(call, body)
        return self.take_turn(call, body, found, is_first)

    async def take_turn(
        self,
        call: EntityCall,
        body: Body,
        found: Found | None = None,
        is_first: bool = False,  # noqa: FBT001, FBT002  # by position, which costs less
    ) -> bytes:
        """Run `body` when it is its turn. `found` is what `Guards.found` has just returned for the
        key; with `is_first`, nobody can have made the call before.
        """
        live = self._live.get(call.key) or self._add(call.key)
        step = live.line.ask(self._loop.time(), call)
        if isinstance(step, TooMany):
            raise Busy(step.why)
        self._calls += 1
        try:
            if step is WAIT:
                await self._wait(live, call)
                found = None
            guard = GuardedBody(self.guards, call.key, finish=True)
            lease = guard.begin(asyncio.current_task(self._loop), found)
            try:
                if not live.is_active(lease):
                    await self._wake(live, guard, lease, call)
                elif self.gate.is_in_question:
                    await self.gate.look(call.key)
                kept = live.envelope.answer_to(call.id) if call.id and not is_first else None
                if kept is not None and kept.data is not None:
                    answer = kept.data
                else:
                    record: Record = "new" if is_first else "unsure"
                    if kept is not None:
                        record = "repeat"
                    turn = EntityTurn(self.gate, live, lease, guard, call, record)
                    answer = await self.runs.run(turn, body)
            except BaseException as error:
                guard.leave(error, has_lasted=True)
                raise
            guard.leave(None, has_lasted=True)  # `found` was asked for in this very step
            return answer
        finally:
            self._calls -= 1
            self._end(live, call)

    async def _wait(self, live: LiveEntity, call: EntityCall) -> None:
        come = live.waiting[call] = self._loop.create_future()
        try:
            async with asyncio.timeout(self._settings.wait):
                await come
        except TimeoutError:
            if not come.done() or come.cancelled():
                raise Busy(
                    f"{call.method} did not get its turn within {self._settings.wait:g} s with "
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
            if not come.done():  # otherwise the call has waited too long, and is about to leave
                come.set_result(None)
                return

    async def read(self, call: EntityCall, body: Body) -> bytes:
        """Run `body` beside the turns, on the state that was kept last."""
        guard = Guard(self.guards, call.key)
        async with guard as lease:
            live = self._live.get(call.key)
            if live is None or not live.is_active(lease):
                await self.take_turn(EntityCall(call.key, b"", ACTIVATION, b""), _nothing)
                live = self._live[call.key]
            live.readings += 1
            turn = EntityTurn(self.gate, live, lease, guard, call, phase="reading")
            try:
                return await self.runs.run(turn, body)
            finally:
                live.readings -= 1
                live.used_at = self._loop.time()

    # --- looked at from outside ---

    async def inspected(self, key: str | int, lease: Lease) -> tuple[LiveEntity, bool]:
        """The entity with what is kept of it, and whether it is awake. One that is awake is not
        waited for, whatever it does.
        """
        live = self._live.get(key)
        if live is not None and live.is_active(lease):
            return live, True
        await self.take_turn(EntityCall(key, b"", INSPECTION, b""), _nothing)
        return self._live[key], False

    async def operate(self, key: str | int, method: str, body: Body) -> None:
        """A turn of an operator. What sleeps sleeps on."""
        try:
            await self.take_turn(EntityCall(key, b"", method, b""), body)
        finally:
            live = self._live.get(key)
            if live is not None and live.is_idle and live.is_asleep:
                del self._live[key]  # else an export would bring a whole pool into memory

    def kept(self, live: LiveEntity) -> Envelope:
        """What is kept of an entity that has a turn, as it was kept: a version of long ago, too."""
        if self.gate.store is not None:
            return live.stored
        return self.gate.envelopes.get(live.key) or NOTHING_KEPT

    # --- instances ---

    def _add(self, key: str | int) -> LiveEntity:
        live = LiveEntity(
            key,
            self.pool,
            self.kind.type,
            self.kind.codec,
            self._settings.most_waiting,
            self._beginnings,
            has_on_alarm=self.kind.handles["on_alarm"],
        )
        self._live[key] = live
        if len(self._live) > self._settings.limit:
            idle = next((each for each in self._live.values() if each.is_idle), live)
            if idle is not live:
                self._drop(idle)
        return live

    async def _wake(
        self, live: LiveEntity, guard: GuardedBody, lease: Lease, call: EntityCall
    ) -> None:
        if call.method not in OPERATIONS:
            await self._activate(live, guard, lease)
            return
        found = await self.gate.load(live.key, lease)
        live.begin(found)
        live.stored = found
        if found.is_empty:  # the store has a row from now on, which nobody else will look for
            self._empty.append(EmptyRow(live.key, lease.number, found.step))

    async def _activate(self, live: LiveEntity, guard: GuardedBody, lease: Lease) -> None:
        found = await self.gate.load(live.key, lease)
        live.begin(live.current(found))
        if self.gate.store is not None:
            live.stored = found
        else:
            live.is_copied = False  # loading has waited for all copies
        live.decoded(live.envelope)  # raises if the state cannot be read
        if self.kind.handles[ACTIVATION]:
            call = EntityCall(live.key, b"", ACTIVATION, b"")
            await self.runs.run(EntityTurn(self.gate, live, lease, guard, call), _on_activate)
        if not guard.has_lasted():
            raise self.guards.lease_lost(live.key, lease)
        live.activated(lease)
        self.gate.arm(live.key, live.envelope.next_alarm())
        for edge in dict.fromkeys(each.edge for each in live.envelope.sockets.values()):
            self.on_edge(edge)

    def passivate(self, before: float) -> None:
        """Drop the instances that nobody has used since `before`."""
        for live in [each for each in self._live.values() if each.is_idle]:
            if live.used_at < before:
                self._drop(live)

    def _drop(self, live: LiveEntity) -> None:
        del self._live[live.key]
        row = live.empty_row
        if row is not None and self.gate.store is not None:
            self._empty.append(row)

    @property
    def has_empty_rows(self) -> bool:
        """Whether the store has empty rows."""
        return bool(self._empty)

    async def tidy(self) -> None:
        """Make the store drop rows of keys that were only asked for, some at a time."""
        while self._empty and self.gate.store is not None:
            rows, self._empty = self._empty[:TIDIED_AT_ONCE], self._empty[TIDIED_AT_ONCE:]
            with suppress(StoreFailed):  # such a row stays until the key is used and left again
                await self.gate.store.forget(rows)

    def confirm(self, key: str | int, received: dict[bytes, int]) -> None:
        """Edges have received frames of the key up to these numbers."""
        live = self._live.get(key)
        if live is not None:
            self.gate.confirm(live, received)

    def arm_again(self, key: str | int) -> None:
        """An alarm has rung, so the agenda has no alarm of the key: set the next one."""
        live = self._live.get(key)
        if live is not None:
            self.gate.arm(key, live.envelope.next_alarm())

    def silent_sockets(self, seconds: float) -> list[tuple[str | int, bytes]]:
        """The sockets whose edges have not been heard for so long, with their keys."""
        now = self._loop.time()
        return [
            (live.key, each)
            for live in self._live.values()
            if live.envelope.sockets and self._is_current(live)
            for each in live.silent_sockets(now, seconds)
        ]

    def _is_current(self, live: LiveEntity) -> bool:
        """Whether what is known of the entity is not of before its key has gone."""
        lease = self.guards.found(live.key)[1]
        return lease is not None and live.is_active(lease)

    def with_sockets_at(self, edge: str) -> list[LiveEntity]:
        """The entities that have sockets in the process of this address."""
        return [live for live in self._live.values() if live.sockets_at(edge)]

    # --- what is shown of it ---

    def report(self, alarms: int) -> EntityReport:
        """How many entities and sockets there are, and which turn has run for longest."""
        longest = self.runs.oldest
        at = Counter(
            each.edge
            for live in self._live.values()
            if live.envelope.sockets and self._is_current(live)
            for each in live.envelope.sockets.values()
        )
        return EntityReport(
            kind=self.kind.name[:SHOWN_CHARACTERS],
            instances=len(self._live),
            turns=len(self.runs),
            waiting=self._calls - len(self.runs),
            alarms=alarms,
            longest=f"{longest.what.method} of {longest.what.key!r:.100}"[:SHOWN_CHARACTERS]
            if longest
            else "",
            longest_seconds=round(self._loop.time() - longest.began, 1) if longest else 0.0,
            inspects=True,
            kept_in=(self._settings.store or "").partition(":")[0][:SHOWN_CHARACTERS],
            sockets=at.total(),
            edges=tuple(
                SocketsAt(edge=edge[:SHOWN_CHARACTERS], sockets=count)
                for edge, count in at.most_common(SHOWN_EDGES)
            ),
        )


def _no_edge(_: str) -> None:
    """Do nothing: nobody watches edges yet."""


async def _nothing(_: EntityTurn) -> bytes:
    return NOTHING


async def _on_activate(turn: EntityTurn) -> bytes:
    await seen_by(turn).on_activate()
    return NOTHING
