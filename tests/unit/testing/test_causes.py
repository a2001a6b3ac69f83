"""One cause follows a story through the log of everybody whom it concerns."""

import logging
import re

import pytest

from tenure.testing.clock import TurnedClock
from tenure.testing.cluster import InProcessCluster

pytestmark = pytest.mark.asyncio


def lines_of(caplog: pytest.LogCaptureFixture, logger: str, what: str) -> list[str]:
    """The causes in the lines of `logger` that tell `what`."""
    lines = (record.getMessage() for record in caplog.records if record.name == logger)
    found = (re.search(r"\(cause ([0-9. ]+)\)$", line) for line in lines if what in line)
    return [each[1] for each in found if each]


async def test_a_cause_goes_from_a_killed_owner_to_its_heir_and_to_the_last_lookup(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "tenure")
    async with (
        InProcessCluster(["rooms"], clock=TurnedClock()) as cluster,
        cluster.owner(name="heir"),
        cluster.owner(name="killed") as killed,
        cluster.lookup(),
        cluster.lookup(),
    ):
        await cluster.turn(2)
        assert killed.check("a") or killed.check("b") or killed.check("c")
        caplog.clear()
        cluster.crash(killed)
        await cluster.turn(2)

    [cause] = lines_of(caplog, "tenure.testing", "owner's connection broke: killed")
    assert re.fullmatch(r"1\.[0-9]+", cause)
    assert lines_of(caplog, "tenure.testing", "owner expired: killed") == [cause]
    assert lines_of(caplog, "tenure.testing", "granted") == [cause]
    assert cause in lines_of(caplog, "tenure.owner", "poked")
    assert lines_of(caplog, "tenure.owner", "granted") == [cause]
    told = lines_of(caplog, "tenure.lookup", "learns")
    assert set(told) == {cause}
    assert len(told) >= 2, "each lookup is told"


async def test_a_pool_in_which_nothing_happens_has_no_causes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with (
        InProcessCluster(["rooms"], clock=TurnedClock()) as cluster,
        cluster.owner(),
        cluster.owner(),
        cluster.lookup(),
    ):
        await cluster.turn(10)
        caplog.set_level(logging.DEBUG, "tenure")
        caplog.clear()
        await cluster.turn(10)
        told = [record.getMessage() for record in caplog.records]
        assert [line for line in told if "cause" in line] == []
