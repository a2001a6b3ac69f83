"""Owners as the demo knows them: what is waited for, and when that is so."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from tenure.base.instants import Instant
from tenure.cli.demo.places import OwnerPlace
from tenure.cli.demo.reports import OwnerReport, encode
from tenure.testing.clock import come_to_rest

pytestmark = pytest.mark.asyncio


def report(ranges: int = 0, at: int = 1) -> bytes:
    return encode(OwnerReport(at=Instant(at), address="http://a", ranges=ranges))


async def is_done(waiting: "asyncio.Task[None]") -> bool:
    await come_to_rest()
    return waiting.done()


def begin(waiting: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
    return asyncio.create_task(waiting)


async def test_an_owner_has_joined_when_it_reports_and_serves_when_it_has_something() -> None:
    place = OwnerPlace(1)
    place.begin_life()
    joined, serving = begin(place.has_joined()), begin(place.is_serving())
    assert not await is_done(joined)
    place.on_line(report(ranges=0))
    assert await is_done(joined)
    assert not await is_done(serving)
    place.on_line(report(ranges=3))
    assert await is_done(serving)


async def test_the_last_process_of_an_owner_does_not_join_for_its_successor() -> None:
    place = OwnerPlace(1)
    place.begin_life()
    place.on_line(report(ranges=3))
    await place.has_joined()
    place.begin_life()
    joined = begin(place.has_joined())
    assert not await is_done(joined)
    place.on_line(report())
    assert await is_done(joined)


async def test_a_report_made_before_is_not_the_next_one() -> None:
    place = OwnerPlace(1)
    place.on_line(report(at=5))
    waiting = begin(place.next_report(Instant(5)))
    place.on_line(report(at=5))
    assert not await is_done(waiting)
    place.on_line(report(at=6))
    assert await is_done(waiting)
