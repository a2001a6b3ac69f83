"""One range on its way from here: copied while it is served, then its last difference.

Runs in the loop of the transfers; the application is asked in its own loop, chunk by chunk, and the
machine is told in the engine's. Two chunks of the application's are in hand at a time, and a few
are under way: how much the range holds does not matter.
"""

import asyncio
from collections.abc import Callable

from tenure.client.hand_off.application import SMALL_BYTES, Application
from tenure.client.hand_off.handler import Mark
from tenure.errors import TenureError
from tenure.protocol.lease.messages import HandOff
from tenure.transport.channels import Channel, Channels
from tenure.wire.hand_off import (
    CHUNKS_UNDER_WAY,
    Accepted,
    Chunk,
    Last,
    Offer,
    Refused,
    Taken,
    ToSource,
    ToTaker,
    Whole,
    decode_to_source,
    encode,
)

PROGRESS_SECONDS = 5.0
"""Without a word of the other owner: it imports a chunk in milliseconds, and pings are answered in
half of this. From the last difference on nobody serves the range meanwhile."""
ROUNDS = 5
"""Of differences while the range is served. Who changes state faster than it can be sent is not
caught up with by more of them; the last difference is then what it is."""


class NotTaken(TenureError):
    """The taker does not take it, or says what makes no sense."""


class Giving:
    """An order that is carried out."""

    def __init__(
        self,
        order: HandOff,
        offer: Offer,
        application: Application,
        copied_ahead: Callable[["Giving"], None],
    ) -> None:
        self.order = order
        self.task: asyncio.Task[None] | None = None
        self.may_end = asyncio.Event()
        """Set when the range is not served any more."""
        self._offer = offer
        self._application = application
        self._copied_ahead = copied_ahead
        self._mark: Mark | None = None
        self._under_way = 0

    async def run(self, channels: Channels) -> None:
        """From the offer to the taker's word that it has all of it; raises where that fails."""
        try:
            async with asyncio.timeout(PROGRESS_SECONDS):
                self._channel: Channel = await channels.connect(self.order.address)
            try:
                await self._carry()
            finally:
                self._mark = None
                await self._channel.close()
        except TimeoutError:
            raise NotTaken(f"nothing was heard of it for {PROGRESS_SECONDS:g} s") from None

    async def _carry(self) -> None:
        await self._send(self._offer)
        if not isinstance(await self._hear(), Accepted):
            raise NotTaken("its first answer did not accept the offer")
        await self._copy_ahead()
        self._copied_ahead(self)
        await self.may_end.wait()
        await self._send_changes()
        await self._send(Last())
        while not isinstance(answer := await self._hear(), Whole):
            self._on_taken(answer)

    async def _copy_ahead(self) -> None:
        for _ in range(1 + ROUNDS):
            is_first = self._mark is None
            size = await self._send_changes()
            while self._under_way:
                await self._hear_taken()
            if size <= SMALL_BYTES and not is_first:  # as much may be sent while nobody serves it
                return

    async def _send_changes(self) -> int:
        """All, or what changed since the last time; how many bytes."""
        size = 0
        is_urgent = self.may_end.is_set()
        self._mark, chunks = await self._application.export(self.order.range, self._mark)
        try:
            following = self._application.next_of(chunks, is_urgent=is_urgent)
            while (chunk := await asyncio.wrap_future(following)) is not None:
                following = self._application.next_of(chunks, is_urgent=is_urgent)
                while self._under_way >= CHUNKS_UNDER_WAY:
                    await self._hear_taken()
                await self._send(Chunk(chunk, is_urgent))
                self._under_way += 1
                size += len(chunk)
        finally:
            self._application.close(chunks)
        return size

    async def _hear_taken(self) -> None:
        self._on_taken(await self._hear())

    def _on_taken(self, answer: ToSource) -> None:
        if not isinstance(answer, Taken) or self._under_way == 0:
            raise NotTaken(f"it said {type(answer).__name__}, which answers nothing")
        self._under_way -= 1

    async def _hear(self) -> ToSource:
        async with asyncio.timeout(PROGRESS_SECONDS):
            message = decode_to_source(await self._channel.receive())
        if isinstance(message, Refused):
            raise NotTaken(f"it refused: {message.why}")
        return message

    async def _send(self, message: ToTaker) -> None:
        data = encode(message)
        async with asyncio.timeout(PROGRESS_SECONDS):
            await self._channel.send(data)
