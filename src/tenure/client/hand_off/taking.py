"""One range on its way here: each chunk is in the application's state before the next is read.

It may stay for good only if the machine says so: by granting the range with it. Whatever else
happens, a broken connection, a source that says nonsense, a handler that fails, it is discarded.
"""

import asyncio
from collections.abc import Awaitable, Callable

from tenure.client.hand_off.application import Application, Arrival
from tenure.client.hand_off.giving import PROGRESS_SECONDS
from tenure.errors import RemoteProtocolError
from tenure.transport.channels import Channel, ChannelLost
from tenure.wire.hand_off import (
    Accepted,
    Chunk,
    Last,
    Offer,
    Refused,
    Taken,
    ToTaker,
    Whole,
    decode_to_taker,
    encode,
)

SHOWN_CHARACTERS = 500


class Taking(Arrival):
    """An offer that was accepted."""

    def __init__(self, offer: Offer, channel: Channel) -> None:
        super().__init__(offer.range, offer.number)
        self.offer = offer
        self.channel = channel

    async def run(
        self, application: Application, has_come: Callable[["Taking"], Awaitable[bool]]
    ) -> None:
        """Take all of it, and say so when `has_come` has told the machine; raises where it fails,
        having told the source.
        """
        try:
            await application.begin(self)
            await self.channel.send(encode(Accepted()))
            while not isinstance(message := decode_to_taker(await self.channel.receive()), Last):
                chunk = _chunk(message)
                await application.take(self, chunk.data, is_urgent=chunk.is_urgent)
                await self.channel.send(encode(Taken()))
        except ChannelLost:
            raise
        except Exception as error:
            await refuse(self.channel, f"{type(error).__name__}: {error}")
            raise
        if await has_come(self):
            await self.channel.send(encode(Whole()))
        else:
            await refuse(self.channel, "it came too late: this incarnation does not want it")


def _chunk(message: ToTaker) -> Chunk:
    if not isinstance(message, Chunk):
        raise RemoteProtocolError(f"a {type(message).__name__} among the chunks")
    return message


async def offered_by(channel: Channel) -> Offer:
    """What a source begins with."""
    async with asyncio.timeout(PROGRESS_SECONDS):
        offer = decode_to_taker(await channel.receive())
    if not isinstance(offer, Offer):
        raise RemoteProtocolError(f"a {type(offer).__name__} before any offer")
    return offer


async def refuse(channel: Channel, why: str) -> None:
    """Say why it is not taken."""
    await channel.send(encode(Refused(why[:SHOWN_CHARACTERS])))
