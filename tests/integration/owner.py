"""An owner of a few lines, on the wire's own words: what it is told is what the test sees."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

from tenure.base.keys import PoolKind
from tenure.protocol.lease.messages import (
    Held,
    Hello,
    Introduction,
    Join,
    Leased,
    LeaseRequest,
    LeaseResponse,
    Poke,
)
from tenure.protocol.lease.reports import TierReport
from tenure.wire.lease import HeardByOwner, decode_to_owner, encode
from tenure.wire.versions import NEWEST, SUBPROTOCOLS
from tests.sessions import client_session

POOL = "rooms"
NONCE = 4711


class WireOwner:
    """One incarnation; it outlives its connections."""

    def __init__(self, name: str = "ann", pool: str = POOL, kind: PoolKind = "hashed") -> None:
        self.name = name
        self.pool = pool
        self.kind: PoolKind = kind
        self.incarnation = 0
        self.sequence = 0
        self.leases: tuple[Leased, ...] = ()

    @asynccontextmanager
    async def connected(self, url: str) -> AsyncIterator[Self]:
        """Connect to a leader, and be introduced."""
        async with client_session() as session:
            self.socket = await session.ws_connect(f"{url}/v1/owner", protocols=SUBPROTOCOLS)
            await self.socket.send_bytes(encode(Hello(pool=self.pool, token=1), NEWEST))
            introduction = await self.hear()
            assert isinstance(introduction, Introduction), introduction
            self.seal = introduction
            yield self

    async def hear(self) -> HeardByOwner:
        while isinstance(
            message := decode_to_owner(await self.socket.receive_bytes(), NEWEST), Poke
        ):
            pass
        return message

    async def hear_poke(self) -> None:
        message = decode_to_owner(await self.socket.receive_bytes(), NEWEST)
        assert isinstance(message, Poke), message

    async def join(self) -> LeaseResponse:
        self.sequence += 1
        nonce = self.seal.manager_nonce
        join = Join(
            pool=self.pool,
            kind=self.kind,
            name=self.name,
            address="http://ann",
            owner_nonce=NONCE,
            manager_nonce=nonce,
            sequence=self.sequence,
        )
        response = await self._asked(encode(join, NEWEST))
        self.incarnation = response.incarnation
        return response

    async def renew(self, report: TierReport | None = None) -> LeaseResponse:
        return await self._asked(self.renewal(report))

    def renewal(self, report: TierReport | None = None) -> bytes:
        """The next request, to be sent."""
        self.sequence += 1
        held = tuple(
            Held(start=lease.start, end=lease.end, number=lease.number) for lease in self.leases
        )
        seal = self.seal
        request = LeaseRequest(
            pool=self.pool,
            incarnation=self.incarnation,
            owner_nonce=NONCE,
            manager_nonce=seal.manager_nonce,
            sequence=self.sequence,
            journal=seal.journal,
            leadership=seal.leadership,
            held=held,
            report=report,
        )
        return encode(request, NEWEST)

    async def _asked(self, request: bytes) -> LeaseResponse:
        await self.socket.send_bytes(request)
        response = await self.hear()
        assert isinstance(response, LeaseResponse), response
        self.leases = response.leases
        return response

    async def own_everything(self) -> None:
        """Join if it has not, be planned for, and be granted the whole pool."""
        if not self.incarnation:
            await self.join()
        await self.renew()
        while not self.leases:
            await self.hear_poke()
            await self.renew()
