"""Finds sockets that are no longer there, sooner than by their silence.

A process that is killed tells no entity that its sockets are gone. But its connections end with it.
So when a connection to an edge is lost, or an entity with sockets begins here, the edge is asked
for these sockets, by frames of which there are none. Sockets that it does not name are gone, and so
are all if it does not answer for a few seconds, unless they are heard meanwhile. An edge that was
only cut off for so long learns that its sockets are unknown, and closes them with 1012.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

from tenure.client.lease import Lease
from tenure.client.owner import Owner
from tenure.entities.edge import Edge
from tenure.entities.live_entity import LiveEntity
from tenure.entities.sockets import pushed
from tenure.entities.turns import EntityHost
from tenure.errors import TenureError
from tenure.protocol.entity.key_line import EntityCall
from tenure.protocol.entity.messages import FRAMES
from tenure.transport.links import Links
from tenure.wire.entity import packed, read_received

PAUSES = 0.0, 0.5, 1.0, 1.5
"""Seconds before each attempt to connect to an edge."""
EndSocket = Callable[[str | int, bytes], Coroutine[Any, Any, None]]


class EdgeWatch:
    """Asks edges whether they still have the sockets of entities here."""

    def __init__(
        self,
        host: EntityHost,
        owner: Owner,
        links: Links,
        edge: Edge,
        end_socket: EndSocket,
        go: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._host = host
        self._owner = owner
        self._links = links
        self._edge = edge
        """The edge of this process."""
        self._end_socket = end_socket
        self._go = go
        self._asked: set[str] = set()
        """The edges that are being asked."""

    def look(self, edge: str) -> None:
        """Ask this edge for its sockets, if entities here have any of them."""
        if edge not in self._asked and self._host.with_sockets_at(edge):
            self._asked.add(edge)
            self._go(self._look(edge))

    async def _look(self, edge: str) -> None:
        began = asyncio.get_running_loop().time()
        for live in self._host.with_sockets_at(edge):
            for each in live.sockets_at(edge):
                live.heard.setdefault(each, began)
        try:
            for pause in PAUSES:
                await asyncio.sleep(pause)
                with suppress(TenureError):
                    await self._ask(edge)
                    return
            await self._end_unheard(edge, began)
        finally:
            self._asked.discard(edge)

    async def _ask(self, edge: str) -> None:
        for live in self._host.with_sockets_at(edge):
            lease = self._owner.check(live.key)
            if lease is not None:
                await self._ask_of(await self._of_now(live, lease), lease, edge)

    async def _of_now(self, live: LiveEntity, lease: Lease) -> LiveEntity:
        """The entity with what is kept: it may be here from an earlier lease, since when others
        have sent more frames, and sockets have moved to other edges.
        """
        return live if live.is_active(lease) else (await self._host.inspected(live.key, lease))[0]

    async def _ask_of(self, live: LiveEntity, lease: Lease, edge: str) -> None:
        ids = live.sockets_at(edge)
        if not ids:
            return
        after_all = tuple((id_, live.envelope.sockets[id_].sent + 1, 0) for id_ in ids)
        asked = pushed(live, lease, (), after_all)
        if edge == self._owner.address:
            there = self._edge.take(asked)
        else:
            link = await self._links.link(edge)
            call = EntityCall(live.key, b"", FRAMES, packed(asked))
            there = read_received(await link.ask(call, partial(self._owner.holds, lease)))
        for each in ids:
            if each not in there:
                self._go(self._end_socket(live.key, each))

    async def _end_unheard(self, edge: str, began: float) -> None:
        for live in self._host.with_sockets_at(edge):
            lease = self._owner.check(live.key)
            if lease is not None:
                with suppress(TenureError):  # whoever has the key asks
                    self._end_unheard_of(await self._of_now(live, lease), edge, began)

    def _end_unheard_of(self, live: LiveEntity, edge: str, began: float) -> None:
        for each in live.sockets_at(edge):
            if live.heard.get(each, began) <= began:
                self._go(self._end_socket(live.key, each))
