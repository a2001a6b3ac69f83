"""The entities of an export on their way in, each in turns of its own with its owner.

An entity that fits into one commit is put there by one. A larger one comes part by part, and its
state says until the last that it is arriving. The first part always begins anew, and any other is
taken only after the one before it, so two imports of one file do no harm to each other.

If a part is refused, what has arrived goes, since no part will follow. What was there before comes
back if its owner still knows it. It does not if the entity has moved since, or had collections in a
store: then nothing is there.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Literal, TypeAlias, TypeVar

from tenure.base.instants import in_seconds
from tenure.client.lease import Lease
from tenure.entities.arriving_state import arriving, arriving_state
from tenure.entities.entity_lines import UNFIT, GivenLines, LinesOfKept
from tenure.entities.entity_turn import EntityTurn
from tenure.entities.methods import NOTHING
from tenure.entities.state_codec import STATE_BYTES
from tenure.entities.turn_items import KeptItems, TurnItems, check_room
from tenure.entities.turns import IMPORT, EntityHost
from tenure.errors import OutcomeUnknown, StoreFailed, ValueTypeError
from tenure.protocol.entity.copying import PERMIT_SECONDS, PutDone, PutEntity
from tenure.protocol.entity.envelope import Envelope
from tenure.protocol.entity.export_lines import EntityDigest, read_entity_lines
from tenure.protocol.entity.inspection import WORDS_CHARACTERS, NotSeen
from tenure.runtime.clock import Clock

T = TypeVar("T")
NONCE_BYTES = 16
ANSWER_SECONDS = 6.0
"""How long an answer takes at most: a manager waits a little longer."""
REMEMBERED_SECONDS = 30.0
"""How long what came of it is known to whoever asks again."""
AGAIN = "ask again in a moment"
PutName: TypeAlias = tuple[str | int, bytes, int, bytes]
"""Of what a request is a repetition: the key, the digest, the part, and what may be replaced."""
MOST_BEFORE = 16
"""Of how many arriving entities the owner knows what was there: each may have a mebibyte."""


class EntityImport:
    """Puts entities where they belong, in one process."""

    def __init__(self, host: EntityHost, clock: Clock) -> None:
        self._host = host
        self._clock = clock
        self._lines = LinesOfKept(host.kind)
        self._tasks: dict[PutName, asyncio.Task[PutDone | NotSeen]] = {}
        self._nonce = secrets.token_bytes(NONCE_BYTES)
        self._before: dict[str | int, tuple[Lease, Envelope]] = {}
        """What was there of entities that are arriving, the one that began first at the front, and
        under which lease: after another owner had the key, it may have been replaced meanwhile.
        """

    async def put(self, asked: PutEntity) -> PutDone | NotSeen:
        """Put some lines in. Raises what has ended the turn."""
        of = asked.key, asked.digest, asked.part, asked.replaces
        task = self._tasks.get(of)
        if task is None:
            task = self._tasks[of] = asyncio.create_task(self._taken(asked))
            task.add_done_callback(partial(self._ended, of))
        done, _ = await asyncio.wait((task,), timeout=ANSWER_SECONDS)
        if not done:  # to compare a large entity takes longer; whoever asks again is told
            return NotSeen(why="the owner is still at it", way_out=AGAIN, may_repeat=True)
        self._tasks.pop(of, None)
        return await task

    def _ended(self, of: PutName, task: asyncio.Task[PutDone | NotSeen]) -> None:
        if not task.cancelled():
            task.exception()

        def forget() -> None:
            if self._tasks.get(of) is task:
                del self._tasks[of]

        asyncio.get_running_loop().call_later(REMEMBERED_SECONDS, forget)

    async def _taken(self, asked: PutEntity) -> PutDone | NotSeen:
        kind = self._host.kind
        if asked.kind != kind.name:
            return NotSeen(
                why=f"the lines are of the class {asked.kind[:100]}, and {self._host.pool} has "
                f"the class {kind.name}",
                way_out="import into a pool of that class; one that was renamed says name=",
            )
        try:
            given = GivenLines(kind, asked.key, read_entity_lines(asked.lines))
            if asked.is_last is (given.state is None):
                raise ValueError("the line of the entity comes with the last part, and only there")
        except UNFIT as error:
            return await self._refused(asked, error)
        try:
            return await self._operated(asked.key, partial(self._put, asked=asked, given=given))
        except ValueTypeError as error:
            return await self._refused(asked, error)

    async def _operated(
        self, key: str | int, work: Callable[[EntityTurn], Awaitable[T]]
    ) -> T | NotSeen:
        done: list[T] = []

        async def body(turn: EntityTurn) -> bytes:
            done.append(await work(turn))
            return NOTHING

        try:
            await self._host.operate(key, IMPORT, body)
        except (StoreFailed, OutcomeUnknown) as error:  # whoever asks again is told what is there
            why = str(error)[:WORDS_CHARACTERS]
            return NotSeen(why=why, way_out=AGAIN, may_repeat=True)
        return done[0]

    async def _refused(self, asked: PutEntity, error: Exception) -> NotSeen:
        """Let what has arrived go: a half that nobody can read would be there until the import is
        repeated.
        """
        left = await self._operated(asked.key, partial(self._take_back, asked=asked))
        if isinstance(left, NotSeen):
            return left
        why = f"{left}the lines cannot be kept: {error}"[:WORDS_CHARACTERS]
        return NotSeen(why=why, way_out="mend the lines, or the class")

    async def _take_back(self, turn: EntityTurn, *, asked: PutEntity) -> str:
        half = arriving(self._host.kept(turn.live).state)
        arrived = (half.digest, half.parts) if half is not None else None
        if arrived != (asked.digest, asked.part) or not self._counts(asked.permit):
            return ""  # it has not begun, or another import goes on with it
        lease, before = self._before.pop(asked.key, (None, None))
        if lease != turn.lease:
            before = None
        await self._host.gate.replace(turn, before or Envelope())
        there = "nothing is there now" if before is None else "what was there is there again"
        return f"{there}; "

    async def _put(self, turn: EntityTurn, *, asked: PutEntity, given: GivenLines) -> PutDone:
        if not self._counts(asked.permit):
            return self._done("stale")
        kept = self._host.kept(turn.live)
        half = arriving(kept.state)
        if half is None and _is_there(kept):
            there = await self._digest(asked.key, kept)
            if there == asked.digest:
                return self._done("same")
            if asked.part or there != asked.replaces:
                return self._done("differs", there=there)
        if asked.part:
            parts = half.parts if half is not None and half.digest == asked.digest else 0
            if asked.part != parts:  # it was put before, or is to be begun again
                return self._done("part", parts=parts)
        else:
            if half is None:
                self._remember(asked.key, turn.lease, kept)
            if kept.collections:  # one commit cannot take the place of their items
                self._check_room(asked.key, given)
                state = arriving_state(asked.digest, 0)
                await self._host.gate.replace(turn, Envelope(state=state))
        await self._add(turn, asked, given)
        if asked.is_last:
            self._before.pop(asked.key, None)
        return self._done("put" if asked.is_last else "part", parts=asked.part + 1)

    def _remember(self, key: str | int, lease: Lease, kept: Envelope) -> None:
        self._before.pop(key, None)
        if self._host.gate.store is None or not kept.collections:
            self._before[key] = lease, kept
        while len(self._before) > MOST_BEFORE:
            del self._before[next(iter(self._before))]

    def _check_room(self, key: str | int, given: GivenLines) -> None:
        """Raise ValueTypeError while what is there is still there."""
        if self._host.gate.store is None:
            new = Envelope(state=given.state or b"", items=given.items)
            check_room(self._host.kind.name, key, new, STATE_BYTES)

    async def _add(self, turn: EntityTurn, asked: PutEntity, given: GivenLines) -> None:
        gone = {} if asked.part else dict.fromkeys(turn.live.envelope.alarms)
        changes = turn.changes
        changes.alarms = {**gone, **given.alarms}
        changes.items, changes.numbers = given.items, given.numbers
        changes.answers = tuple(given.answers)
        turn.latest = given.latest
        state = given.state
        if state is None:
            state = arriving_state(asked.digest, asked.part + 1)
        await self._host.gate.put(turn, state)

    async def _digest(self, key: str | int, kept: Envelope) -> bytes:
        digest = EntityDigest()
        items = TurnItems(KeptItems(key, kept), self._host.gate.store)
        async for each in self._lines.of(key, kept, items, self._host.gate.wall()):
            digest.add(each)
        return digest.value()

    # --- permits ---

    def _counts(self, permit: bytes) -> bool:
        nonce, at = permit[:NONCE_BYTES], int.from_bytes(permit[NONCE_BYTES:])
        return nonce == self._nonce and in_seconds(self._clock() - at) < PERMIT_SECONDS

    def _done(
        self,
        outcome: Literal["put", "same", "differs", "part", "stale"],
        *,
        there: bytes = b"",
        parts: int = 0,
    ) -> PutDone:
        permit = self._nonce + self._clock().to_bytes(8)
        return PutDone(outcome=outcome, permit=permit, there=there, parts=parts)


def _is_there(kept: Envelope) -> bool:
    """Whether something is kept that an import must not change by itself."""
    return bool(kept.state or kept.alarms or kept.collections or kept.sockets)
