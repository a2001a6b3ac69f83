"""The two PCs of the scenario.

Neither counts on anything but what the services promise: what was accepted arrives, or a loss is
told. Whoever is told of one asks anew for what it relies on, and says its own anew. Each change of
a document depends on the version that was read before it, so nothing that a former life of a device
has sent, and that comes late, undoes what a later life has said.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias

import msgspec

from lab.demo.mesh.device_disk import DeviceDisk
from lab.demo.mesh.mesh_clients import MeshClients
from tenure.errors import OutcomeUnknown, ServiceRefusal
from tenure.services.documents.client import DocumentsClient
from tenure.services.queues.client import ReceivedEntry

HOME, WORK, USER = "home-pc", "work-pc", "ann"
HOME_PC, WORK_PC = "the home PC", "the work PC"
ADDRESS = "address"
POLL_SECONDS = 2.0
AGAIN_SECONDS = 0.2
ABSENT = ""
GONE, OTHER_VERSION = (404, 410), 412
HOME_RELIES_ON = {"devices": [HOME], "activities": [USER]}
Report: TypeAlias = Callable[..., None]
"""Is told what has happened to a device, and the details by name."""


class HomeKept(msgspec.Struct):
    """What the home PC keeps."""

    address: str = ""
    said: str = ""
    """The last address that the services have acknowledged."""


class HomeDevice:
    """The home PC. It is always online, and says its address again whenever that was lost."""

    def __init__(self, clients: MeshClients, disk: DeviceDisk[HomeKept], report: Report) -> None:
        self._clients = clients
        self._disk = disk
        self._report = report
        self._saying = asyncio.Lock()

    async def begin(self) -> None:
        """Have a queue that tells of losses, and say what a former life may not have said."""
        await watch_anew(self._clients, HOME, HOME_RELIES_ON, self._report)
        self._report("online")
        await self._say()

    async def moved(self, addresses: AsyncIterator[str]) -> None:
        """Say each address to which it moves."""
        async for address in addresses:
            self._disk.kept.address = address
            self._disk.save()
            await tried(self._say)

    async def _say(self) -> None:
        """Have the services know where it is, and what its user has done; they tell the others."""
        async with self._saying:
            kept, clients = self._disk.kept, self._clients
            if not (address := kept.address):
                return
            told = self._report
            is_new = await put(clients.devices, HOME, ADDRESS, address, told)
            await put(clients.activities, USER, HOME, activity_of(address), told)
            was_lost = is_new and kept.said == address
            kept.said = address
            self._disk.save()
        if was_lost:
            self._report("said again", address=address)
        self._report("acknowledged", address=address)

    async def watch(self) -> None:
        """Be told of losses, for ever."""
        reader = self._clients.queues.reader(HOME)
        while True:
            entries = await reader.next(wait=POLL_SECONDS)
            if told := [each for each in entries if told_by(each)]:
                await watch_anew(self._clients, HOME, HOME_RELIES_ON, self._report)
                self._report("told", entries=told)
                await self._say()
            if entries:
                await reader.acknowledge(entries[-1].number)


class WorkKept(msgspec.Struct):
    """What the work PC keeps."""

    address: str = ""
    """Where it believes the home PC to be."""
    seen: str = ""
    version: str = ""
    """The last version of the home PC's document of which a message told."""
    taken: int = 0
    """The last entry of its queue that was taken."""


class WorkDevice:
    """The work PC: it is offline, comes online, drains its queue, and connects."""

    def __init__(self, clients: MeshClients, disk: DeviceDisk[WorkKept], report: Report) -> None:
        self._clients = clients
        self._disk = disk
        self._report = report
        self._reader = clients.queues.reader(WORK)

    async def ask(self) -> None:
        """Something may have been missed: subscribe, and look where the home PC is."""
        clients, kept = self._clients, self._disk.kept
        relies_on = HOME_RELIES_ON | {"topics": [HOME]}
        await watch_anew(clients, WORK, relies_on, self._report)
        await clients.topics.subscribe(HOME, f"queue:{WORK}")
        _, address = await read(clients.devices, HOME, ADDRESS)
        kept.address = address or kept.address

    async def drain(self, *, wait: float) -> None:
        """Take what is in the queue, and see what the user has done."""
        entries = await self._reader.next(wait=wait)
        told = [each for each in entries if told_by(each)]
        messages = sum(map(self._take, entries))
        if told:
            await self.ask()
            self._report("told", entries=told)
        if entries:
            self._disk.save()
            self._report("took", messages=messages)
            await self._reader.acknowledge(entries[-1].number)
        _, seen = await read(self._clients.activities, USER, HOME, at_owner=False)
        kept = self._disk.kept
        kept.seen = seen or kept.seen
        self._report("knows", address=kept.address, seen=kept.seen)

    def _take(self, entry: ReceivedEntry) -> bool:
        """Take an entry, unless a former life has; whether it is a message that is new."""
        kept = self._disk.kept
        if entry.loss is not None and entry.loss.began:
            kept.taken = 0  # its entries are counted anew
        if entry.number <= kept.taken:
            return False
        kept.taken = entry.number
        if told_by(entry):
            return False
        said = entry.message["data"]
        if said["version"] == kept.version:
            self._report("doubled", version=kept.version)
        kept.version, kept.address = said["version"], said["values"][ADDRESS]
        return True


async def watch_anew(
    clients: MeshClients, queue: str, keys: dict[str, list[str]], report: Report
) -> None:
    """Have a queue that tells of each loss after the leases that are reported."""
    begun = await clients.queues.begin(queue, watch=keys)
    report("asked anew", leases=begun.leases)


async def tried(work: Callable[[], Awaitable[None]]) -> None:
    """Do it until it is answered: all of this may be repeated."""
    while True:
        try:
            await work()
            return
        except (OutcomeUnknown, ServiceRefusal):
            await asyncio.sleep(AGAIN_SECONDS)


async def put(
    documents: DocumentsClient, key: str, section: str, value: str, report: Report
) -> bool:
    """Have a section be that; whether it was something else."""
    while True:
        version, there = await read(documents, key, section)
        if there == value:
            return False
        try:
            await documents.write_section(key, section, value, if_version=version)
        except ServiceRefusal as refused:
            if refused.status != OTHER_VERSION:
                raise
            report("overtaken", key=key)
        else:
            return True


async def read(
    documents: DocumentsClient, key: str, section: str, *, at_owner: bool = True
) -> tuple[str, str | None]:
    """The version of a document, and a section of it. Whoever asks because of a loss asks the
    owner; whoever looks again soon needs no more than a copy.
    """
    try:
        found = await documents.read(key, at_owner=at_owner)
    except ServiceRefusal as refused:
        if refused.status in GONE:
            return ABSENT, None
        raise
    return found.version, found.sections.get(section)


def activity_of(address: str) -> str:
    """Return the words for the user's activity when the home PC moves to an address."""
    return f"moved the home PC to {address}"


def told_by(entry: ReceivedEntry) -> str:
    """Return what an entry says was missed; empty for a message."""
    loss = entry.loss
    if loss is None:
        message = msgspec.convert(entry.message, dict[str, Any])
        return "" if "data" in message else "messages of the topic were dropped"
    told = []
    if loss.began:
        told.append("its queue begins anew, and what an earlier one had is gone")
    if loss.dropped:
        told.append(f"its queue was full, and {loss.dropped} entries were dropped")
    told += [
        f"what {pool!r} kept of {', '.join(keys)} is lost" for pool, keys in loss.pools.items()
    ]
    return "; ".join(told)
