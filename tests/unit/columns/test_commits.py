"""Group commit: which writers share a sync, when one begins, and what is left at the end."""

import asyncio
import threading
from threading import Event
from types import SimpleNamespace

import pytest

from tenure.columns import commits
from tenure.columns.commits import GATHER_SECONDS, GroupCommit
from tests.patience import DEADLINE_SECONDS

pytestmark = pytest.mark.asyncio


def waited(event: Event) -> None:
    assert event.wait(DEADLINE_SECONDS)


async def test_all_that_are_ready_share_the_first_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commits, "GATHER_SECONDS", 60.0)  # a busy machine may stand still
    made: list[None] = []
    group = GroupCommit(lambda: made.append(None))
    await asyncio.gather(*(group.durable() for _ in range(100)))
    assert (len(made), group.count) == (1, 1)
    await group.finish()


async def test_who_comes_while_a_sync_runs_waits_for_the_next() -> None:
    """The one that runs may have passed what was applied only now."""
    may_sync = Event()
    group = GroupCommit(lambda: waited(may_sync))
    first = group.durable()
    await asyncio.sleep(0)
    assert group.count == 1
    later = [group.durable() for _ in range(10)]
    assert group.count == 1  # one at a time
    may_sync.set()
    await first
    assert not any(each.done() for each in later)
    assert group.count == 2
    await asyncio.gather(*later)
    assert group.count == 2
    await group.finish()


async def test_a_sync_begins_within_a_long_turn_of_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A turn begins it if it takes longer than a writer waits; a shorter one does not."""
    now = [100.0]
    monkeypatch.setattr(commits, "time", SimpleNamespace(monotonic=lambda: now[0]))
    may_sync = Event()
    group = GroupCommit(lambda: waited(may_sync))
    waiting = [group.durable()]
    now[0] += GATHER_SECONDS / 2
    waiting.append(group.durable())
    assert group.count == 0
    now[0] += GATHER_SECONDS
    waiting.append(group.durable())
    assert group.count == 1
    later = group.durable()
    await asyncio.sleep(0)
    assert group.count == 1  # one at a time
    may_sync.set()
    await asyncio.gather(*waiting, later)
    assert group.count == 2
    await group.finish()


async def test_in_the_end_nobody_waits_and_the_thread_is_gone() -> None:
    def threads() -> set[threading.Thread]:
        return {each for each in threading.enumerate() if "columns sync" in each.name}

    before, may_sync = threads(), Event()
    group = GroupCommit(lambda: waited(may_sync))
    first = group.durable()
    await asyncio.sleep(0)
    second = group.durable()
    finishing = asyncio.create_task(group.finish())
    await asyncio.sleep(0)
    assert not finishing.done()
    assert threads() - before
    may_sync.set()
    await finishing
    assert first.done()
    assert second.done()
    assert threads() <= before
