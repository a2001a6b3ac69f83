"""Connections go from one gateway to another, and stay if that one fails; nothing is lost."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from tenure.errors import RemoteProtocolError
from tenure.gateway.client_connection import GivenConnection
from tenure.gateway.passed_connection import MOST_BYTES, PassedConnection, packed
from tenure.gateway.passing import IT_HAS, LENGTH_BYTES, NOT_TAKEN, Passing, TakingOver
from tenure.member.forwarded_answer import ALWAYS
from tests.patience import DEADLINE_SECONDS
from tests.unit.gateway.front import OK, Behind, Client, Front, front

pytestmark = pytest.mark.asyncio
HOST = b"host: x\r\n"
ASK = b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"


def length(size: int) -> bytes:
    return size.to_bytes(LENGTH_BYTES, "big")


IDLE = PassedConnection(True, b"")


@asynccontextmanager
async def two() -> AsyncIterator[tuple[Front, Front, Passing, Behind]]:
    """Two gateways before one server, and the way from one to the other."""
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    for each in (ours, theirs):
        each.setblocking(False)
    behind = Behind()
    async with front(behind) as one, front(behind) as other:
        taking = asyncio.create_task(TakingOver(theirs, other.gateway).run(lambda: None))
        passing = Passing(ours)
        try:
            yield one, other, passing, behind
        finally:
            passing.close()
            await taking


async def settled(client: Client) -> None:
    """Have a request answered, so that the connection is known."""
    client.say(ASK)
    await client.head()
    await client.part(2)


async def until(gateway: Front, count: int) -> None:
    """Wait until so many clients are connected there."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while gateway.gateway.connections != count:  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_an_idle_connection_and_half_a_request_go_on_at_the_successor() -> None:
    async with two() as (one, other, passing, behind):
        idle, half, silent = await one.client(), await one.client(), await one.client()
        await settled(idle)
        await settled(half)
        half.say(ASK[:20])
        [port] = one.gateway._ports
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not any(each.unfinished() for each in port._port.protocols()):  # noqa: ASYNC110
                await asyncio.sleep(0)
        assert await one.gateway.pass_on(passing)
        await until(one, 0)
        await until(other, 3)
        half.say(ASK[20:])
        for client in (idle, silent):
            client.say(ASK)
        for client in (idle, half, silent):
            assert (await client.head()).startswith(b"HTTP/1.1 200")
            assert await client.part(2) == b"ok"
        assert passing.count == 3
        assert len(behind.heads) == 5


async def test_a_connection_at_rest_keeps_nothing_of_its_requests() -> None:
    """No task, no headers, and no event for a client that reads."""
    async with front(Behind()) as one:
        await settled(await one.client())
        [port] = one.gateway._ports
        [connection] = port._port.protocols()
        assert (connection._task, connection._requests) == (None, [])
        assert (connection._reader._target, connection._reader._headers) == (b"", [])
        assert connection._may_write is ALWAYS


class Popular(Passing):
    """Another client comes whenever one was passed."""

    def __init__(self, connection: socket.socket, one: Front) -> None:
        super().__init__(connection)
        self._one = one
        self.is_popular = True

    async def pass_on(self, given: Sequence[GivenConnection]) -> list[GivenConnection]:
        left = await super().pass_on(given)
        if self.is_popular:
            await settled(await self._one.client())
        return left


async def test_a_round_ends_though_another_client_comes_for_each_that_was_passed() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    for each in (ours, theirs):
        each.setblocking(False)
    async with front(Behind()) as one, front(Behind()) as other:
        taking = asyncio.create_task(TakingOver(theirs, other.gateway).run(lambda: None))
        for _ in range(2):
            await settled(await one.client())
        passing = Popular(ours, one)
        async with asyncio.timeout(DEADLINE_SECONDS):
            assert await one.gateway.pass_on(passing)
        assert (passing.count, one.gateway.connections) == (2, 1)
        passing.is_popular = False
        passing.close()
        await taking


async def test_a_connection_stays_on_which_a_request_has_begun_before_it_was_given_up() -> None:
    async with front(Behind()) as one:
        client = await one.client()
        await settled(client)
        [port] = one.gateway._ports
        [connection] = port._port.protocols()
        giving = asyncio.ensure_future(connection.give_up(DEADLINE_SECONDS))
        connection.data_received(ASK)
        assert await giving is None
        assert (await client.head()).startswith(b"HTTP/1.1 200")
        assert await client.part(2) == b"ok"
        assert one.gateway.connections == 1


class Slow(Behind):
    """Answers when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may = asyncio.Event()

    async def answer(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await self.may.wait()
        writer.write(OK)


async def test_a_request_at_work_is_answered_first_and_then_its_connection_goes_on() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    for each in (ours, theirs):
        each.setblocking(False)
    behind = Slow()
    async with front(behind) as one, front(behind) as other:
        taking = asyncio.create_task(TakingOver(theirs, other.gateway).run(lambda: None))
        busy = await one.client()
        busy.say(ASK + ASK[:9])
        await behind.came.wait()
        passing = Passing(ours)
        assert await one.gateway.pass_on(passing)
        assert (one.gateway.connections, passing.count) == (1, 0)
        [port] = one.gateway._ports
        leaving = asyncio.create_task(port.pass_rest(passing, DEADLINE_SECONDS))
        await asyncio.sleep(0)
        behind.may.set()
        assert (await busy.head()).startswith(b"HTTP/1.1 200")
        assert await busy.part(2) == b"ok"
        busy.say(ASK[9:])
        assert (await busy.head()).startswith(b"HTTP/1.1 200")
        assert await busy.part(2) == b"ok"
        busy.say(ASK)
        await busy.head()
        await leaving
        assert passing.count == 1
        passing.close()
        await taking


async def answered(gives: bytes | None) -> tuple[int, int]:
    """How many of three connections stay here, and how many are open at the successor, if it says
    this of them; None if it ends without a word.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    ours.setblocking(False)
    ends = [socket.socketpair() for _ in range(3)]
    passing = Passing(ours)
    given = [GivenConnection(end, IDLE) for _, end in ends]
    asked = asyncio.ensure_future(passing.pass_on(given))
    await asyncio.sleep(0)
    head, handles, _, _ = socket.recv_fds(theirs, LENGTH_BYTES, 8)
    size = int.from_bytes(head, "big")
    assert len(theirs.recv(size)) == size
    if gives is not None:
        theirs.send(gives)
    theirs.close()
    stay = await asked
    for number in handles:
        socket.socket(fileno=number).close()
    for each, _ in ends:
        each.close()
    there = sum(b.fileno() >= 0 for _, b in ends)
    for one in stay:
        one.socket.close()
    passing.close()
    return len(stay), there


@pytest.mark.parametrize(
    ("said", "stay"), [(b"\1\1\1", 0), (b"\1\0\1", 1), (b"\0\0\0", 3), (None, 3), (b"\1\1", 3)]
)
async def test_what_the_successor_has_not_said_that_it_has_stays(
    said: bytes | None, stay: int
) -> None:
    assert await answered(said) == (stay, stay)


async def test_a_successor_that_says_nothing_in_time_can_say_nothing_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tenure.gateway.passing.ANSWER_SECONDS", 0.01)
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    ours.setblocking(False)
    one, other = socket.socketpair()
    with theirs, one, other:
        passing = Passing(ours)
        [left] = await passing.pass_on([GivenConnection(other, IDLE)])
        assert left.socket is other
        assert passing.is_broken
        with pytest.raises(OSError, match="Broken pipe"):
            theirs.send(IT_HAS)
        assert not await passing.end_round()
        passing.close()


class Nobody:
    """See `GoesOn`: a gateway that must not be asked."""

    def may_go_on(self, passed: PassedConnection) -> bool:
        raise AssertionError(passed)

    def go_on(self, given: GivenConnection) -> None:
        raise AssertionError(given)


def opened() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def no_tcp() -> socket.socket:
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def listens() -> socket.socket:
    made = socket.socket()
    made.bind(("127.0.0.1", 0))
    made.listen()
    return made


@pytest.mark.parametrize(
    ("said", "count"),
    [
        (length(1) + b"\xc1", 1),
        (length(MOST_BYTES + 1), 1),
        (length(9) + b"\x91", 1),
        (b"\0\0", 1),
        (length(len(packed([IDLE]))) + packed([IDLE]), 2),
        (length(len(packed([IDLE] * 65))) + packed([IDLE] * 65), 65),
        (length(len(packed([IDLE]))) + packed([IDLE]), 1),
    ],
)
@pytest.mark.parametrize("made", [no_tcp, listens])
async def test_what_are_no_connections_of_a_gateway_is_refused_and_closed(
    said: bytes, count: int, made: "type[socket.socket]"
) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    theirs.setblocking(False)
    with made() as odd:
        before = opened()
        socket.send_fds(ours, [said], [odd.fileno()] * count)
        ours.close()
        with pytest.raises((*NOT_TAKEN, msgspec.MsgspecError, RemoteProtocolError)):
            await TakingOver(theirs, Nobody()).run(lambda: None)
        assert opened() == before - 2
