"""What every transport must do, as tests.

Subclass `TransportContract` in your test suite, give it a fixture `world`, and mark it for the
plugin that runs your coroutines:

    @pytest.mark.asyncio
    class TestMyTransport(TransportContract):
        @pytest_asyncio.fixture
        async def world(self): ...

A world makes transports, and the managers' side of their connections, which is played by the tests.
The fixture closes what is still open.
"""

import asyncio
from itertools import permutations
from typing import Any, NamedTuple, Protocol

from tenure.protocol.lease.messages import (
    Attest,
    Attested,
    FromManager,
    Hello,
    Introduction,
    Join,
    Poke,
    Process,
    Standby,
    Sync,
    SyncRefusal,
    ToLookup,
    ToManager,
    ToOwner,
)
from tenure.transport.contract import LOOKUP, OWNER, NeverConnected, Role, Transport
from tenure.wire.lease import encode
from tenure.wire.versions import NEWEST, OLDEST

PATIENCE_SECONDS = 10.0
"""How long a test waits for what must come. Nothing waits so long unless it fails."""
MANY = 1_000
VERSIONS = range(OLDEST, NEWEST + 1)
A_PROCESS = Process(boot_id="5e2d7a54", pid_namespace=1, time_namespace=2, pid=3, start_time=4)
ATTESTED = Attested(
    pool="rooms",
    incarnation=1,
    process=A_PROCESS,
    witness=A_PROCESS,
    owner_nonce=1,
    manager_nonce=2,
)


class Arrived(NamedTuple):
    """The message that a manager received, and the number of its connection, counted from 0."""

    connection: int
    message: ToManager
    version: int = NEWEST
    """The version of the protocol on that connection."""


class Peer(Protocol):
    """A manager's side, which a test plays."""

    @property
    def url(self) -> str: ...
    async def receive(self) -> Arrived:
        """The next message from any client."""
        ...

    async def send(self, connection: int, data: bytes) -> None:
        """Send bytes to a client."""
        ...

    async def closed(self, connection: int) -> None:
        """Wait until the client has closed the connection."""
        ...

    async def drop(self, connection: int) -> None:
        """Break a connection."""
        ...

    async def listen(self, newest: int = NEWEST) -> None:
        """Listen at the URL again, after `fall_silent`, in versions up to `newest`."""
        ...

    async def fall_silent(self) -> None:
        """Break all connections, and answer nobody at the URL."""
        ...


class TransportWorld(Protocol):
    """The world of the transports under test, and of managers for them."""

    def transport(self, role: Role[Any]) -> Transport[Any]:
        """A new transport."""
        ...

    async def peer(self, newest: int = NEWEST) -> Peer:
        """A new manager, which listens, and speaks versions up to `newest`."""
        ...


class Client:
    """A transport with what it delivered and lost, in order."""

    def __init__(self, transport: Transport[Any]) -> None:
        self.transport = transport
        self._events: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        self.is_sending = False
        transport.start(self._deliver, self._lost)

    def _deliver(self, manager: str, message: Any) -> None:  # of any role
        assert not self.is_sending, "delivered while `send` ran"
        self._events.put_nowait((manager, message))

    def _lost(self, manager: str, why: str) -> None:
        assert not self.is_sending, "lost while `send` ran"
        assert why
        self._events.put_nowait((manager, why))

    def send(self, manager: str, message: ToManager) -> None:
        """Send, and see that nothing is called meanwhile."""
        self.is_sending = True
        self.transport.send(manager, message)
        self.is_sending = False

    async def next(self) -> tuple[str, FromManager | str]:
        """The next event: a manager's message, or the reason why its connection is gone."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self._events.get()

    @property
    def has_more(self) -> bool:
        """Whether something came that was not asked for."""
        return not self._events.empty()


def hello(token: int, pool: str = "rooms") -> Hello:
    """A message that can be told from others."""
    return Hello(pool=pool, token=token)


class TransportContract:
    """The tests."""

    async def test_a_message_arrives_and_is_answered(self, world: TransportWorld) -> None:
        peer, client = await world.peer(), Client(world.transport(OWNER))
        join = Join(
            pool="rooms",
            kind="hashed",
            name="östlich",
            address="http://a",
            owner_nonce=1,
            manager_nonce=2,
            sequence=3,
            capacity=2.5,
            labels={"zone": "b"},
        )
        client.send(peer.url, join)
        assert await peer.receive() == Arrived(0, join)
        answer = Introduction(journal=1, leadership=2, manager_nonce=3, token=4)
        await peer.send(0, encode(answer, NEWEST))
        assert await client.next() == (peer.url, answer)

    async def test_each_role_has_messages_of_its_own(self, world: TransportWorld) -> None:
        peer = await world.peer()
        owner, lookup = Client(world.transport(OWNER)), Client(world.transport(LOOKUP))
        owner.send(peer.url, hello(1))
        assert (await peer.receive()).connection == 0
        lookup.send(
            peer.url, Sync(pool="rooms", sequence=1, journal=0, leadership=0, lsn=0, nonce=7)
        )
        assert (await peer.receive()).connection == 1
        to_owner: ToOwner = Poke()
        to_lookup: ToLookup = SyncRefusal(sequence=1, nonce=7, detail="there is no such pool")
        await peer.send(0, encode(to_owner, NEWEST))
        await peer.send(1, encode(to_lookup, NEWEST))
        assert await owner.next() == (peer.url, to_owner)
        assert await lookup.next() == (peer.url, to_lookup)

    async def test_many_messages_keep_their_order_in_both_directions(
        self, world: TransportWorld
    ) -> None:
        peer, client = await world.peer(), Client(world.transport(OWNER))
        for token in range(MANY):
            client.send(peer.url, hello(token))
            assert await peer.receive() == Arrived(0, hello(token))
        for nonce in range(MANY):
            await peer.send(
                0, encode(Introduction(journal=1, leadership=1, manager_nonce=nonce), NEWEST)
            )
        for nonce in range(MANY):
            assert await client.next() == (
                peer.url,
                Introduction(journal=1, leadership=1, manager_nonce=nonce),
            )

    async def test_what_is_sent_before_there_is_a_connection_goes_out_in_order(
        self, world: TransportWorld
    ) -> None:
        peer, client = await world.peer(), Client(world.transport(OWNER))
        for token in range(10):
            client.send(peer.url, hello(token))
        for token in range(10):
            assert await peer.receive() == Arrived(0, hello(token))

    async def test_managers_are_told_apart(self, world: TransportWorld) -> None:
        one, two = await world.peer(), await world.peer()
        client = Client(world.transport(OWNER))
        client.send(one.url, hello(1))
        client.send(two.url, hello(2))
        assert (await one.receive()).message == hello(1)
        assert (await two.receive()).message == hello(2)
        await two.send(0, encode(Standby(leader=one.url), NEWEST))
        assert await client.next() == (two.url, Standby(leader=one.url))

    async def test_a_manager_that_is_not_there_is_lost_once_for_each_attempt(
        self, world: TransportWorld
    ) -> None:
        peer, client = await world.peer(), Client(world.transport(OWNER))
        await peer.fall_silent()
        for _ in range(3):
            client.send(peer.url, hello(1))
            manager, why = await client.next()
            assert manager == peer.url
            assert "connection refused" in str(why)
            assert isinstance(why, NeverConnected), "nothing was sent"
        assert not client.has_more

    async def test_a_connection_that_breaks_is_lost_once_and_made_anew_by_the_next_send(
        self, world: TransportWorld
    ) -> None:
        peer, client = await world.peer(), Client(world.transport(OWNER))
        client.send(peer.url, hello(1))
        await peer.receive()
        await peer.drop(0)
        manager, why = await client.next()
        assert manager == peer.url
        assert not isinstance(why, NeverConnected), "something may have been sent"
        client.send(peer.url, hello(2))
        assert await peer.receive() == Arrived(1, hello(2))
        await peer.send(1, encode(Poke(), NEWEST))
        assert await client.next() == (peer.url, Poke())

    async def test_a_manager_that_comes_back_is_reached(self, world: TransportWorld) -> None:
        peer, client = await world.peer(), Client(world.transport(OWNER))
        client.send(peer.url, hello(1))
        await peer.receive()
        await peer.fall_silent()
        await client.next()
        client.send(peer.url, hello(2))
        assert "connection refused" in str((await client.next())[1])
        await peer.listen()
        client.send(peer.url, hello(3))
        assert (await peer.receive()).message == hello(3)

    async def test_what_cannot_be_read_closes_its_connection_and_no_other(
        self, world: TransportWorld
    ) -> None:
        good, bad = await world.peer(), await world.peer()
        client = Client(world.transport(OWNER))
        for peer in (good, bad):
            client.send(peer.url, hello(1))
            await peer.receive()
        for i, data in enumerate(
            (
                b"",
                b"\xff",
                bytes((NEWEST, 0xC1)),
                encode(hello(1), NEWEST),
                bytes((NEWEST + 1,)) + b"x" * 20,
            )
        ):
            await bad.send(i, data)
            await bad.closed(i)
            manager, why = await client.next()
            assert manager == bad.url
            assert "cannot be read" in str(why)
            client.send(bad.url, hello(2))
            await bad.receive()
        await good.send(0, encode(Poke(), NEWEST))
        assert await client.next() == (good.url, Poke())

    async def test_a_connection_is_of_the_newest_version_that_both_speak(
        self, world: TransportWorld
    ) -> None:
        client = Client(world.transport(OWNER))
        for version in VERSIONS:
            peer = await world.peer(version)
            client.send(peer.url, hello(1))
            assert await peer.receive() == Arrived(0, hello(1), version)
            await peer.send(0, encode(Poke(), version))
            assert await client.next() == (peer.url, Poke())

    async def test_a_message_of_another_version_closes_its_connection(
        self, world: TransportWorld
    ) -> None:
        client = Client(world.transport(OWNER))
        for version, other in permutations(VERSIONS, 2):
            peer = await world.peer(version)
            client.send(peer.url, hello(1))
            await peer.receive()
            await peer.send(0, encode(Poke(), other))
            await peer.closed(0)
            why = str((await client.next())[1])
            assert f"of protocol version {other}, where version {version} is spoken" in why

    async def test_what_a_version_does_not_know_is_neither_sent_nor_taken(
        self, world: TransportWorld
    ) -> None:
        peer, client = await world.peer(1), Client(world.transport(OWNER))
        client.send(peer.url, ATTESTED)
        client.send(peer.url, hello(1))
        assert await peer.receive() == Arrived(0, hello(1), 1)
        attest = Attest(pool="rooms", incarnation=1, process=A_PROCESS, manager_nonce=1)
        await peer.send(0, b"\x01" + encode(attest, 2)[1:])
        await peer.closed(0)
        assert "Attest is of protocol version 2" in str((await client.next())[1])

    async def test_a_manager_that_comes_back_may_speak_another_version(
        self, world: TransportWorld
    ) -> None:
        peer, client = await world.peer(), Client(world.transport(OWNER))
        for connection, version in enumerate((*VERSIONS, *reversed(VERSIONS))):
            await peer.fall_silent()
            await peer.listen(version)
            for token in (1, 2):  # the second waits for the connection, or goes out over it
                client.send(peer.url, hello(token))
            for token in (1, 2):
                assert await peer.receive() == Arrived(connection, hello(token), version)
            await peer.drop(connection)
            await client.next()

    async def test_after_close_nothing_is_told_and_nothing_sent(
        self, world: TransportWorld
    ) -> None:
        peer, client = await world.peer(), Client(world.transport(OWNER))
        client.send(peer.url, hello(1))
        await peer.receive()
        await client.transport.close()
        await peer.closed(0)
        client.send(peer.url, hello(2))
        await client.transport.close()
        other = Client(world.transport(OWNER))
        other.send(peer.url, hello(3))
        assert await peer.receive() == Arrived(1, hello(3))
        assert not client.has_more

    async def test_closing_while_it_connects_does_no_harm(self, world: TransportWorld) -> None:
        peer, client = await world.peer(), Client(world.transport(OWNER))
        client.send(peer.url, hello(1))
        await client.transport.close()
        assert not client.has_more
