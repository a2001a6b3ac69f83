"""Doors, and connections to them, between simulated processes: over the channels of their world."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from tenure.sim.app.site import ClientHost
from tenure.transport.channels import Channel, ChannelLost
from tenure.transport.contract import Lost, Role
from tenure.transport.doors import Listener, ShowsPage
from tenure.wire.versions import NEWEST

M = TypeVar("M")


class DoorLine:
    """One end of a connection, whose owner never waits: what is sent stands in line here."""

    version = NEWEST

    def __init__(self, peer: str) -> None:
        self.peer = self.whose = peer
        self._to_send: asyncio.Queue[bytes] = asyncio.Queue()
        self._carrying: asyncio.Task[None] | None = None

    def send(self, data: bytes) -> None:
        self._to_send.put_nowait(data)

    def close(self, why: str) -> None:
        """End the connection."""
        if self._carrying is not None:
            self._carrying.cancel(why)

    async def carry(self, channel: Channel, heard: Callable[[bytes], object]) -> str:
        """Carry messages both ways until the channel ends; return why it has."""
        self._carrying = asyncio.current_task()
        sending = asyncio.ensure_future(self._send_to(channel))
        try:
            while True:
                heard(await channel.receive())
        except ChannelLost as error:
            return str(error)
        finally:
            sending.cancel()
            await channel.close()

    async def _send_to(self, channel: Channel) -> None:
        try:
            while True:
                await channel.send(await self._to_send.get())
        except ChannelLost:
            await channel.close()


class LinkDoor:
    """A `Door` of a simulated process."""

    is_reachable = False

    def __init__(self, process: ClientHost) -> None:
        self._channels = process.site.links.channels(process)
        self._listener: Listener

    async def open(self, where: str, listener: Listener, address: str | None = None) -> str:
        self._listener = listener
        return await self._channels.listen(where, self._serve, address)

    async def _serve(self, channel: Channel) -> None:
        line, listener = DoorLine(channel.peer), self._listener
        listener.connected(line)
        await line.carry(channel, lambda data: listener.received(line, data))
        listener.disconnected(line)

    def show(self, page: ShowsPage) -> None:
        """See `Door.show`. Nobody looks here."""

    async def close(self, why: str) -> None:
        await self._channels.close()


class LinkTransport(Generic[M]):
    """A `Transport` to the doors of other simulated processes."""

    def __init__(self, process: ClientHost, role: Role[M]) -> None:
        self._channels = process.site.links.channels(process)
        self._role = role
        self._lines: dict[str, DoorLine] = {}
        self._talking: dict[asyncio.Task[None], None] = {}
        self._deliver: Callable[[str, M], None]
        self._lost: Lost

    def start(self, deliver: Callable[[str, M], None], lost: Lost) -> None:
        self._deliver, self._lost = deliver, lost

    def send(self, manager: str, message: msgspec.Struct) -> None:
        line = self._lines.get(manager)
        if line is None:
            line = self._lines[manager] = DoorLine(manager)
            talking = asyncio.ensure_future(self._talk(manager, line))
            self._talking[talking] = None
            talking.add_done_callback(self._talking.pop)
        line.send(self._role.encode(message, NEWEST))

    async def _talk(self, server: str, line: DoorLine) -> None:
        def hear(data: bytes) -> None:
            self._deliver(server, self._role.decode(data, NEWEST))

        try:
            why = await line.carry(await self._channels.connect(server), hear)
        except ChannelLost as error:
            why = str(error)
        del self._lines[server]
        self._lost(server, why)

    async def close(self) -> None:
        for each in list(self._talking):
            each.cancel()
        await self._channels.close()
