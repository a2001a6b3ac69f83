"""Connections to the other members: to each, one that this process has made.

A process asks a member only over a connection that it has made to the member's URL itself. What a
peer says of itself proves nothing: whoever connects here could say the URL of another member, and
would get the calls for it. So of two processes that ask each other, each has made one connection.
"""

import asyncio
from collections.abc import Callable

from tenure.protocol.entity.key_line import EntityCall
from tenure.transport.channels import Channel, ChannelLost, Channels
from tenure.transport.link import GatedAnswer, Link, Serve, Unconnected, always
from tenure.transport.link_bounds import LINK_LIMITS, Backlogs, LinkLimits

HELLO = ".hello"
"""The method of the first call on a connection. It carries the caller's own URL. It is only a hint
that this URL is worth a look when the connection is lost; nothing is sent there because of it.
"""
MOST_URL_BYTES = 2000


class Links:
    """The links to all other members."""

    def __init__(
        self,
        channels: Channels,
        serve: Serve,
        on_lost: Callable[[str], None],
        limits: LinkLimits = LINK_LIMITS,
    ) -> None:
        self._channels = channels
        self._serve = serve
        self._on_lost = on_lost
        """Called with the URL of a member to which, or from which, a connection was lost."""
        self._backlogs = Backlogs(limits)
        self._links: dict[str, Link] = {}
        self._connecting: dict[str, asyncio.Task[Link]] = {}
        self._running: dict[asyncio.Task[None], None] = {}
        self.url = ""

    @property
    def waiting_bytes(self) -> int:
        """The bytes of calls and answers that wait at all connections."""
        return self._backlogs.waiting_bytes

    async def listen(self, where: str, address: str | None = None) -> str:
        """Listen there, and return the URL by which the others know this member: `address`, if that
        differs from where it listens.
        """
        listening = await self._channels.listen(where, self._accept, address)
        self.url = address or listening
        return self.url

    async def _accept(self, channel: Channel) -> None:
        said = ""

        async def serve(call: EntityCall) -> GatedAnswer:
            nonlocal said
            if call.method == HELLO:
                said = call.data[:MOST_URL_BYTES].decode()
                return b"", always
            return await self._serve(call)

        link = Link(channel, serve, lambda _: self._on_lost(said), self._backlogs.of(channel.peer))
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
        link = Link(channel, self._serve, self._forget, self._backlogs.of(url))
        link.url = url
        self._links[url] = link
        running = asyncio.ensure_future(link.run())
        self._running[running] = None
        running.add_done_callback(self._running.pop)
        hello = link.ask(EntityCall("", b"", HELLO, self.url.encode()))
        hello.add_done_callback(lambda done: done.cancelled() or done.exception())
        return link

    def let_go(self, url: str) -> None:
        """End the link to `url`, unless something is asked there: whoever named it was wrong, or
        lies, and may name another each time.
        """
        link = self.to(url)
        if link is not None and link.leave():
            del self._links[url]

    def _forget(self, link: Link) -> None:
        if self._links.get(link.url) is link:
            del self._links[link.url]
        self._on_lost(link.url)

    async def close(self) -> None:
        """End all links."""
        ending = [*self._running, *self._connecting.values()]
        for each in ending:
            each.cancel()
        await self._channels.close()
        if ending:
            await asyncio.wait(ending)
