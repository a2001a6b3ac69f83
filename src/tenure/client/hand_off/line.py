"""One end of a channel, and the machine that decides what is said there.

The machines of a hand-off say what to send, when to listen, and what to ask of the application. A
line does that in the loop of the transfers, and tells its machine the result. It reads nothing
before the machine listens, so a peer that sends faster than the application imports has to wait.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from tenure.base.machine import Machine
from tenure.base.names import error_shown
from tenure.errors import RemoteProtocolError, TenureError
from tenure.protocol.lease.owner.transfer import (
    CallFailed,
    HangUp,
    Listen,
    PeerErred,
    PeerLost,
    PeerSaid,
    Say,
    ToSource,
    ToTaker,
)
from tenure.runtime.clock import Clock, Timers
from tenure.runtime.driver import Driver
from tenure.transport.channels import Channel
from tenure.wire.hand_off import encode

LINGER_SECONDS = 1.0
"""How long to wait for a peer that does not read our last message."""


class Line(ABC):
    """A machine, and its channel."""

    def __init__(
        self,
        machine: Machine[Any, Any],
        clock: Clock,
        timers: Timers,
        decode: Callable[[bytes], ToTaker | ToSource],
    ) -> None:
        self.outcome = "stopped"
        """The result, once the line is over."""
        self.error: Exception | None = None
        """The last error that the application raised."""
        self._decode = decode
        self._driver = Driver(machine, clock, self._perform, timers=timers, fail=self._on_bug)
        self._outbox: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._channel: Channel | None = None
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._over = asyncio.Event()

    @abstractmethod
    def act(self, action: Any) -> None:  # noqa: ANN401  # each machine has its own
        """Carry out what the machine asks of the application, or of its owner."""

    @abstractmethod
    def give_up(self, why: str) -> None:
        """The machine has failed: tell the owner of the failure in its place."""

    @abstractmethod
    def clean_up(self) -> None:
        """Clean up after the last message: nothing follows."""

    async def run(self, channel: Channel | None = None) -> None:
        """Run the machine from its first step until it hangs up."""
        if channel is not None:
            self.attach(channel)
        self._driver.start()
        try:
            await self._over.wait()
        finally:
            self._driver.stop()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self.clean_up()
            if self._channel is not None:
                await self._channel.close()

    def attach(self, channel: Channel) -> None:
        """Use this channel: send there what waits to be sent, and what the machine sends from now
        on.
        """
        self._channel = channel
        self.begin(partial(self._write, channel), PeerLost)

    def post(self, event: object) -> None:
        """Hand the machine an event, in the loop of the transfers."""
        self._driver.post(event)

    def call(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Ask something of the application, and post the event that comes of it."""

        async def calling() -> None:
            self.post(await work())

        self.begin(calling, CallFailed)

    def begin(
        self,
        work: Callable[[], Coroutine[Any, Any, None]],
        failed: Callable[[str], PeerLost | CallFailed],
    ) -> None:
        """Run `work` beside this line; its failure becomes an event."""

        async def run() -> None:
            try:
                await work()
            except Exception as error:  # noqa: BLE001  # the application's, or of the network
                self._on_failure(error, failed)

        task = asyncio.get_running_loop().create_task(run())
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    def _on_failure(self, error: Exception, failed: Callable[[str], PeerLost | CallFailed]) -> None:
        if isinstance(error, TenureError):
            self.post(failed(str(error)))
            return
        self.error = error
        self.post(failed(error_shown(error)))

    def _perform(self, action: object) -> None:
        match action:
            case Say(message=message):
                try:
                    self._outbox.put_nowait(encode(message))
                except TenureError as error:  # a chunk that is too large
                    self._driver.post(CallFailed(str(error)))
            case Listen():
                assert self._channel is not None
                self.begin(partial(self._listen, self._channel), PeerLost)
            case HangUp():
                self._outbox.put_nowait(None)
                if self._channel is None:
                    self._over.set()
                else:
                    asyncio.get_running_loop().call_later(LINGER_SECONDS, self._over.set)
            case _:
                self.act(action)

    async def _listen(self, channel: Channel) -> None:
        data = await channel.receive()
        try:
            self.post(PeerSaid(self._decode(data)))
        except RemoteProtocolError as error:
            self.post(PeerErred(str(error)))

    async def _write(self, channel: Channel) -> None:
        try:
            while (data := await self._outbox.get()) is not None:
                await channel.send(data)
            self._over.set()
        except TenureError as error:
            self.post(PeerLost(str(error)))
            while await self._outbox.get() is not None:
                """Discards messages to a peer that is gone."""
            self._over.set()

    def _on_bug(self, error: Exception) -> None:
        self.error = error
        self.give_up(f"a bug: {error!r}")
        self._over.set()
