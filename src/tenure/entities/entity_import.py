"""The entities of an export on their way in, each in turns of its own with its owner.

An entity that fits into one commit is put there by one. A larger one comes part by part, and its
state says until the last that it is arriving. The first part always begins anew, and any other is
taken only after the one before it, so two imports of one file do no harm to each other.
"""

import asyncio
import secrets
from functools import partial
from typing import Literal, TypeAlias

from tenure.base.instants import in_seconds
from tenure.entities.arriving_state import arriving, arriving_state
from tenure.entities.entity_lines import UNFIT, GivenLines, LinesOfKept
from tenure.entities.entity_turn import EntityTurn
from tenure.entities.methods import NOTHING
from tenure.entities.state_codec import STATE_BYTES
from tenure.entities.turn_items import KeptItems, TurnItems, check_room
from tenure.entities.turns import IMPORT, EntityHost
from tenure.errors import OutcomeUnknown, StoreFailed
from tenure.protocol.entity.copying import PERMIT_SECONDS, PutDone, PutEntity
from tenure.protocol.entity.envelope import Envelope
from tenure.protocol.entity.export_lines import EntityDigest, read_entity_lines
from tenure.protocol.entity.inspection import WORDS_CHARACTERS, NotSeen
from tenure.runtime.clock import Clock

NONCE_BYTES = 16
ANSWER_SECONDS = 6.0
"""How long an answer takes at most: a manager waits a little longer."""
REMEMBERED_SECONDS = 30.0
"""How long what came of it is known to whoever asks again."""
AGAIN = "ask again in a moment"
PutName: TypeAlias = tuple[str | int, bytes, int, bytes]
"""Of what a request is a repetition: the key, the digest, the part, and what may be replaced."""


class EntityImport:
    """Puts entities where they belong, in one process."""

    def __init__(self, host: EntityHost, clock: Clock) -> None:
        self._host = host
        self._clock = clock
        self._lines = LinesOfKept(host.kind)
        self._tasks: dict[PutName, asyncio.Task[PutDone | NotSeen]] = {}
        self._nonce = secrets.token_bytes(NONCE_BYTES)

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
            why = f"the lines cannot be kept: {error}"[:WORDS_CHARACTERS]
            return NotSeen(why=why, way_out="mend the lines, or the class")
        done: list[PutDone] = []

        async def body(turn: EntityTurn) -> bytes:
            done.append(await self._put(turn, asked, given))
            return NOTHING

        try:
            await self._host.operate(asked.key, IMPORT, body)
        except (StoreFailed, OutcomeUnknown) as error:  # whoever asks again is told what is there
            why = str(error)[:WORDS_CHARACTERS]
            return NotSeen(why=why, way_out=AGAIN, may_repeat=True)
        return done[0]

    async def _put(self, turn: EntityTurn, asked: PutEntity, given: GivenLines) -> PutDone:
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
        elif kept.collections:  # one commit cannot take the place of their items
            self._check_room(asked.key, given)
            state = arriving_state(asked.digest, 0)
            await self._host.gate.put(turn, state, in_place=True)
        await self._add(turn, asked, given)
        return self._done("put" if asked.is_last else "part", parts=asked.part + 1)

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
