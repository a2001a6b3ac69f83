"""The entities of this process on their way out, into an export.

An entity is copied in a turn of its own, so all of its lines are of one commit. One that does not
fit into a message keeps its turn until the last part was asked for.
"""

import asyncio
from collections.abc import AsyncIterator

from tenure.entities.arriving_state import arriving
from tenure.entities.entity_lines import LinesOfKept
from tenure.entities.entity_turn import EntityTurn
from tenure.entities.methods import NOTHING
from tenure.entities.turn_items import KeptItems, TurnItems
from tenure.entities.turns import EXPORT, EntityHost
from tenure.errors import EntityError, OutcomeUnknown
from tenure.protocol.entity.copying import FULL_PART, PART_BYTES, CopiedLines, CopyEntity
from tenure.protocol.entity.export_lines import written
from tenure.protocol.entity.inspection import WORDS_CHARACTERS, NotSeen

MOST_COPIES = 8
"""How many entities are copied at once: each may have two parts in memory."""
ASKED_SECONDS = 10.0
"""How long an entity keeps its turn without being asked for the next part."""
ANSWER_SECONDS = 6.0
"""How long an answer takes at most: a manager waits a little longer."""
AGAIN = "ask again in a moment"


class EntityCopy:
    """One entity that is copied."""

    def __init__(self, host: EntityHost, lines: LinesOfKept, key: str | int, number: int) -> None:
        self._host = host
        self._lines = lines
        self._key = key
        self._number = number
        self._parts: asyncio.Queue[bytes] = asyncio.Queue(1)
        self._last = b""
        self.task = asyncio.create_task(host.operate(key, EXPORT, self._copy))

    async def part(self) -> CopiedLines:
        """The next part. Raises what has ended the copy."""
        coming = asyncio.ensure_future(self._parts.get())
        try:
            done, _ = await asyncio.wait(
                (coming, self.task),
                timeout=ANSWER_SECONDS,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            if not coming.done():
                coming.cancel()
        if coming in done:
            return self._told(coming.result(), self._number)
        if not done:  # a store that is slow: ask on
            return self._told(b"", self._number)
        await self.task
        # The lease was held until here, so no part is of an owner that had lost the key.
        return self._told(self._last, 0)

    async def _copy(self, turn: EntityTurn) -> bytes:
        async for part in self._in_parts(turn):
            if self._last:
                async with asyncio.timeout(ASKED_SECONDS):
                    await self._parts.put(self._last)
            self._last = part
        return NOTHING

    async def _in_parts(self, turn: EntityTurn) -> AsyncIterator[bytes]:
        kept = self._host.kept(turn.live)
        if arriving(kept.state) is not None:
            raise EntityError(
                f"{self._key!r:.100} is being imported, and not all of it is here: run the import "
                "to its end first"
            )
        items = TurnItems(KeptItems(self._key, kept), self._host.gate.store)
        part = bytearray()
        async for line in self._lines.of(self._key, kept, items, self._host.gate.wall()):
            data = written(line)
            if len(part) + len(data) > PART_BYTES:
                yield bytes(part)
                part.clear()
            part += data
            if len(part) >= FULL_PART:
                yield bytes(part)
                part.clear()
        if part:
            yield bytes(part)

    def _told(self, lines: bytes, number: int) -> CopiedLines:
        kind = self._host.kind
        return CopiedLines(lines=lines, copy=number, kind=kind.name, version=kind.version)


class EntityExport:
    """The entities that are copied in this process."""

    def __init__(self, host: EntityHost) -> None:
        self._host = host
        self._lines = LinesOfKept(host.kind)
        self._loop = asyncio.get_running_loop()
        self._copies: dict[int, EntityCopy] = {}
        self._last = 0

    async def lines(self, asked: CopyEntity) -> CopiedLines | NotSeen:
        """The next lines of an entity. Raises what has ended its turn."""
        number = asked.copy or self._begun(asked.key)
        copy = self._copies.get(number)
        if copy is None:
            why = "too many entities are copied" if not number else "the copy was given up"
            return NotSeen(why=why, way_out=AGAIN, may_repeat=True)
        found = None
        try:
            found = await copy.part()
            return found
        except OutcomeUnknown as error:  # the store went away in the turn, which changed nothing
            return NotSeen(why=str(error)[:WORDS_CHARACTERS], way_out=AGAIN, may_repeat=True)
        finally:
            if found is None or not found.copy:
                self._copies.pop(number, None)
                copy.task.cancel()  # where the copy has not ended by itself

    def _begun(self, key: str | int) -> int:
        if len(self._copies) >= MOST_COPIES:
            return 0
        self._last += 1
        number = self._last
        copy = self._copies[number] = EntityCopy(self._host, self._lines, key, number)
        copy.task.add_done_callback(lambda task: self._ended(number, task))
        return number

    def _ended(self, number: int, task: asyncio.Task[None]) -> None:
        """Keep the last part for a while: it may be asked for."""
        if not task.cancelled():
            task.exception()
        self._loop.call_later(ASKED_SECONDS, self._copies.pop, number, None)
