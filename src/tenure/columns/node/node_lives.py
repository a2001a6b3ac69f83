"""A node, life after life: where one could not go on because of its disk, the next begins.

async with NodeLives(settings) as node:
    await node.wait()
"""

import asyncio
import logging
from random import SystemRandom
from typing import Self

import msgspec

from tenure.columns.engines.directory import StoreMoved
from tenure.columns.node.disk_room import LOOK_SECONDS, room_on
from tenure.columns.node.node_directory import NodeDirectory, StorePutBack
from tenure.columns.node.node_service import NodeService, NodeSettings
from tenure.errors import StoreDamaged, StoreUnwritable
from tenure.transport.credentials import NOTHING, Credentials

_log = logging.getLogger("tenure.columns")


class NodeLives:
    """All lives of one node in this process. Entering raises what `NodeService` raises if the first
    life cannot begin.
    """

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
            damage = None
            try:
                await self.service.wait()
            except (StoreMoved, StorePutBack):
                raise
            except StoreUnwritable:
                pass
            except StoreDamaged as error:
                damage = str(error)
            await self._end()
            await (self._begin_with_room() if damage is None else self._begin_anew(damage))

    async def _begin(self) -> None:
        damage = None
        try:
            await self._enter()
        except StoreDamaged as error:
            damage = str(error)  # not the error, whose frames keep the files open
        if damage is not None:
            await self._begin_anew(damage)

    async def _begin_anew(self, damage: str) -> None:
        """Begin as another node, which gets from the other nodes what this one has lost (R35)."""
        settings = self._settings
        if not settings.managers:
            raise StoreDamaged(damage)  # nobody could have it replaced
        random = SystemRandom()
        directory = NodeDirectory.open(settings.data, settings.cluster, random)
        aside = await asyncio.to_thread(directory.begin_anew, random)
        _log.error(
            "%s. The files of this node were put aside, into %s: nothing of them is lost, and you "
            "may delete them when `tenure columns ring` shows that all is well. The node begins "
            "anew, and gets its rows from the others, if they have them",
            damage,
            aside,
        )
        await self._enter()

    async def _enter(self) -> None:
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
