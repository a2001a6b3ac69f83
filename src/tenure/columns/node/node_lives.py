"""A node, life after life: where one could not go on because of its disk, the next begins.

async with NodeLives(settings) as node:
    await node.wait()
"""

import asyncio
import logging
from typing import Self

import msgspec

from tenure.columns.engines.directory import StoreMoved
from tenure.columns.node.disk_room import LOOK_SECONDS, room_on
from tenure.columns.node.node_service import NodeService, NodeSettings
from tenure.errors import StoreUnwritable
from tenure.transport.credentials import NOTHING, Credentials

_log = logging.getLogger("tenure.columns")


class NodeLives:
    """See above. Raises what `NodeService` raises, when the first life cannot begin."""

    def __init__(self, settings: NodeSettings, credentials: Credentials = NOTHING) -> None:
        self._settings = settings
        self._credentials = credentials
        self.service: NodeService | None = None
        """The present life; None between two."""
        self.url = ""

    async def __aenter__(self) -> Self:
        await self._begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end()

    async def wait(self) -> None:
        """Wait until no further life can begin; raises the reason."""
        while True:
            assert self.service is not None
            try:
                await self.service.wait()
            except StoreMoved:
                raise
            except StoreUnwritable:
                await self._end()
                await self._begin_with_room()

    async def _begin(self) -> None:
        service = NodeService(self._settings, self._credentials)
        await service.__aenter__()
        self.service = service
        self.url = service.url
        port = int(service.url.rpartition(":")[2])
        self._settings = msgspec.structs.replace(self._settings, port=port)

    async def _end(self) -> None:
        service, self.service = self.service, None
        if service is not None:
            await service.__aexit__()

    async def _begin_with_room(self) -> None:
        """Begin the next life. Opening a store may take more room than there is."""
        while self.service is None:
            await room_on(self._settings.data)
            try:
                await self._begin()
            except StoreUnwritable as error:
                _log.warning("%s: the next life of this node waits", error)
                await asyncio.sleep(LOOK_SECONDS)
        _log.warning("the disk of this node has room again: it goes on")
