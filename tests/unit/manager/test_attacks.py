"""Lies over the wire, to a real manager and a real owner: each harms only the peer that tells it.

The tests of the machines show what they make of each lie; here strangers tell them all, one after
the other, beside an owner that goes on renewing what it holds.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import msgspec
import pytest

from tenure import KeyedState, KeyRange, Lookup, NameHeld, Owner
from tenure.client.attestation import own_process
from tenure.protocol.lease.answers import Owners
from tenure.protocol.lease.messages import (
    Attested,
    Held,
    Hello,
    Introduction,
    Join,
    LeaseRequest,
    Sync,
    ToManager,
)
from tenure.protocol.lease.owner.transfer import Chunk, NotTaken, Offer
from tenure.protocol.lease.reports import EntityReport, TierReport
from tenure.transport.channels import ChannelLost
from tenure.transport.websocket_channels import WebSocketChannels
from tenure.wire.hand_off import decode_to_source
from tenure.wire.hand_off import encode as encode_to_peer
from tenure.wire.lease import encode
from tenure.wire.versions import NEWEST, SUBPROTOCOLS
from tests.integration.owner import WireOwner
from tests.patience import DEADLINE_SECONDS, until
from tests.unit.manager.serving import Serving, serving

pytestmark = pytest.mark.asyncio
FUTURE = 10**12
NOBODY = 999


@asynccontextmanager
async def attacked() -> AsyncIterator[tuple[Serving, WireOwner]]:
    """A manager, and an honest owner of everything; which must be so at the end."""
    async with serving() as manager:
        honest = WireOwner()
        async with honest.connected(manager.service.url):
            await honest.own_everything()
            before = [(each.start, each.end, each.number) for each in honest.leases]
            leadership = (await manager.get("/v1/status"))[1]["leadership"]
            yield manager, honest
            await honest.renew()
            assert [(each.start, each.end, each.number) for each in honest.leases] == before
        _, status = await manager.get("/v1/status")
        assert (status["role"], status["leadership"]) == ("leading", leadership)


async def say(manager: Serving, path: str, *messages: ToManager) -> None:
    """A stranger says this, and then what anybody may, so that all of it has been heard."""
    socket: aiohttp.ClientWebSocketResponse[Any]
    async with manager.session.ws_connect(
        manager.service.url + path, protocols=SUBPROTOCOLS
    ) as socket:
        for each in messages:
            with suppress(ConnectionError):
                await socket.send_bytes(encode(each, NEWEST))
        heard = Hello(pool="rooms", token=5) if path == "/v1/owner" else of_nobody()
        with suppress(ConnectionError):
            await socket.send_bytes(encode(heard, NEWEST))
            await socket.receive(DEADLINE_SECONDS)


def of_nobody(**other: Any) -> Sync:  # noqa: ANN401
    honest = Sync(pool="rooms", sequence=1, journal=0, leadership=0, lsn=0, nonce=3)
    return msgspec.structs.replace(honest, **other)


async def test_no_request_ends_a_leader_whatever_it_claims() -> None:
    async with attacked() as (manager, honest):
        seal: Introduction = honest.seal
        claim = LeaseRequest(
            pool="rooms",
            incarnation=honest.incarnation,
            owner_nonce=NOBODY,
            manager_nonce=seal.manager_nonce,
            sequence=FUTURE,
            journal=seal.journal,
            leadership=seal.leadership,
            held=(),
        )
        lies: list[dict[str, Any]] = [
            {"pool": "no-such-pool"},
            {"incarnation": FUTURE},
            {"incarnation": FUTURE, "manager_nonce": 1},
            {"manager_nonce": NOBODY},
            {"leadership": seal.leadership + 7},
            {"held": (Held(start=b"", end=None, number=FUTURE),)},
            {"incarnation": FUTURE, "held": (Held(start=b"", end=None, number=FUTURE),)},
            {"receipt": bytes(40)},
            {"leadership": seal.leadership + 7, "receipt": bytes(40)},
            {"leaving": True},
        ]
        for lie in lies:
            await say(manager, "/v1/owner", msgspec.structs.replace(claim, **lie))
            await honest.renew()
            assert honest.leases


async def test_no_report_hides_the_owners_of_a_pool() -> None:
    async with attacked() as (manager, _):
        strange = EntityReport(
            kind="Room", instances=1, turns=1, waiting=0, alarms=0, longest_seconds=float("nan")
        )
        liar = WireOwner(name="liar")
        async with liar.connected(manager.service.url):
            await liar.join()
            await liar.socket.send_bytes(liar.renewal(TierReport(entities=strange)))
            while (await liar.socket.receive(DEADLINE_SECONDS)).type is aiohttp.WSMsgType.BINARY:
                pass
            assert liar.socket.close_code == aiohttp.WSCloseCode.PROTOCOL_ERROR
        _, told = await manager.get("/v1/pools/rooms/owners")
        owners = msgspec.convert(told, Owners).owners
        assert sorted(each.name for each in owners) == ["ann", "liar"]


async def test_no_lookup_ends_a_leader_whatever_it_claims() -> None:
    async with attacked() as (manager, honest):
        seal = honest.seal
        for leadership, lsn in ((FUTURE, 1), (seal.leadership, FUTURE), (FUTURE, FUTURE), (0, 9)):
            lie = of_nobody(journal=seal.journal, leadership=leadership, lsn=lsn)
            forged = of_nobody(journal=seal.journal, leadership=leadership, receipt=bytes(40))
            await say(manager, "/v1/lookup", lie, forged)
        async with Lookup(manager.service.url, pool="rooms") as lookup:
            await lookup.wait("a", timeout=DEADLINE_SECONDS)
            assert lookup.find("a") == "http://ann"


async def test_a_process_that_owns_nothing_declares_nobody_dead() -> None:
    async with serving() as manager:
        here = own_process()
        assert here is not None
        async with Owner(manager.service.url, pool="rooms", address="http://a") as owner:
            await owner.ready()
            machine: Any = owner._engine.machine
            lie = Attested(
                pool="rooms",
                incarnation=machine.belief.incarnation,
                process=here,
                witness=msgspec.structs.replace(here, pid=1),
                owner_nonce=NOBODY,
                manager_nonce=machine.manager_nonce,
            )
            held = owner.ranges
            await say(manager, "/v1/owner", lie, lie)
            assert owner.ranges == held != ()
        assert manager.counted("owner attested dead") == 0


async def test_a_name_that_a_liar_holds_is_refused_in_words_that_arrive() -> None:
    async with attacked() as (manager, honest):
        liar = Join(
            pool="rooms",
            kind="hashed",
            name="good",
            address="http://" + "a" * 1_990,
            owner_nonce=NOBODY,
            manager_nonce=honest.seal.manager_nonce,
            sequence=1,
        )
        await say(manager, "/v1/owner", liar)
        good = Owner(
            manager.service.url, pool="rooms", address="http://g", name="good", enter_timeout=3.0
        )
        with pytest.raises(NameHeld, match="the name 'good' belongs to an owner at "):
            await good.__aenter__()


async def test_a_pin_of_a_key_that_is_too_long_is_refused() -> None:
    async with attacked() as (manager, _):
        url = manager.service.url
        async with Owner(url, pool="words", kind="ordered", address="http://w", name="w") as owner:
            await owner.ready()
            for length, refused, why in (
                (1_025, 409, "limit is 1023"),
                (100_000, 409, "limit is 1023"),
                (200_000, 400, "length <="),
            ):
                pin = {"owner": "w", "key": "k" * length}
                status, problem = await manager.post("/v1/pools/words/pin", pin)
                assert (status, why in problem["error"]) == (refused, True), problem
            status, _ = await manager.post("/v1/pools/words/pin", {"owner": "w", "key": "k" * 1023})
            assert status == 200
            assert owner.check("a") is not None


async def test_whoever_reads_the_table_can_offer_an_owner_no_state() -> None:
    async with serving() as manager, asyncio.timeout(DEADLINE_SECONDS):
        state, lost = KeyedState[int](), list[KeyRange]()
        owner = Owner(
            manager.service.url, pool="rooms", address="http://127.0.0.1:9", hand_off=state
        )
        async with owner, Lookup(manager.service.url, pool="rooms", on_loss=lost.extend):
            await owner.ready()
            lease = await until(lambda: owner.check("ann"))
            assert lease
            state["ann"] = 1
            inside: Any = owner._engine.machine
            key, channels = owner.key("ann"), WebSocketChannels()
            offer = Offer(
                pool="rooms",
                journal=inside.belief.journal,
                start=key,
                end=key + b"\x00",
                number=lease.number + 1,
                source=inside.belief.incarnation + 1,
                taker=inside.belief.incarnation,
                secret=NOBODY,
            )
            data = msgspec.msgpack.encode(([(None, None, ["ann", "bob"], [7, 7])],))
            for other in ({}, {"start": b"", "end": None}, {"number": FUTURE}, {"secret": 0}):
                channel = await channels.connect(inside.config.hand_off)
                with suppress(ChannelLost):
                    await channel.send(encode_to_peer(msgspec.structs.replace(offer, **other)))
                    await channel.send(encode_to_peer(Chunk(data=data)))
                    assert isinstance(decode_to_source(await channel.receive()), NotTaken)
                await channel.close()
            await channels.close()
            assert (dict(state), owner.holds(lease), lost) == ({"ann": 1}, True, [])
