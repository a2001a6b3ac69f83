"""Connections to the other members: one channel to each, on which both sides ask and answer.

A message that may be sent only while a lease is held carries a gate, which is asked at the last
moment: when the message is handed to the channel, and not when it was put in line.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from tenure.errors import LeaseLost, ProtocolError, TenureError, ValueTypeError
from tenure.protocol.entity.key_line import EntityCall
from tenure.protocol.entity.messages import EntityAsk, EntityFailure, EntityMessage, EntityReply
from tenure.transport.channels import Channel, ChannelLost, Channels
from tenure.transport.failures import error_of, failure_of
from tenure.wire.entity import decode, encode

Gate: TypeAlias = Callable[[], bool]
GatedAnswer: TypeAlias = tuple[bytes, Gate]
Serve: TypeAlias = Callable[[EntityCall], Awaitable[GatedAnswer]]
HELLO = ".hello"
"""The method of the first call on a connection. It carries the caller's own URL, so that the other
side uses this connection, too.
"""


def always() -> bool:
    """The gate of messages that depend on no lease."""
    return True


class Unconnected(TenureError):
    """No connection to the member could be made: nothing was sent."""


class Link:
    """One channel, on which both sides ask and answer."""

    def __init__(self, channel: Channel, serve: Serve, on_lost: "Callable[[Link], None]") -> None:
        self.url = channel.peer
        self._channel = channel
        self._serve = serve
        self._on_lost = on_lost
        self._asked: dict[int, asyncio.Future[bytes]] = {}
        self._to_send: deque[tuple[EntityMessage, Gate]] = deque()
        self._has_some = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._seq = 0
        self.is_lost = False

    async def run(self) -> None:
        """Carry messages until the channel is lost."""
        sending = asyncio.ensure_future(self._send_all())
        why = "the connection was closed"
        try:
            while True:
                self._hear(decode(await self._channel.receive()))
        except (ChannelLost, ProtocolError) as error:
            why = str(error)
        finally:
            self.is_lost = True
            sending.cancel()
            for each in [sending, *self._tasks]:
                each.cancel()
            for waiting in self._asked.values():
                if not waiting.done():
                    waiting.set_exception(ChannelLost(why))
            self._on_lost(self)
            await self._channel.close()

    def ask(self, call: EntityCall, gate: Gate = always) -> "asyncio.Future[bytes]":
        """Send a call, and return its answer. Raises ChannelLost if nobody knows whether the call
        was carried out.
        """
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        if self.is_lost:
            answer.set_exception(ChannelLost("the connection is lost"))
            return answer
        self._seq += 1
        seq = self._seq
        self._asked[seq] = answer
        answer.add_done_callback(lambda _: self._asked.pop(seq, None))
        self._put(EntityAsk(seq, call), gate)
        return answer

    def _put(self, message: EntityMessage, gate: Gate) -> None:
        self._to_send.append((message, gate))
        self._has_some.set()

    async def _send_all(self) -> None:
        while True:
            await self._has_some.wait()
            self._has_some.clear()
            while self._to_send:
                message, gate = self._to_send.popleft()
                if not gate():
                    lost = LeaseLost("the lease was lost before this could be said")
                    self._stopped(message, lost)
                    continue
                try:
                    data = encode(message)
                except (TypeError, ValueError, OverflowError) as error:
                    self._stopped(message, ValueTypeError(f"this cannot be sent: {error}"))
                    continue
                try:
                    await self._channel.send(data)
                except ChannelLost:
                    await self._channel.close()  # the receiving task notices
                    return

    def _stopped(self, message: EntityMessage, why: TenureError) -> None:
        """The message is not sent. Whoever waits for it is told."""
        if isinstance(message, EntityReply):
            self._put(failure_of(message.seq, why), always)
        elif isinstance(message, EntityAsk):
            waiting = self._asked.get(message.seq)
            if waiting is not None and not waiting.done():
                waiting.set_exception(why)

    def _hear(self, message: EntityMessage) -> None:
        if isinstance(message, EntityAsk):
            task = asyncio.ensure_future(self._answer(message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return
        waiting = self._asked.get(message.seq)
        if waiting is None or waiting.done():
            return
        if isinstance(message, EntityFailure):
            waiting.set_exception(error_of(message))
        else:
            waiting.set_result(message.data)

    async def _answer(self, ask: EntityAsk) -> None:
        try:
            if ask.call.method == HELLO:
                self.url = ask.call.data.decode()
            data, gate = await self._serve(ask.call)
        except Exception as error:  # noqa: BLE001  # the caller is told
            self._put(failure_of(ask.seq, error), always)
        else:
            self._put(EntityReply(ask.seq, data), gate)


class Links:
    """The links to all other members."""

    def __init__(self, channels: Channels, serve: Serve, on_lost: Callable[[str], None]) -> None:
        self._channels = channels
        self._serve = serve
        self._on_lost = on_lost
        self._links: dict[str, Link] = {}
        self._connecting: dict[str, asyncio.Task[Link]] = {}
        self._running: set[asyncio.Task[None]] = set()
        self.url = ""

    async def listen(self, where: str, address: str | None = None) -> str:
        """Listen there, and return the URL by which the others know this member: `address`, if that
        differs from where it listens.
        """
        listening = await self._channels.listen(where, self._accept)
        self.url = address or listening
        return self.url

    async def _accept(self, channel: Channel) -> None:
        async def serve(call: EntityCall) -> GatedAnswer:
            if call.method == HELLO:
                self._links.setdefault(link.url, link)
                return b"", always
            return await self._serve(call)

        link = Link(channel, serve, self._forget)
        await link.run()

    def to(self, url: str) -> Link | None:
        """The link to `url`, if there is one."""
        link = self._links.get(url)
        return None if link is None or link.is_lost else link

    async def link(self, url: str) -> Link:
        """The link to `url`, which is made if necessary. Raises Unconnected if that fails."""
        found = self.to(url)
        if found is not None:
            return found
        task = self._connecting.get(url)
        if task is None:
            task = self._connecting[url] = asyncio.ensure_future(self._connect(url))
            task.add_done_callback(lambda _: self._connecting.pop(url, None))
        return await asyncio.shield(task)

    async def _connect(self, url: str) -> Link:
        try:
            channel = await self._channels.connect(url)
        except ChannelLost as error:
            raise Unconnected(str(error)) from None
        link = self._links[url] = Link(channel, self._serve, self._forget)
        link.url = url
        running = asyncio.ensure_future(link.run())
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        hello = link.ask(EntityCall("", b"", HELLO, self.url.encode()))
        hello.add_done_callback(lambda done: done.cancelled() or done.exception())
        return link

    def _forget(self, link: Link) -> None:
        if self._links.get(link.url) is link:
            del self._links[link.url]
        self._on_lost(link.url)

    async def close(self) -> None:
        """End all links."""
        for each in [*self._running, *self._connecting.values()]:
            each.cancel()
        await self._channels.close()
