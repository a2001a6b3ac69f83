"""Ports between the processes of a pool: who comes in, and whom a process speaks to."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from threading import Event

import aiohttp
import pytest

from tenure.base.challenges import Challenge, seal
from tenure.base.instants import Instant
from tenure.protocol.lease.port_proof import PortProof
from tenure.transport import port_guard
from tenure.transport.channels import Channel, ChannelLost
from tenure.transport.pool_secret import PoolSecret
from tenure.transport.port_guard import HEADER, PATH, VALID_NS, PortGuard, origin_of
from tenure.transport.proving import answered, asked_for
from tenure.transport.websocket_channels import WebSocketChannels

pytestmark = pytest.mark.asyncio
OURS, THEIRS = b"o" * 32, b"t" * 32
HERE, ELSEWHERE = "http://10.0.0.7:9000", "http://10.0.0.9:9000"
NONCE = "0" * 32
NEAR = FAR = ("10.0.0.7", 1)


def told(secret: bytes | None, *, is_wanted: bool = True) -> PoolSecret:
    made = PoolSecret()
    made.told(None if secret is None else PortProof(secret=secret, is_wanted=is_wanted))
    return made


class Turned:
    """A guard with a clock that is turned."""

    def __init__(self, secret: PoolSecret, *urls: str) -> None:
        self.now = 1_000
        self.guard = PortGuard(secret, lambda: Instant(self.now))
        self.guard.answers_to(*urls)

    def proof(self, secret: PoolSecret, at: str) -> str | None:
        """What a process shows that has connected there."""
        said = self.guard.challenge(at, NONCE, ",".join(secret.ids))
        return said and answered(said.encode(), Challenge(at, NONCE, ""), secret)


async def test_a_process_with_the_secret_comes_in_once_with_each_proof() -> None:
    here = Turned(told(OURS), HERE)
    shown = here.proof(told(OURS), HERE)
    assert shown is not None
    assert OURS.hex() not in shown
    assert not here.guard.refuses(shown, NEAR, FAR)
    assert here.guard.refuses(shown, NEAR, FAR), "it was overheard, and is sent again"


async def test_without_a_proof_or_with_another_nobody_comes_in() -> None:
    here = Turned(told(OURS), HERE)
    assert here.guard.refuses(None, NEAR, FAR)
    assert here.proof(told(THEIRS), HERE) is None, "the listener has another secret"
    shown = here.proof(told(OURS), HERE)
    assert shown is not None
    id_, client, mine, sealed = shown.split(" ")
    forged = seal(THEIRS, "client", Challenge(HERE, client, mine))
    reflected = seal(OURS, "listener", Challenge(HERE, client, mine))
    for other in (forged, reflected, sealed[:-1], sealed + "0", "\N{SNOWMAN}", ""):
        assert here.guard.refuses(f"{id_} {client} {mine} {other}", NEAR, FAR)
    for parts in (("x", client, mine), (id_, "x", mine), (id_, client, mine[:-1] + "x")):
        assert here.guard.refuses(" ".join((*parts, sealed)), NEAR, FAR)
    assert here.guard.refuses(" " * 1_000_000, NEAR, FAR)
    assert not here.guard.refuses(shown, NEAR, FAR), "none of them has used it up"


async def test_a_challenge_that_was_answered_too_late_or_of_another_port_is_none() -> None:
    here, other = Turned(told(OURS), HERE), Turned(told(OURS), HERE)
    shown = here.proof(told(OURS), HERE)
    assert other.guard.refuses(shown, NEAR, FAR)
    here.now += VALID_NS + 1
    assert here.guard.refuses(shown, NEAR, FAR)


async def test_a_listener_cannot_pass_a_connection_on_as_its_own() -> None:
    """A liar at one address asks the true listener for what its visitor wants to see."""
    here = Turned(told(OURS), HERE)
    assert here.guard.challenge(ELSEWHERE, NONCE, ",".join(told(OURS).ids)) is None
    said = here.guard.challenge(HERE, NONCE, ",".join(told(OURS).ids))
    assert said is not None
    assert answered(said.encode(), Challenge(ELSEWHERE, NONCE, ""), told(OURS)) is None
    assert answered(said.encode(), Challenge(HERE, "1" * 32, ""), told(OURS)) is None


async def test_nobody_is_asked_before_a_manager_says_so() -> None:
    for secret in (told(None), told(OURS, is_wanted=False)):
        assert not Turned(secret, HERE).guard.refuses(None, NEAR, FAR)
    shown = Turned(told(THEIRS), HERE).proof(told(THEIRS), HERE)
    assert Turned(told(OURS, is_wanted=False), HERE).guard.refuses(shown, NEAR, FAR)


async def test_a_process_that_has_heard_of_another_journal_still_proves_itself() -> None:
    both = told(OURS)
    both.told(PortProof(secret=THEIRS, is_wanted=True))
    for other in (told(OURS), told(THEIRS)):
        for listener, client in ((both, other), (other, both)):
            here = Turned(listener, HERE)
            assert not here.guard.refuses(here.proof(client, HERE), NEAR, FAR)
    both.told(None)
    assert not both.is_wanted, "a manager of an older version leads"
    assert not Turned(both, HERE).guard.refuses(None, NEAR, FAR)


# --- over sockets ---


@pytest.fixture
def is_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port_guard, "is_of_same_user", lambda *_: False)


@asynccontextmanager
async def listening(secret: PoolSecret, address: str | None = None) -> AsyncIterator[str]:
    async def serve(channel: Channel) -> None:
        await channel.send(b"come in")

    channels = WebSocketChannels(secret=secret)
    try:
        yield await channels.listen("127.0.0.1:0", serve, address)
    finally:
        await channels.close()


async def said_at(url: str, secret: PoolSecret) -> bytes:
    channels = WebSocketChannels(secret=secret)
    try:
        async with asyncio.timeout(10):
            return await (await channels.connect(url)).receive()
    finally:
        await channels.close()


@pytest.mark.usefixtures("is_another_user")
async def test_processes_of_a_pool_open_channels_and_others_do_not() -> None:
    async with listening(told(OURS)) as url:
        assert await said_at(url, told(OURS)) == b"come in"
        with pytest.raises(ChannelLost, match="does not prove"):
            await said_at(url, told(THEIRS))
        with pytest.raises(ChannelLost, match="wants a proof"):
            await said_at(url, told(THEIRS, is_wanted=False))
        with pytest.raises(ChannelLost, match="wants a proof"):
            await said_at(url, told(None))


async def test_a_process_of_the_same_user_on_this_machine_needs_no_proof() -> None:
    async with listening(told(OURS)) as url:
        assert await said_at(url, told(None)) == b"come in"


async def test_who_has_no_proof_takes_no_thread_of_the_application() -> None:
    """The threads of the loop call methods of entities, and find hosts by their names."""
    done = Event()
    with ThreadPoolExecutor(1) as threads:
        try:
            async with listening(told(OURS)) as url:
                asyncio.get_running_loop().set_default_executor(threads)
                threads.submit(done.wait)
                assert await said_at(url, told(None)) == b"come in"
        finally:
            done.set()


@pytest.mark.usefixtures("is_another_user")
async def test_a_listener_that_proves_nothing_is_not_spoken_to() -> None:
    for secret in (told(None), told(THEIRS, is_wanted=False)):
        async with listening(secret) as url:
            with pytest.raises(ChannelLost, match="does not prove that it belongs to the pool"):
                await said_at(url, told(OURS))
            assert await said_at(url, told(OURS, is_wanted=False)) == b"come in"


@pytest.mark.usefixtures("is_another_user")
async def test_a_port_is_known_by_the_address_at_which_others_reach_it() -> None:
    async with listening(told(OURS), "http://localhost:1") as url:
        port = url.rpartition(":")[2]
        assert await said_at(url, told(OURS)) == b"come in"
        with pytest.raises(ChannelLost, match="does not prove"):
            await said_at(f"http://localhost:{port}", told(OURS))
    async with aiohttp.ClientSession() as session, listening(told(OURS), ELSEWHERE) as url:
        asked = asked_for(ELSEWHERE, NONCE, told(OURS).ids)
        async with session.get(f"{url}{PATH}?{asked}") as got:
            assert answered(await got.read(), Challenge(ELSEWHERE, NONCE, ""), told(OURS))
        for headers in ({"Origin": "http://page.test"}, {}):
            wrong = asked if headers else asked_for(HERE, NONCE, told(OURS).ids)
            async with session.get(f"{url}{PATH}?{wrong}", headers=headers) as got:
                assert got.status == 404
        async with session.get(f"{url}/v1/hand-off", headers={HEADER: "x"}) as got:
            assert got.status == 428
    assert origin_of("HTTP://LocalHost/x/") == "http://localhost:80"
