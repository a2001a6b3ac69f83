"""A WebSocket that ends in a server behind goes from one gateway to another with the connection to
that server: neither of the two ends notices, and no byte is missing.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from tenure.gateway.passed_connection import PassedConnection, PassedTunnel, packed
from tenure.gateway.passing import LENGTH_BYTES, NotPassed, Passing, TakingOver
from tests.patience import DEADLINE_SECONDS
from tests.unit.gateway.front import Behind, Client, Front, front
from tests.unit.gateway.test_passing import Nobody, until

pytestmark = pytest.mark.asyncio
ASK = (
    b"GET /own HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
    b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n"
)
SWITCHED = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
LARGE = bytes(range(256)) * 65_536
LINES = 300


class Talks(Behind):
    """Takes every socket, and is then driven from outside."""

    def __init__(self) -> None:
        super().__init__()
        self.ends: asyncio.Queue[Client] = asyncio.Queue()

    async def answer(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writer.write(SWITCHED)
        self.ends.put_nowait(Client(reader, writer))
        await asyncio.Event().wait()


class Stage:
    """Two gateways before one server, the way from one to the other, and both ends of a socket."""

    def __init__(self, one: Front, other: Front, behind: Talks) -> None:
        self.one = one
        self.other = other
        self.behind = behind
        self.client: Client
        self.server: Client

    async def open(self) -> None:
        self.client = await self.one.client()
        self.client.say(ASK)
        assert (await self.client.head()).startswith(b"HTTP/1.1 101")
        self.server = await self.behind.ends.get()

    @asynccontextmanager
    async def passing(self, taker: object = None) -> AsyncIterator[Passing]:
        """A successor takes what comes: the other gateway, or somebody else."""
        ours, theirs = socket.socketpair(socket.AF_UNIX)
        for each in (ours, theirs):
            each.setblocking(False)
        gateway = self.other.gateway if taker is None else taker
        taking = asyncio.create_task(TakingOver(theirs, gateway).run(lambda: None))  # type: ignore[arg-type]
        passing = Passing(ours)
        try:
            yield passing
        finally:
            passing.close()
            await asyncio.wait([taking])

    async def check(self) -> None:
        """Both ends hear each other."""
        for says, hears in ((self.client, self.server), (self.server, self.client)):
            says.say(b"hello")
            assert await hears.part(5) == b"hello"


@pytest_asyncio.fixture
async def stage() -> AsyncIterator[Stage]:
    behind = Talks()
    async with front(behind) as one, front(Behind()) as other:
        other.gateway.reroute(one.gateway._routes)  # the same server, under the same name
        made = Stage(one, other, behind)
        await made.open()
        yield made


async def lines(says: Client, hears: Client) -> None:
    """Say numbered lines, with pauses and without, and hear each once, in order."""

    async def speak() -> None:
        for n in range(LINES):
            says.say(b"%d\n" % n)
            await says.writer.drain()
            if n % 7 == 0:
                await asyncio.sleep(0)

    async def listen() -> None:
        for n in range(LINES):
            async with asyncio.timeout(DEADLINE_SECONDS):
                assert await hears.reader.readline() == b"%d\n" % n

    async with asyncio.TaskGroup() as group:
        group.create_task(speak())
        group.create_task(listen())


async def test_both_ends_talk_on_while_gateways_follow_each_other(stage: Stage) -> None:
    async with asyncio.TaskGroup() as group:
        talk = [
            group.create_task(lines(stage.client, stage.server)),
            group.create_task(lines(stage.server, stage.client)),
        ]
        passed = 0
        while not all(each.done() for each in talk):
            async with stage.passing() as passing:
                await stage.one.gateway.pass_on(passing)
                passed += passing.count
            stage.one, stage.other = stage.other, stage.one
            await asyncio.sleep(0)
    assert passed > 1
    await stage.check()


async def moved(stage: Stage) -> None:
    """Have the first gateway pass the socket as soon as that is possible, and end."""
    async with stage.passing() as passing:
        [port] = stage.one.gateway._ports
        await port.pass_rest(passing, DEADLINE_SECONDS)
        assert passing.count == 1


async def until_stuck(stage: Stage, reader: str) -> None:
    """Wait until the gateway has something that the kernel does not take."""
    [port] = stage.one.gateway._ports
    [connection] = port._port.protocols()
    transport = connection._transport
    if reader == "server":
        [kept] = next(iter(stage.one.gateway._targets.values())).forwarding._busy
        transport = kept.transport
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not transport.get_write_buffer_size():  # noqa: ASYNC110
            await asyncio.sleep(0)


@pytest.mark.parametrize("reader", ["client", "server"])
async def test_an_end_that_reads_late_gets_all_from_the_successor(
    stage: Stage, reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What neither the kernel nor the other end has taken holds the socket back until then."""
    monkeypatch.setattr("tenure.gateway.gateway_port.WRITTEN_SECONDS", 0.05)
    ends = [stage.server, stage.client]
    says, hears = ends if reader == "client" else ends[::-1]
    hears.reader._transport.pause_reading()  # type: ignore[attr-defined]  # nobody reads there
    says.say(LARGE)
    await until_stuck(stage, reader)
    async with stage.passing() as passing:
        await stage.one.gateway.pass_on(passing)
        assert (passing.count, passing.is_broken) == (0, False)
    moving = asyncio.create_task(moved(stage))
    await asyncio.sleep(0)
    hears.reader._transport.resume_reading()  # type: ignore[attr-defined]
    assert await hears.part(len(LARGE)) == LARGE
    await moving
    await until(stage.one, 0)
    await stage.check()


async def test_what_was_on_the_way_when_reading_stopped_comes_first(stage: Stage) -> None:
    [port] = stage.one.gateway._ports
    [connection] = port._port.protocols()
    giving = asyncio.ensure_future(connection.give_up(1.0))
    stage.client.say(b"from the client")
    stage.server.say(b"from the server")
    given = await giving
    assert given is not None
    stage.other.gateway.go_on(given)
    stage.client.say(b", and more")
    assert await stage.server.part(25) == b"from the client, and more"
    assert await stage.client.part(15) == b"from the server"


async def test_a_server_that_ends_meanwhile_is_heard_to_its_last_word(stage: Stage) -> None:
    [port] = stage.one.gateway._ports
    [connection] = port._port.protocols()
    given = await connection.give_up(1.0)
    assert given is not None
    stage.server.say(b"good bye")
    stage.server.writer.close()
    stage.other.gateway.go_on(given)
    assert await stage.client.all() == b"good bye"
    await until(stage.other, 0)


async def test_a_client_that_ends_meanwhile_is_heard_to_its_last_word(stage: Stage) -> None:
    [port] = stage.one.gateway._ports
    [connection] = port._port.protocols()
    given = await connection.give_up(1.0)
    assert given is not None
    stage.client.say(b"good bye")
    stage.client.writer.close()
    stage.other.gateway.go_on(given)
    assert await stage.server.all() == b"good bye"


async def test_a_successor_that_ends_in_the_middle_leaves_it(stage: Stage) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    ours.setblocking(False)
    passing = Passing(ours)
    round_ = asyncio.create_task(stage.one.gateway.pass_on(passing))
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(theirs, readable.set)
    await readable.wait()
    loop.remove_reader(theirs)
    _, handles, _, _ = socket.recv_fds(theirs, LENGTH_BYTES, 8)
    assert len(handles) == 2
    for number in handles:
        socket.socket(fileno=number).close()
    theirs.close()
    assert not await round_
    assert stage.one.gateway.connections == 1
    await stage.check()
    passing.close()


async def test_a_successor_without_that_server_leaves_it(stage: Stage) -> None:
    async with front(Behind()) as stranger, stage.passing(stranger.gateway) as passing:
        assert await stage.one.gateway.pass_on(passing)
        assert passing.count == 0
    await stage.check()


async def test_the_last_word_of_a_client_that_closes_at_once_is_heard(stage: Stage) -> None:
    stage.client.say(b"good bye")
    stage.client.writer.close()
    assert await stage.server.all() == b"good bye"


async def test_a_socket_that_ends_while_it_is_given_up_ends_as_ever(stage: Stage) -> None:
    [port] = stage.one.gateway._ports
    [connection] = port._port.protocols()
    stage.server.say(b"good bye")
    stage.server.writer.close()
    async with stage.passing() as passing:
        await stage.one.gateway.pass_on(passing)
    assert await stage.client.all() == b"good bye"
    assert not connection.may_leave


async def test_a_tunnel_comes_with_two_handles() -> None:
    tunnel = PassedTunnel("http://127.0.0.1:1", b"", b"/own")
    body = packed([PassedConnection(True, b"", None, tunnel)])
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    theirs.setblocking(False)
    said = len(body).to_bytes(LENGTH_BYTES, "big") + body
    there = socket.create_server(("127.0.0.1", 0))
    with there, socket.create_connection(there.getsockname()) as one:
        socket.send_fds(ours, [said], [one.fileno()])
        ours.close()
        with pytest.raises(NotPassed, match="1 handles of 1 connections"):
            await TakingOver(theirs, Nobody()).run(lambda: None)
