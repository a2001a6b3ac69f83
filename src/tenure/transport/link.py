"""One connection between two members: a channel, on which both sides ask and answer.

A message that may be sent only while a lease is held carries a gate, which is asked at the last
moment: when the message is handed to the channel, and not when it was put in line. All that was put
there in one turn of the loop is handed over together. What waits is bounded (see `link_bounds`).
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeAlias, cast

from tenure.errors import LeaseLost, ProtocolError, TenureError, ValueTypeError
from tenure.protocol.entity.key_line import EntityCall
from tenure.protocol.entity.messages import EntityAsk, EntityFailure, EntityMessage, EntityReply
from tenure.transport.channels import Channel, ChannelLost
from tenure.transport.failures import error_of, failure_of
from tenure.transport.link_bounds import Backlog
from tenure.wire.entity import decode, encode

Gate: TypeAlias = Callable[[], bool]
GatedAnswer: TypeAlias = tuple[bytes, Gate]
Serve: TypeAlias = Callable[[EntityCall], Awaitable[GatedAnswer]]

MESSAGE_BYTES = 1024
"""What a message takes while it waits, beside what it carries."""
JOINED_BYTES = 64 << 10
"""With so many bytes, no further message is handed over together with others."""

_log = logging.getLogger("tenure.transport")


def always() -> bool:
    """The gate of messages that depend on no lease."""
    return True


class Unconnected(TenureError):
    """No connection to the member could be made, or none that reads: nothing was sent."""


class Link:
    """One channel, on which both sides ask and answer."""

    def __init__(
        self,
        channel: Channel,
        serve: Serve,
        on_lost: "Callable[[Link], None]",
        backlog: Backlog,
    ) -> None:
        self.url = ""
        """Where it leads, if this process has made it: the URL that it dialled."""
        self.asks = self.waiting_bytes = 0
        self.is_lost = False
        self._channel = channel
        self._serve = serve
        self._on_lost = on_lost
        self._backlog = backlog
        backlog.links.add(self)
        self._asked: dict[int, asyncio.Future[bytes]] = {}
        self._to_send: deque[tuple[EntityMessage, Gate, int]] = deque()
        self._has_some = asyncio.Event()
        self._may_read = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[str] = self._loop.create_future()
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._sends_since: float | None = None
        """Since when the channel has not taken what it was given; None if it has."""
        self._watches: asyncio.TimerHandle | None = None
        self._seq = 0

    # --- living ---

    async def run(self) -> None:
        """Carry messages until the channel is lost."""
        hearing = asyncio.ensure_future(self._hear_all())
        sending = asyncio.ensure_future(self._send_all())
        ends: list[asyncio.Future[str]] = [self._ended, hearing, sending]
        why = "the connection was closed"
        try:
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            why = next(each.result() for each in ends if each in done)
        finally:
            self.is_lost = True
            if self._watches is not None:
                self._watches.cancel()
            for each in [hearing, sending, *self._tasks]:
                each.cancel()
            for waiting in self._asked.values():
                if not waiting.done():
                    waiting.set_exception(ChannelLost(why))
            self._to_send.clear()
            self._backlog.close(self)
            self._on_lost(self)
            # A channel that is closed while somebody receives waits for the other side in vain.
            await asyncio.wait([hearing, sending])
            await self._channel.close()

    def end(self, why: str) -> None:
        """End it: more waits here than may wait."""
        if not self._ended.done():
            _log.warning("ended the connection with %s: %s", self._channel.peer, why)
            self._ended.set_result(f"the connection was ended: {why}")

    def leave(self) -> bool:
        """End it, if no answer is waited for. Nothing is lost then, and nobody is told. Returns
        whether it ends.
        """
        if self._asked or self._ended.done():
            return False
        self._on_lost = lambda _: None
        self._ended.set_result("it led nowhere")
        return True

    # --- asking ---

    def ask(self, call: EntityCall, gate: Gate = always) -> "asyncio.Future[bytes]":
        """Send a call, and return its answer. Raises ChannelLost if nobody knows whether the call
        was carried out, and Unconnected if it was not sent.
        """
        answer: asyncio.Future[bytes] = self._loop.create_future()
        if self.is_lost:
            answer.set_exception(ChannelLost("the connection is lost"))
            return answer
        if self.waiting_bytes >= self._backlog.limits.read_bytes:
            size = self.waiting_bytes
            answer.set_exception(Unconnected(f"{size} bytes wait for it already, and are not read"))
            return answer
        self._seq += 1
        seq = self._seq
        self._asked[seq] = answer
        answer.add_done_callback(lambda _: self._asked.pop(seq, None))
        self._put(EntityAsk(seq, call), gate)
        return answer

    # --- sending ---

    def _put(self, message: EntityMessage, gate: Gate) -> None:
        if self.is_lost:
            return
        size = size_of(message)
        self._to_send.append((message, gate, size))
        self._backlog.add(self, size=size)
        self._has_some.set()

    async def _send_all(self) -> str:
        try:
            while True:
                await self._has_some.wait()
                self._has_some.clear()
                while self._to_send:
                    data, size = self._next()
                    if data:
                        self._sends_since = self._loop.time()
                        self._watches = self._watches or self._watch(self._sends_since)
                        await self._channel.send(*data)
                        self._sends_since = None
                    self._backlog.add(self, size=-size)
        except ChannelLost as error:
            return str(error)

    def _next(self) -> tuple[list[bytes], int]:
        """What is sent next, all of which may be sent now, and how much of the backlog it was."""
        found, encoded_bytes, size = [], 0, 0
        while self._to_send and encoded_bytes < JOINED_BYTES:
            message, gate, its_size = self._to_send.popleft()
            size += its_size
            data = self._encoded(message, gate)
            if data is not None:
                found.append(data)
                encoded_bytes += len(data)
        return found, size

    def _watch(self, since: float) -> asyncio.TimerHandle:
        """Look whether the peer reads what was sent then. One timer does for all messages."""
        return self._loop.call_at(since + self._backlog.limits.stuck_seconds, self._look)

    def _look(self) -> None:
        self._watches = None
        seconds, since = self._backlog.limits.stuck_seconds, self._sends_since
        if since is None:
            return
        if self._loop.time() >= since + seconds:
            self.end(f"it read nothing for {seconds:g} s")
        else:
            self._watches = self._watch(since)

    def _encoded(self, message: EntityMessage, gate: Gate) -> bytes | None:
        """The bytes to send; None if the message may not be sent."""
        if not gate():
            self._stopped(message, LeaseLost("the lease was lost before this could be said"))
            return None
        try:
            return encode(message)
        except (TypeError, ValueError, OverflowError) as error:
            self._stopped(message, ValueTypeError(f"this cannot be sent: {error}"))
            return None

    def _stopped(self, message: EntityMessage, why: TenureError) -> None:
        """The message is not sent. Whoever waits for it is told."""
        if isinstance(message, EntityReply):
            self._put(failure_of(message.seq, why), always)
        elif isinstance(message, EntityAsk):
            waiting = self._asked.get(message.seq)
            if waiting is not None and not waiting.done():
                waiting.set_exception(why)

    # --- hearing ---

    async def _hear_all(self) -> str:
        try:
            while True:
                while not self._backlog.may_read(self):
                    self._may_read.clear()
                    await self._may_read.wait()
                self._hear(decode(await self._channel.receive()))
        except (ChannelLost, ProtocolError) as error:
            return str(error)

    def look_for_room(self) -> None:
        self._may_read.set()

    def _hear(self, message: EntityMessage) -> None:
        if isinstance(message, EntityAsk):
            size = size_of(message)
            self._backlog.add(self, asks=1, size=size)
            task = self._loop.create_task(self._answer(message, size))
            self._tasks[task] = None
            return
        waiting = self._asked.get(message.seq)
        if waiting is None or waiting.done():
            return
        if isinstance(message, EntityFailure):
            waiting.set_exception(error_of(message))
        else:
            waiting.set_result(message.data)

    async def _answer(self, ask: EntityAsk, size: int) -> None:
        try:
            data, gate = await self._serve(ask.call)
        except Exception as error:  # noqa: BLE001  # the caller is told
            self._put(failure_of(ask.seq, error), always)
        else:
            self._put(EntityReply(ask.seq, data), gate)
        finally:
            if not self.is_lost:
                self._backlog.add(self, asks=-1, size=-size)
            self._tasks.pop(cast("asyncio.Task[None]", asyncio.current_task()), None)


def size_of(message: EntityMessage) -> int:
    """About how many bytes a message takes while it waits."""
    match message:
        case EntityAsk(call=call):
            return MESSAGE_BYTES + len(call.data)
        case EntityReply(data=data):
            return MESSAGE_BYTES + len(data)
        case EntityFailure(text=text, arguments=arguments):
            return MESSAGE_BYTES + len(text) + len(arguments)
