"""Inspector: answers what operators ask of the entities of this process, through the leader.

It runs nothing of the application: an entity that sleeps is loaded in a turn of its own, and sleeps
on, and one that is awake is shown as it was kept last, although its turn may never end.
"""

import asyncio
import logging
from collections.abc import Iterator, Sized

import msgspec

from tenure.base.keys import KEY_BYTES
from tenure.base.ranges import KeyRange
from tenure.client.guard import Guard
from tenure.entities.entity_export import EntityExport
from tenure.entities.entity_import import EntityImport
from tenure.entities.entity_lines import collections_of
from tenure.entities.live_entity import LiveEntity
from tenure.entities.shown_values import seen_item, state_in_json
from tenure.entities.turn_items import KeptItems, TurnItems
from tenure.entities.turns import EntityHost
from tenure.errors import MALFORMED, Busy, LeaseLost, NotOwner, StoreAway, StoreFailed, TenureError
from tenure.protocol.entity.copying import CopyEntity, PutEntity
from tenure.protocol.entity.envelope import Envelope
from tenure.protocol.entity.inspection import (
    COUNTED_ITEMS,
    ITEMS_BYTES,
    PAGE_KEYS,
    PLACE_BYTES,
    SHOWN_PARTS,
    WALKED_KEYS,
    WORDS_CHARACTERS,
    FindKeys,
    FoundKeys,
    InspectionAnswer,
    InspectionQuestion,
    ListPlace,
    NotSeen,
    SeenAlarm,
    SeenCollection,
    SeenEntity,
    SeenItem,
    SeenSocket,
    ShowEntity,
)
from tenure.protocol.entity.items import ItemSpan
from tenure.protocol.entity.key_line import EntityKey
from tenure.runtime.clock import Clock

AT_ONCE = 4
"""How many questions are answered at once: each may have a mebibyte in memory."""
MOST_WAITING = 64
LOOK_KEYS = 100
"""As how many keys each look into a store counts at least: who wants one key of a prefix looks at
one at a time.
"""
LONG_KEYS = 10 * WALKED_KEYS
AGAIN = "ask again in a moment"
_encode = msgspec.msgpack.Encoder().encode
logger = logging.getLogger("tenure.entities")


class OwnPlace(msgspec.Struct, frozen=True, array_like=True):
    """A key among those of one owner, and its place in the key space."""

    place: ListPlace
    key: EntityKey


read_place = msgspec.msgpack.Decoder(OwnPlace).decode


class Inspector:
    """The answers of one process."""

    def __init__(self, host: EntityHost, clock: Clock) -> None:
        self._host = host
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._asked = 0
        self._collections = collections_of(host.kind)
        self._export, self._import = EntityExport(host), EntityImport(host, clock)

    async def answer(self, asked: InspectionQuestion) -> InspectionAnswer:
        """The answer, whatever happens: somebody waits for it."""
        if self._asked >= MOST_WAITING:
            return NotSeen(why="too many ask this owner", way_out=AGAIN, may_repeat=True)
        self._asked += 1
        try:
            async with self._slots:
                return await self._answer(asked)
        except (NotOwner, LeaseLost):
            why = "the key has just moved to another owner"
            return NotSeen(why=why, way_out=AGAIN, may_repeat=True)
        except (Busy, StoreAway) as error:
            return NotSeen(why=str(error)[:WORDS_CHARACTERS], way_out=AGAIN, may_repeat=True)
        except TenureError as error:
            why = type(error).__name__
            if not isinstance(asked, ShowEntity) or asked.contents:  # it may quote what is kept
                why += f": {error}"
            return NotSeen(why=why[:WORDS_CHARACTERS], way_out="look at the log of the owner")
        except Exception as error:
            logger.exception("a question about %s cannot be answered", self._host.pool)
            why = f"the question failed: {type(error).__name__}"
            return NotSeen(why=why, way_out="report it; the log of the owner has the same")
        finally:
            self._asked -= 1

    async def _answer(self, asked: InspectionQuestion) -> InspectionAnswer:
        match asked:
            case ShowEntity():
                return await self._show(asked)
            case CopyEntity():
                return await self._export.lines(asked)
            case PutEntity():
                return await self._import.put(asked)
        if self._host.gate.store is not None:
            return await self._stored_keys(asked)
        try:
            return self._own_keys(asked)
        except MALFORMED:
            return _not_here()

    # --- keys ---

    async def _stored_keys(self, asked: FindKeys) -> FoundKeys:
        store = self._host.gate.store
        assert store is not None
        found: list[str | int] = []
        walked, after, is_over = 0, asked.after, False
        while not is_over:
            part = await store.keys(after, max(asked.most - len(found), 1))
            found += [
                each
                for each in part.keys
                if not isinstance(each, bytes) and _is_wanted(each, asked.prefix)
            ]
            walked += max(len(part.keys), LOOK_KEYS)
            after, is_over = part.next or b"", part.next is None
            if _may_end(found, walked, asked, after):
                break
        return FoundKeys(keys=tuple(found), next=None if is_over else after, of_pool=True)

    def _own_keys(self, asked: FindKeys) -> FoundKeys:
        """Without a store an owner has its own keys only, all of them in memory."""
        last = read_place(asked.after) if asked.after else None
        start = asked.start if last is None else max(asked.start, last.place)
        found: list[str | int] = []
        walked = 0
        if asked.end is not None and start >= asked.end:
            return FoundKeys(keys=(), next=None, of_pool=False)
        for place, key in self._host.gate.envelopes.in_order(KeyRange(start, asked.end)):
            if last is not None and (place, repr(key)) <= (last.place, repr(last.key)):
                continue
            walked += 1
            if _is_wanted(key, asked.prefix):
                found.append(key)
            after = _encode(OwnPlace(place, key))
            if _may_end(found, walked, asked, after):
                return FoundKeys(keys=tuple(found), next=after, of_pool=False, start=place)
        return FoundKeys(keys=tuple(found), next=None, of_pool=False)

    # --- one entity ---

    async def _show(self, asked: ShowEntity) -> SeenEntity:
        guard = Guard(self._host.guards, asked.key)
        async with guard as lease:
            live, is_awake = await self._host.inspected(asked.key, lease)
            kept = live.envelope
            items = TurnItems(KeptItems(asked.key, kept), self._host.gate.store)
            collections = await _counted(items, kept)
            page, after = await self._page(items, asked)
            seen = _seen(live, kept, contents=asked.contents and not asked.collection)
            return msgspec.structs.replace(
                seen,
                number=lease.number,
                journal=lease.journal,
                awake=is_awake,
                collections=tuple(collections),
                page=page,
                next=after,
            )

    async def _page(
        self, items: TurnItems, asked: ShowEntity
    ) -> tuple[tuple[SeenItem, ...], bytes | None]:
        if not asked.collection or not asked.contents:
            return (), None
        span = ItemSpan() if asked.after is None else ItemSpan().after(asked.after)
        found, rest = await items.page(asked.collection, span, asked.most)
        collection = self._collections.get(asked.collection)
        page: list[SeenItem] = []
        size = 0
        for place, data in found:
            page.append(seen_item(collection, place, data))
            size += len(page[-1].value.encode())
            if size >= ITEMS_BYTES:
                is_last = rest is None and place == found[-1][0]
                return tuple(page), None if is_last else place
        return tuple(page), None if rest is None else found[-1][0]


def _not_here() -> NotSeen:
    return NotSeen(
        why="the token of this page is of another owner, or of a pool that had a store",
        way_out="begin with the first page",
    )


def _may_end(found: Sized, walked: int, asked: FindKeys, after: bytes) -> bool:
    """Whether a list may end here. Keys that a class calls itself by may be of any length, and none
    of those is the place where a list goes on, unless there are nothing but such keys.
    """
    if len(after) > PLACE_BYTES:
        if len(found) >= 2 * PAGE_KEYS - 1 or walked > LONG_KEYS:
            raise StoreFailed(f"more than {LONG_KEYS:,} keys are too long to be listed")
        return False
    return len(found) >= asked.most or walked >= WALKED_KEYS


def _is_wanted(key: str | int, prefix: str) -> bool:
    """Whether the key is asked for; one that no message can carry cannot be shown."""
    if isinstance(key, int):
        return not prefix
    return len(key) <= KEY_BYTES and key.startswith(prefix)


async def _counted(items: TurnItems, kept: Envelope) -> list[SeenCollection]:
    found = []
    for name in sorted(kept.collections)[:SHOWN_PARTS]:
        some, rest = await items.page(name, ItemSpan(), COUNTED_ITEMS)
        found.append(SeenCollection(name=name, items=len(some), has_more=rest is not None))
    return found


def _seen(live: LiveEntity, kept: Envelope, *, contents: bool) -> SeenEntity:
    state, version = state_in_json(kept.state) if contents else ("", 0)
    turn = live.line.running
    return SeenEntity(
        number=0,
        journal=0,
        kept=not kept.is_empty,
        awake=False,
        turn="" if turn is None or not contents else turn.method,
        waiting=max(len(live.line) - 1, 0),
        state=state,
        state_bytes=len(kept.state),
        version=version,
        answers=sum(map(len, kept.answers)),
        alarms=tuple(_alarms(kept)) if contents else (),
        alarms_set=len(kept.alarms),
        sockets=tuple(_sockets(kept)) if contents else (),
        sockets_open=sum(not each.closing for each in kept.sockets.values()),
        collections=(),
    )


def _alarms(kept: Envelope) -> Iterator[SeenAlarm]:
    first = sorted(kept.alarms.items(), key=lambda each: (each[1].next_at, each[0]))
    for name, each in first[:SHOWN_PARTS]:
        yield SeenAlarm(name=name, due=each.due, next_at=each.next_at, attempts=each.attempts)


def _sockets(kept: Envelope) -> Iterator[SeenSocket]:
    for id_, each in [*kept.sockets.items()][:SHOWN_PARTS]:
        edge = each.edge[:WORDS_CHARACTERS]
        yield SeenSocket(id=id_.hex(), edge=edge, unread=len(each.unread), closing=each.closing)
