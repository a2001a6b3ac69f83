"""Unread answers of a port are bounded together, and those go first that nobody reads."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from tenure.base.instants import Instant, seconds
from tenure.transport.connection_limits import ConnectionLimits
from tenure.transport.credentials import NOTHING
from tenure.transport.port_unread import PortUnread
from tests.patience import DEADLINE_SECONDS, until
from tests.unit.transport.test_every_listener import LARGE, LISTENERS, connected


class Connection:
    def __init__(self, waiting: int) -> None:
        self.waiting = waiting

    def unread_bytes(self) -> int:
        return self.waiting


def test_within_the_bound_nobody_is_ended() -> None:
    unread = PortUnread[Connection](10)
    assert unread.too_many([Connection(5), Connection(5), Connection(0)]) == []


def test_beyond_it_the_largest_goes_first_and_no_more_than_needed() -> None:
    small, large, middle = Connection(2), Connection(7), Connection(4)
    assert PortUnread[Connection](10).too_many([small, large, middle]) == [large]
    assert PortUnread[Connection](3).too_many([small, large, middle]) == [large, middle]


def test_whoever_has_read_since_the_last_look_stays_longer() -> None:
    reader, other = Connection(9), Connection(4)
    unread = PortUnread[Connection](20)
    assert unread.too_many([reader, other]) == []
    reader.waiting = 8
    unread._most = 10
    assert unread.too_many([reader, other]) == [other]


@pytest.mark.parametrize("connections", [1, 20_000])
def test_a_look_waits_for_longer_where_there_are_more(connections: int) -> None:
    unread = PortUnread[Connection](10)
    at = Instant(seconds(5))
    assert unread.is_due(at, connections)
    assert not unread.is_due(Instant(at + seconds(0.09)), connections)
    assert unread.is_due(Instant(at + seconds(0.2)), connections) == (connections == 1)
    assert unread.is_due(Instant(at + seconds(0.6)), connections)


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["member of ASGI", "member of aiohttp"])
async def test_a_member_keeps_only_so_much_of_all_answers_that_nobody_reads(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A gateway stops reading where its clients do, so that whole answers wait in the member."""
    caplog.set_level("DEBUG", "tenure.transport")
    limits = ConnectionLimits(unread_bytes=len(LARGE))
    said = b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(asyncio.timeout(DEADLINE_SECONDS))
        url = await stack.enter_async_context(LISTENERS[name](NOTHING, limits))
        readers = [await stack.enter_async_context(connected(url, said)) for _ in range(4)]

        async def are_ended() -> bool:
            async with connected(url, said.replace(b"/large", b"/")) as reader:
                assert b" 200 " in await reader.readuntil(b"\r\n")
            return caplog.text.count("read too little of its answers") >= 2

        await until(are_ended)
        came = [len(await reader.read(len(LARGE))) for reader in readers]
        assert all(came)
