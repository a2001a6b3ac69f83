"""The owners that the benchmarks pack into one process."""

import asyncio

from benchmarks._live import Seen, clients, settled
from benchmarks._manager import running_manager
from benchmarks._packed import run_packed
from tenure.protocol.lease.timing import TEST
from tests.patience import until

NOWHERE = "http://127.0.0.1:1"


async def away_for_too_long(url: str, seen: Seen) -> None:
    """One of two owners finds no manager for longer than its term, and then finds it again."""
    urls = [url]
    async with clients(urls, TEST, 2, 1, seen) as ([one, other], _):
        before = one.self
        one._urls[:] = [NOWHERE]
        assert one._socket is not None
        one._socket.transport.abort()

        async def other_has_all() -> bool:
            return len(other.held) >= 2 * 64 - 1

        async def is_another() -> bool:
            return one.self is not before and bool(one.held)

        await until(other_has_all, "the other has what it had")
        one._urls[:] = urls
        await until(is_another, "it joined again")
        await settled([one, other])


def test_an_owner_that_was_away_for_too_long_joins_again() -> None:
    """Otherwise an experiment on a busy machine would wait for it until it is cut off."""
    seen = Seen()

    async def within_a_minute(url: str) -> None:
        async with asyncio.timeout(60):
            await away_for_too_long(url, seen)

    with running_manager("--preset", "test", log_level="error") as manager:
        run_packed(within_a_minute(manager.url))
    assert seen.lapsed >= 1
