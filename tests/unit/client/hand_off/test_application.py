"""The application's event loop is kept for one large chunk at a time, however many are wanted."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from concurrent.futures import Future
from typing import Any

import pytest

from tenure import KeyRange
from tenure.client.callbacks import Callbacks, Job
from tenure.client.hand_off import application as of_application
from tenure.client.hand_off.application import Application, Arrival
from tenure.client.hand_off.handler import Exported
from tenure.protocol.lease.owner.giving import SMALL_BYTES
from tenure.runtime.clock import boot_clock
from tenure.testing.clock import come_to_rest
from tests.unit.client.hand_off.stage import guards

pytestmark = pytest.mark.asyncio
WHOLE = KeyRange(b"", None)
LARGE, SMALL = bytes(SMALL_BYTES + 1), bytes(SMALL_BYTES)


class Listed:
    """A handler that only lists what is asked of it."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def export_range(self, key_range: KeyRange, since: object) -> Exported:
        raise NotImplementedError

    def import_chunk(self, key_range: KeyRange, chunk: bytes) -> None:
        self.done.append("large" if chunk is LARGE else "small")

    def discard_range(self, key_range: KeyRange) -> None:
        self.done.append("discard")


def application(handler: Listed) -> tuple[Application, Callbacks]:
    logger = logging.getLogger("test")
    callbacks = Callbacks("an owner", logger, boot_clock)
    return Application(handler, callbacks, Counter(), "an owner", logger, guards()), callbacks


async def test_what_is_small_or_waited_for_goes_before_large_chunks_that_wait() -> None:
    handler = Listed()
    asked, callbacks = application(handler)

    async def chunks(name: str) -> AsyncIterator[bytes]:
        handler.done.append(name)
        yield b""

    def wish() -> list["Future[Any]"]:
        giving = [asked.next_of(chunks("ahead")) for _ in range(3)]
        return [*giving, asked.next_of(chunks("last"), is_urgent=True)]

    callbacks.start_here()
    taking = [asked.take(Arrival(WHOLE, i), LARGE) for i in range(3)]
    taking.append(asked.take(Arrival(WHOLE, 4), SMALL))
    await asyncio.gather(*taking, *map(asyncio.wrap_future, wish()))
    assert sorted(handler.done[:2]) == ["last", "small"]
    assert sorted(handler.done[2:]) == 3 * ["ahead"] + 3 * ["large"]
    callbacks.stop()
    await come_to_rest()


async def test_requests_are_served_between_large_chunks() -> None:
    handler = Listed()
    asked, callbacks = application(handler)
    callbacks.start_here()
    taking = asyncio.gather(*(asked.take(Arrival(WHOLE, i), LARGE) for i in range(5)))
    most, before = 0, 0
    while not taking.done():
        await asyncio.sleep(0)  # a turn of the application's loop
        most, before = max(most, len(handler.done) - before), len(handler.done)
    assert (most, len(handler.done)) == (1, 5)
    callbacks.stop()
    await come_to_rest()


class Failing(Listed):
    """Its discards raise the listed errors, in order, and then succeed."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__()
        self.errors = list(errors)

    def discard_range(self, key_range: KeyRange) -> None:
        if self.errors:
            raise self.errors.pop(0)
        super().discard_range(key_range)


async def test_a_discard_that_fails_is_logged_once_until_it_fails_otherwise(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(of_application, "RETRY_SECONDS", 0)
    handler = Failing(*(ZeroDivisionError() for _ in range(3)), ValueError("a"), ValueError("a"))
    asked, callbacks = application(handler)
    callbacks.start_here()
    let_go = asyncio.Event()
    asked.discard([WHOLE], [], let_go.set)
    await let_go.wait()
    errors = [each.exc_info for each in caplog.records if each.levelno == logging.ERROR]
    assert [each and each[0] for each in errors] == [ZeroDivisionError, ValueError]
    assert handler.done == ["discard"]
    callbacks.stop()
    await come_to_rest()


class Hanging(Listed):
    """An import that waits."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()

    async def import_chunk(self, key_range: KeyRange, chunk: bytes) -> None:  # type: ignore[override]
        await self.gate.wait()
        super().import_chunk(key_range, chunk)


async def test_an_import_that_hangs_keeps_its_discard_waiting_and_no_other_callback() -> None:
    handler = Hanging()
    asked, callbacks = application(handler)
    callbacks.start_here()
    arrival = Arrival(WHOLE, 1)
    taking = asyncio.ensure_future(asked.take(arrival, SMALL))
    await come_to_rest()
    asked.discard([WHOLE], [arrival], lambda: handler.done.append("let go"))
    callbacks.put(Job("on_revoke", lambda _: handler.done.append("on_revoke"), None, "another"))
    await come_to_rest()
    assert handler.done == ["on_revoke"]
    handler.gate.set()
    await taking
    await come_to_rest()
    assert handler.done == ["on_revoke", "small", "discard", "let go"]
    callbacks.stop()
    await come_to_rest()
