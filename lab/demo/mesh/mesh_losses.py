"""The PCs that rely on what a server has, and have to be told when it is lost.

The demo asks the manager's table, as anybody may: which of these keys the server has that is about
to have trouble, and whether their state was lost then, or had been handed over just before.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

from lab.demo.mesh.live_mesh import MANAGER, SERVICES, LiveMesh, ServiceName
from lab.demo.mesh.mesh_devices import HOME, HOME_PC, USER, WORK, WORK_PC
from tenure import KeyStanding, Lookup
from tenure.services.queues.client import ReceivedEntry


class MeshKey(NamedTuple):
    """The value that is kept under one key, and the PCs that rely on it."""

    pool: ServiceName
    key: str
    what: str
    by: tuple[str, ...]


RELIED_ON = (
    MeshKey("devices", HOME, "the home PC's address", (HOME_PC, WORK_PC)),
    MeshKey("activities", USER, "what the user has done", (HOME_PC, WORK_PC)),
    MeshKey("topics", HOME, "the topic under which it is published", (WORK_PC,)),
    MeshKey("queues", HOME, "the home PC's queue", (HOME_PC,)),
    MeshKey("queues", WORK, "the work PC's queue", (WORK_PC,)),
)


class MeshLosses:
    """The keys that one server had when its trouble began, and the PCs that were told since."""

    def __init__(
        self,
        lookups: Mapping[ServiceName, Lookup],
        members: Mapping[str, str],
        *,
        is_kept: bool = False,
    ) -> None:
        self.told: dict[str, set[str]] = {}
        """The pools of which each PC was told that they have lost something."""
        self.had: list[MeshKey] = []
        """The keys that the server had."""
        self._lookups = lookups
        self._members = members
        self._is_kept = is_kept
        """Whether stores have everything. A queue is then as it was, and has nothing to tell of
        itself; of other pools it tells what it cannot know to be there still.
        """
        self._address: str | None = None
        """Where keys were that are neither lost nor served as long as they are there."""
        self._unsettled: dict[MeshKey, KeyStanding] = {}
        self._watched: dict[tuple[str, str, str], int] = {}
        """The lease from which on a PC is told of losses, by the PC, the pool and the key."""

    async def begin(self, victim: str) -> None:
        """This server, PC, frontend or manager is about to have trouble. A manager has every key,
        since its silence may end all leases; a frontend and a PC have none.
        """
        self._address, self.told = self._members.get(victim), {}
        is_all = victim == MANAGER
        self.had = [
            it for it in RELIED_ON if is_all or (self._address and self._at(it) == self._address)
        ]
        told = [it for it in self.had if not (self._is_kept and it.pool == "queues")]
        self._unsettled = {it: found for it in told if (found := await self._standing(it))}

    def _at(self, of: MeshKey) -> str | None:
        return self._lookups[of.pool].find(of.key)

    async def _standing(self, of: MeshKey) -> KeyStanding | None:
        (found,) = await asyncio.wrap_future(self._lookups[of.pool].standings([of.key]))
        return found

    def note(self, who: str, entries: list[ReceivedEntry]) -> None:
        """Record the losses that a device was told of."""
        for each in entries:
            pools = set() if each.loss is None else set(each.loss.pools)
            if each.loss is not None and each.loss.began:
                pools.add("queues")
            self.told.setdefault(who, set()).update(pools)

    def note_asked_anew(self, who: str, leases: Mapping[str, Mapping[str, int]]) -> None:
        """Record that a device has begun its queue anew, which tells of losses after these leases,
        and reads next what it relies on: earlier losses need not be told to it.

        The queue says from which leases on. Its process may know of a loss before this one does, so
        what this one knows now may be older, and would have it wait for what was told already.
        """
        for pool, keys in leases.items():
            self._watched |= {(who, pool, key): number for key, number in keys.items()}

    def _knows(self, who: str, it: MeshKey, now: KeyStanding) -> bool:
        """Whether a PC was told of the loss after which a key stands so, or asked after it."""
        watched = self._watched.get((who, it.pool, it.key))
        return it.pool in self.told.get(who, ()) or (watched is not None and watched >= now.since)

    async def untold(self) -> list[str]:
        """Return the losses that some PC was not told of yet, and the keys not yet settled."""
        found = []
        for it, before in list(self._unsettled.items()):
            now = await self._standing(it)
            if now is not None and now.has_lost(before):
                deaf = [who for who in it.by if not self._knows(who, it, now)]
                found += [f"{who} was not told that {it.what} is lost" for who in deaf]
            elif now is None or self._at(it) in (None, self._address):
                found.append(f"{it.what} is neither lost nor served")
            else:  # it had been handed over just before, or the manager was not missed
                del self._unsettled[it]
        return found


@asynccontextmanager
async def mesh_losses(mesh: LiveMesh) -> AsyncIterator[MeshLosses]:
    """Follows the pools of a mesh that runs."""
    async with AsyncExitStack() as stack:
        lookups = {name: Lookup(mesh.manager.url, pool=name) for name in SERVICES}
        for each in lookups.values():
            await stack.enter_async_context(each)
        yield MeshLosses(lookups, mesh.members, is_kept=mesh.is_kept)
