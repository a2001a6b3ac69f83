"""Following an etcd journal as it grows, for a standby that wants to be warm.

First it reads what it lacks, then it watches from the next revision on, so that nothing falls
between. Whatever ends the watch (the member died, etcd forgot that revision, or nothing was heard
for a while, which is also how a member looks that is cut off from the others) it begins again with
reading: that is answered only by a member that is in touch with the rest, costs next to nothing
where there is nothing new, brings the snapshot where the records are gone, and shows if the journal
went back.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final, TypeAlias

import msgspec

from tenure.errors import JournalError
from tenure.journals.contract import FATAL, History, Tail
from tenure.journals.etcd_errors import NoAnswer
from tenure.journals.etcd_log import catch_up, read_chunks, records_after
from tenure.journals.etcd_store import Store
from tenure.journals.etcd_wire import (
    WATCH,
    Event,
    WatchAnswer,
    WatchCreate,
    Watched,
    WatchRequest,
)
from tenure.protocol.lease.records import AnyRecord

Followed: TypeAlias = History | Tail
"""What a follower gets: the next records, or all anew where those it lacked are gone."""

QUIET_SECONDS: Final = 5.0
"""How long a watch may be silent. A journal that has a leader changes rarely all the same: what is
watched is the records, not the beats, which every standby reads anyway."""
_PAUSE_SECONDS: Final = (0.05, 0.1, 0.2, 0.5, 1.0)
"""Between attempts to reach an etcd that does not answer."""

_answers = msgspec.json.Decoder(WatchAnswer, strict=False)


async def follow(
    store: Store, after_lsn: int, quiet_seconds: float = QUIET_SECONDS
) -> AsyncGenerator[Followed, None]:
    """Records after `after_lsn` as they are committed, for ever. Raises FATAL errors only."""
    lsn, failures = after_lsn, 0
    while True:
        try:
            found, revision = await catch_up(store, lsn)
            failures = 0
            if isinstance(found, History) or found.records:
                lsn = found.lsn
                yield found
            async with aclosing(_watch(store, lsn, revision + 1, quiet_seconds)) as tails:
                async for tail in tails:
                    lsn = tail.lsn
                    yield tail
        except FATAL:
            raise
        except JournalError:
            await asyncio.sleep(_PAUSE_SECONDS[min(failures, len(_PAUSE_SECONDS) - 1)])
            failures += 1


async def _watch(
    store: Store, lsn: int, revision: int, quiet_seconds: float
) -> AsyncGenerator[Tail, None]:
    """Records from a revision on, until nothing is heard. Raises JournalError."""
    keys = store.keys
    request = WatchRequest(WatchCreate(keys.records, keys.after_records, revision))
    async with store.gateway.stream(WATCH, request, quiet_seconds=quiet_seconds) as lines:
        async for line in lines:
            watched = _heard(line)
            if watched.compact_revision:
                return  # etcd has forgotten what was to be told: read what is there now
            if watched.canceled:
                raise NoAnswer(f"etcd ended a watch: {watched.cancel_reason}")
            tail = await _tail(store, lsn, watched.events)
            if tail.records:
                lsn = tail.lsn
                yield tail


async def _tail(store: Store, lsn: int, events: tuple[Event, ...]) -> Tail:
    records: list[AnyRecord] = []
    for event in events:
        if event.type == "PUT":
            written = await read_chunks(store, [event.kv], event.kv.mod_revision)
            records += records_after(written, lsn + len(records))
    return Tail(lsn, tuple(records))


def _heard(line: bytes) -> Watched:
    try:
        found = _answers.decode(line)
    except msgspec.MsgspecError as error:
        raise NoAnswer(f"a watch on etcd was told what etcd does not say: {error}") from error
    if found.result is None:
        raise NoAnswer(f"a watch on etcd ended: {line.decode('utf-8', 'replace')}")
    return found.result
