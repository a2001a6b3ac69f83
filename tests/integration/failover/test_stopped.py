"""A leader that stands still for longer than its leadership, and wakes: it no longer leads."""

import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest

from tenure.protocol.lease.messages import Changes, Hello, Standby, Sync, SyncResponse
from tenure.runtime.clock import boot_clock
from tenure.wire.lease import decode_to_lookup, decode_to_owner, encode
from tenure.wire.versions import NEWEST, SUBPROTOCOLS
from tests.integration.failover.stage import STAGES, Manager
from tests.integration.owner import WireOwner
from tests.patience import DEADLINE_SECONDS
from tests.sessions import client_session

pytestmark = pytest.mark.asyncio
OTHER_POOL = "heard"
MOMENT_SECONDS = 0.05


class Ear:
    """An owner and a lookup of one manager, which hear every message that it sends them."""

    def __init__(self, owner: WireOwner, lookup: aiohttp.ClientWebSocketResponse) -> None:
        self.owner = owner
        self.lookup = lookup
        self.told: set[tuple[bytes, int]] = set()
        """The starts and the numbers of the ranges of which the lookup was told."""

    def sync_again(self) -> bytes:
        seal = self.owner.seal
        return encode(
            Sync(
                pool=OTHER_POOL,
                sequence=2,
                journal=seal.journal,
                leadership=seal.leadership,
                lsn=0,
                nonce=1,
            ),
            NEWEST,
        )

    async def ask_everything(self) -> None:
        """All that one may ask a leader, in words that it took before."""
        await self.owner.socket.send_bytes(self.owner.renewal())
        await self.owner.socket.send_bytes(encode(Hello(pool=OTHER_POOL, token=3), NEWEST))
        await self.lookup.send_bytes(self.sync_again())

    async def forget(self) -> None:
        """Take what the leader said before it was stopped. All of it is here by now."""
        for socket in (self.owner.socket, self.lookup):
            with suppress(TimeoutError):
                while (
                    await socket.receive(timeout=MOMENT_SECONDS)
                ).type is aiohttp.WSMsgType.BINARY:
                    pass

    async def said(self) -> list[object]:
        """Return its first line, which is about the first questions if it says anything."""
        heard: list[object] = []
        for socket, count in ((self.owner.socket, 3), (self.lookup, 2)):
            decode = decode_to_lookup if socket is self.lookup else decode_to_owner
            for _ in range(count):
                received = await socket.receive(timeout=DEADLINE_SECONDS)
                if received.type is not aiohttp.WSMsgType.BINARY:
                    break
                heard.append(decode(received.data, NEWEST))
        return heard

    async def follow(self) -> None:
        """Follow the pool, and be told all of it."""
        first = Sync(pool=OTHER_POOL, sequence=1, journal=0, leadership=0, lsn=0, nonce=1)
        await self.lookup.send_bytes(encode(first, NEWEST))
        answer = decode_to_lookup(await self.lookup.receive_bytes(), NEWEST)
        assert isinstance(answer, SyncResponse), answer
        self.told = {(each.start, each.number) for each in answer.entries}

    async def hear_all(self) -> None:
        """Until the lookup was told of every lease, so that the leader has no more to push."""
        while not {(each.start, each.number) for each in self.owner.leases} <= self.told:
            changes = decode_to_lookup(await self.lookup.receive_bytes(), NEWEST)
            assert isinstance(changes, Changes), changes
            self.told |= {(each.start, each.number) for each in changes.entries}


@asynccontextmanager
async def ear_at(manager: Manager) -> AsyncIterator[Ear]:
    async with AsyncExitStack() as stack:
        owner = WireOwner(pool=OTHER_POOL)
        await stack.enter_async_context(owner.connected(manager.url))
        await owner.join()
        session = await stack.enter_async_context(client_session())
        lookup = await session.ws_connect(f"{manager.url}/v1/lookup", protocols=SUBPROTOCOLS)
        ear = Ear(owner, lookup)
        await ear.follow()
        await owner.own_everything()
        await ear.hear_all()
        yield ear


@pytest.mark.parametrize("journal", ["etcd", "sqlite"])
async def test_a_leader_that_was_stopped_answers_nobody_as_a_leader(
    tmp_path: Path, journal: str
) -> None:
    async with (
        STAGES[journal](tmp_path) as stage,
        stage.traffic() as traffic,
        ear_at(await stage.leader()) as ear,
    ):
        leader = await stage.leader()
        stopped = boot_clock()
        leader.send(signal.SIGSTOP)
        await ear.ask_everything()  # it is in the sockets when it wakes
        await stage.leader(after=leader.leadership)
        await traffic.renewed(stopped, leader.leadership + 1)
        await ear.forget()
        leader.send(signal.SIGCONT)
        await leader.until_role("standing by")
        await ear.ask_everything()
        heard = await ear.said()
        assert heard
        assert [type(each) for each in heard] == [Standby] * len(heard)
        await traffic.have_served()
        traffic.check_unharmed()
