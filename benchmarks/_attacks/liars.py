"""A lying member: it has a token of the pool, and with it the secret of the pool's ports."""

import asyncio

from benchmarks._attacks.attempt import Attempt, Family
from benchmarks._attacks.strangers import STAYS_SECONDS, pieces_at
from tenure import Credentials, Lookup
from tenure.protocol.entity.key_line import EntityCall
from tenure.protocol.entity.messages import EntityAsk
from tenure.protocol.lease.owner.transfer import Offer
from tenure.transport.channels import Channel, ChannelLost
from tenure.transport.credentials import NOTHING
from tenure.transport.links import HELLO
from tenure.transport.pool_secret import PoolSecret
from tenure.transport.proving import proof_for
from tenure.transport.websocket_channels import WebSocketChannels
from tenure.wire.entity import encode
from tenure.wire.hand_off import encode as encode_offer
from tests.sessions import client_session

LARGE = bytes(1 << 16)
_secrets: dict[str, PoolSecret] = {}


async def _secret(it: Attempt) -> PoolSecret:
    """What managers tell whoever has a token of the pool."""
    if it.pool not in _secrets:
        shows = Credentials(token=it.token)
        async with Lookup(it.manager, pool=it.pool, credentials=shows) as lookup:
            _secrets[it.pool] = lookup.secret
    return _secrets[it.pool]


async def _connected(it: Attempt) -> tuple[WebSocketChannels, Channel]:
    channels = WebSocketChannels(secret=await _secret(it))
    try:
        return channels, await channels.connect(it.url)
    except ChannelLost as error:
        await channels.close()
        raise ConnectionRefusedError(str(error)) from None


async def greetings(it: Attempt) -> None:
    """S4, S5: with the secret, say that it is the member itself."""
    channels, channel = await _connected(it)
    try:
        await channel.send(encode(EntityAsk(1, EntityCall("", b"", HELLO, it.url.encode()))))
        async with asyncio.timeout(STAYS_SECONDS):
            while True:
                await channel.receive()
    except (ChannelLost, TimeoutError):
        pass
    finally:
        await channels.close()


async def asks(it: Attempt) -> None:
    """S13: with the secret, calls with large arguments, and nothing read."""
    channels, channel = await _connected(it)
    try:
        async with asyncio.timeout(STAYS_SECONDS):
            for number in range(1, 1 << 30):
                call = EntityCall("", b"lie", "no_such_method", LARGE)
                await channel.send(encode(EntityAsk(number, call)))
    except (ChannelLost, TimeoutError):
        pass
    finally:
        await channels.close()


async def offers(it: Attempt) -> None:
    """Offer state that no manager ordered to be handed over."""
    channels, channel = await _connected(it)
    try:
        for number in range(100):
            offer = Offer(
                pool="rooms",
                journal=1,
                start=b"",
                end=None,
                number=number + 1,
                source=1,
                taker=number + 1,
                secret=it.random.getrandbits(62),
            )
            await channel.send(encode_offer(offer))
            async with asyncio.timeout(STAYS_SECONDS):
                await channel.receive()
    except (ChannelLost, TimeoutError):
        pass
    finally:
        await channels.close()


async def proof(it: Attempt) -> str:
    """The header that shows the secret."""
    secret = await _secret(it)
    async with client_session() as session:
        shown = await proof_for(it.url, secret, session, NOTHING)
    return "".join(f"{name}: {value}\r\n" for name, value in shown.items())


FAMILIES = (
    Family(greetings, "entities", 5, "owner counters"),
    Family(asks, "entities", 5, "owner counters"),
    Family(offers, "hand_off", 5, "owner rooms"),
    pieces_at("entities", 2, "owner counters", proof),
    *(pieces_at(at, 2, "owner rooms", proof) for at in ("volume", "hand_off")),
    pieces_at("member", 2, "owner carts", proof),
)
