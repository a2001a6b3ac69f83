"""The demo's operations: counted, and attempts that are given up are not taken back."""

import pytest

from tenure.base.instants import seconds
from tenure.base.keys import UserKey
from tenure.cli.demo.operations import PresenceRequest, operations
from tenure.cli.demo.presence import Status
from tests.patience import until
from tests.unit.routing.scripted import Table, refused_port, scripted

pytestmark = pytest.mark.asyncio

REQUEST = PresenceRequest("ada", Status("busy", 1))


class PresenceTable(Table):
    def find(self, key: UserKey, /) -> str | None:
        assert key == "ada"
        return self.address


async def test_a_refusal_that_comes_late_is_counted() -> None:
    with scripted(b'{"text": "busy", "version": 1}') as still, scripted(b"null") as owner:
        still.play("refuses_late")
        table = PresenceTable(still.url)
        table.then = owner.url
        async with operations(table, seconds(30)) as does:
            done = await does.do(REQUEST)
            assert done is not None
            assert (does.counts.refused, does.counts.rerouted) == (0, 1)
            still.call("release")
            await until(lambda: does.counts.refused_late)
    counts = does.counts
    assert (counts.requests, counts.failed, counts.attempts, counts.refused) == (1, 0, 2, 1)


async def test_an_operation_is_answered_after_refusals_and_they_are_counted() -> None:
    with scripted(b'{"text": "busy", "version": 1}') as owner:
        owner.play("refuses", "refuses")
        async with operations(PresenceTable(owner.url), seconds(30)) as does:
            done = await does.do(REQUEST)
    assert done is not None
    assert done.status == Status("busy", 1)
    assert (does.counts.refused, does.counts.rerouted, does.counts.attempts) == (2, 0, 3)


async def test_what_nobody_does_in_time_has_failed() -> None:
    async with operations(PresenceTable(refused_port()), seconds(0.05)) as does:
        assert await does.do(REQUEST) is None
    assert (does.counts.requests, does.counts.failed) == (1, 1)
