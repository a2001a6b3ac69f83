"""Copies of the states of entities that other processes own, and the readings of them.

They are entries of a cache: the protocol of volumes keeps each current for as long as it may be
read. A reading takes a copy that may be read when it begins, or has one fetched. If there can be
none, the owner is asked to carry it out.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Self

from tenure.base.instants import seconds
from tenure.base.rangemap import RangeMap
from tenure.cache.board import CacheBoard, HitSampler
from tenure.cache.cache import CacheClient, awaited
from tenure.cache.hit import MISSING, Hits
from tenure.client.hand_off.likeness import ValueCodec
from tenure.client.lookup import Lookup
from tenure.client.lookup_engine import CachesByRange
from tenure.entities.copied_entity import CopiedEntity, CopyReading
from tenure.entities.copy_keys import EntityKeys
from tenure.entities.entity_kind import EntityKind
from tenure.entities.method_runs import MethodRuns
from tenure.entities.methods import CallHere
from tenure.entities.settings import EntitySettings
from tenure.errors import KeyTypeError, LoadFailed, NewerState, Unreachable, ValueTypeError
from tenure.protocol.entity.key_line import EntityCall
from tenure.protocol.volume.client.events import (
    Believe,
    CacheConfig,
    DoubtEntries,
    DropEntries,
    KeepEntry,
)

LIMIT_BYTES = 256 << 20
"""The most bytes of all copies."""
PATIENCE_SECONDS = 5.0
"""How long a reading waits for an owner that does not answer."""
STALE_PATIENCE_SECONDS = 1.0
"""The same, if it may take an older state instead."""
AT_OWNER_SECONDS = 60.0
"""How long a method that needed its owner is not tried on a copy again."""


class CopiedState:
    """What was fetched, and the entity that is made of it when it is read first."""

    __slots__ = ("entity", "state")

    def __init__(self, state: bytes) -> None:
        self.state = state
        self.entity: CopiedEntity | None = None


class CopyCodec(ValueCodec[CopiedState]):
    """How copies arrive."""

    def __init__(self) -> None:
        super().__init__(bytes, "a copy")
        plain = self.decode
        self.decode = lambda data: CopiedState(plain(data))


class CopyBoard(CacheBoard):
    """The entries of a process, which says which ones have gone."""

    on_gone: Callable[[tuple[Any, ...]], None]
    """Called in the library's thread."""

    def perform(self, action: Believe | KeepEntry | DropEntries | DoubtEntries) -> None:
        super().perform(action)
        if isinstance(action, DropEntries | DoubtEntries):
            self.on_gone(self._names(action.keys))


class CopiesHere:
    """The copies in one process."""

    def __init__(
        self, kind: EntityKind, settings: EntitySettings, lookup: Lookup, runs: MethodRuns
    ) -> None:
        environment = settings.environment
        self._kind = kind
        self._pool = settings.pool
        self._stale_after = settings.stale_after
        self._look_seconds = settings.read_term / 3
        """How often who waits for a change looks at the copy."""
        self._lookup = lookup
        self._runs = runs
        self._loop = asyncio.get_running_loop()
        self._clock = self._loop.time
        codec = CopyCodec()
        board = CopyBoard(
            EntityKeys(),
            codec.decode,
            environment.clock,
            settings.limit,
            LIMIT_BYTES,
            HitSampler(0.0, environment.random()),
        )
        board.on_gone = self._on_gone
        config = CacheConfig(
            server="",
            patience_ns=seconds(PATIENCE_SECONDS),
            write_patience_ns=seconds(PATIENCE_SECONDS),
        )
        self.client = CacheClient(config, board, codec, environment, lookup)
        self._hits: Hits[CopiedState] = Hits(board)
        self._given: RangeMap[str | None] = RangeMap(None)
        """Where copies of each range are given."""
        self._at_owner: dict[str, float] = {}
        """The methods that need their owner, and until when that is believed."""
        self._waiting: dict[str | int, list[asyncio.Event]] = {}
        """Who waits for another copy of a key."""

    async def __aenter__(self) -> Self:
        await self.client.__aenter__()
        self._lookup.follow_caches(self._on_given)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.__aexit__()

    @property
    def hits(self) -> int:
        """How many readings have found a copy here."""
        return self.client.board.hits

    def _on_given(self, by_range: CachesByRange) -> None:
        """Take note of where copies are given; in the library's thread."""
        self._given = RangeMap.of(by_range, None)

    # --- readings ---

    async def read(self, call: EntityCall, here: CallHere) -> bytes | None:
        """The answer of a reading; None if the owner must carry it out. Raises Unreachable, and
        what the method raises.
        """
        name = here.method.name
        if self._at_owner and self._at_owner.get(name, 0.0) > self._clock():
            return None
        found = await self._copied(call.key)
        if found is None:
            return None
        reading, answer = CopyReading(self, found, call), b""
        try:
            answer = await self._runs.run(reading, partial(self._runs.invoke, here.method, here))
        except Exception as error:
            is_of_owner = isinstance(error, AttributeError) and _is_missing(error, reading)
            if not (reading.needs_owner or is_of_owner):
                raise
            reading.needs_owner = True
        if not reading.needs_owner:
            return answer
        here.data = None
        self._at_owner[name] = self._clock() + AT_OWNER_SECONDS
        return None

    async def newer(self, seen: CopiedEntity) -> CopiedEntity | None:
        """Wait for a copy of another state, and keep the lease meanwhile."""
        with self._told_of(seen.key) as gone:
            while True:
                gone.clear()
                found = await self._copied(seen.key)
                if found is None or found.envelope.state != seen.envelope.state:
                    return found
                # A look now and then is a use, for which the lease is renewed.
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._look_seconds):
                        await gone.wait()

    # --- copies ---

    async def _copied(self, key: str | int) -> CopiedEntity | None:
        try:
            found = self._hits.peek(key)
        except KeyTypeError:  # it is too long for a copy
            return None
        if found is MISSING:
            found = await self._fetched(key)
        if found is None:
            return None
        if found.entity is None:
            try:
                found.entity = CopiedEntity(key, self._pool, self._kind, found.state)
            except (NewerState, ValueTypeError):  # of a release that this one cannot read
                return None
        return found.entity

    async def _fetched(self, key: str | int) -> CopiedState | None:
        if self._given[self._lookup.key(key)] is None:
            return None  # its owner gives no copies, or there is no owner
        try:
            if self._stale(key) is not None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(STALE_PATIENCE_SECONDS):
                        return await self._asked(key)
                if (stale := self._stale(key)) is not None:
                    return stale
            return await self._asked(key)
        except Unreachable:
            stale = self._stale(key)
            if stale is None:
                raise
            return stale
        except (LoadFailed, ValueTypeError):  # the owner says what is the matter
            return None

    async def _asked(self, key: str | int) -> CopiedState:
        found: CopiedState = await awaited(self.client.fetch(key))
        return found

    def _stale(self, key: str | int) -> CopiedState | None:
        """A copy that may be out of date, but not too old for these readings."""
        if self._stale_after is None:
            return None
        known = self._hits.last_known(key)
        return None if known is None or known.age > self._stale_after else known.value

    # --- who waits for a change ---

    @contextmanager
    def _told_of(self, key: str | int) -> Iterator[asyncio.Event]:
        gone = asyncio.Event()
        self._waiting.setdefault(key, []).append(gone)
        try:
            yield gone
        finally:
            left = self._waiting[key]
            left.remove(gone)
            if not left:
                del self._waiting[key]

    def _on_gone(self, names: tuple[str | int, ...]) -> None:
        if any(name in self._waiting for name in names):
            self._loop.call_soon_threadsafe(self._wake, names)

    def _wake(self, names: tuple[str | int, ...]) -> None:
        for name in names:
            for each in self._waiting.get(name, ()):
                each.set()


def _is_missing(error: AttributeError, reading: CopyReading) -> bool:
    """Whether the instance would have that attribute at its owner, where instances live."""
    return getattr(error.obj, "_turn", None) is reading
