"""The two PCs of the scenario, and the frontend through which they reach the services.

Neither counts on anything but what the services promise: what was accepted arrives, or a loss is
told. Whoever is told of one asks anew for what it relies on, and publishes its own anew.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self, TypeAlias

import msgspec

from lab.demo.mesh.live_mesh import LiveMesh
from tenure.errors import OutcomeUnknown, ServiceRefusal
from tenure.services.documents.client import DocumentsClient
from tenure.services.pubsub.client import PubSubClient
from tenure.services.queues.client import QueuesClient, ReceivedEntry

HOME, WORK, USER = "home-pc", "work-pc", "ann"
HOME_PC, WORK_PC = "the home PC", "the work PC"
ADDRESS = "address"
POLL_SECONDS = 2.0
DEADLINE_SECONDS = 60.0
GONE = (404, 410)
HOME_RELIES_ON = {"devices": [HOME], "activities": [USER]}
Tell: TypeAlias = Callable[[str, list[ReceivedEntry]], Awaitable[None]]
"""Is told who was told of losses, by which entries, and has asked to be told of later ones."""


class MeshFrontend:
    """The work of a web server that stands between a device and the services."""

    def __init__(self, mesh: LiveMesh) -> None:
        def client(kind: type[Any], name: Any) -> Any:  # of that kind
            return kind(mesh.urls(name), deadline=DEADLINE_SECONDS)

        self.documents: DocumentsClient = client(DocumentsClient, "devices")
        self.activities: DocumentsClient = client(DocumentsClient, "activities")
        self.topics: PubSubClient = client(PubSubClient, "topics")
        self.queues: QueuesClient = client(QueuesClient, "queues")
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        for each in (self.documents, self.activities, self.topics, self.queues):
            await self._stack.enter_async_context(each)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    async def put_address(self, address: str) -> None:
        """Say where the home PC is."""
        await self.documents.write(HOME, {ADDRESS: address})

    async def put_activity(self, what: str) -> None:
        """Say what the user has done with the home PC."""
        await self.activities.write_section(USER, HOME, what)

    async def publish(self, address: str) -> None:
        """Tell whoever has subscribed. Accepted, it is in their queues, or they are told."""
        await self.topics.publish(HOME, {ADDRESS: address})

    async def subscribe(self) -> None:
        """Have the work PC's queue told of the home PC's address."""
        await self.topics.subscribe(HOME, f"queue:{WORK}")

    async def address(self) -> str | None:
        """Return where the home PC is; None if that was lost and not yet published again."""
        return await _read(self.documents, HOME, ADDRESS)

    async def activity(self) -> str | None:
        """Return what the user has done with the home PC; None if that was lost."""
        return await _read(self.activities, USER, HOME)


async def _read(documents: DocumentsClient, key: str, section: str) -> str | None:
    try:
        found: str = await documents.read_section(key, section)
    except ServiceRefusal as error:
        if error.status not in GONE:
            raise
        return None
    return found


def activity_of(address: str) -> str:
    """Return the words for the user's activity when the home PC moves to an address."""
    return f"moved the home PC to {address}"


class HomeDevice:
    """The home PC. It is always online, and publishes its address again whenever that was lost."""

    def __init__(self, frontend: MeshFrontend, tell: Tell) -> None:
        self.present = ""
        self.republished = 0
        self._frontend = frontend
        self._tell = tell

    async def watch(self) -> None:
        """Be told of losses, for ever."""
        frontend = self._frontend
        reader = frontend.queues.reader(HOME)
        while True:
            try:
                entries = await reader.next(wait=POLL_SECONDS)
                if told := [each for each in entries if told_by(each)]:
                    await frontend.queues.begin(HOME, watch=HOME_RELIES_ON)
                    await self._tell(HOME_PC, told)
                    if self.present:
                        self.republished += 1
                        await frontend.put_address(self.present)
                        await frontend.put_activity(activity_of(self.present))
                        await frontend.publish(self.present)
                if entries:
                    await reader.acknowledge(entries[-1].number)
            except (OutcomeUnknown, ServiceRefusal):
                await asyncio.sleep(POLL_SECONDS / 10)


class WorkDevice:
    """The work PC: it is offline, comes online, drains its queue, and connects."""

    def __init__(self, frontend: MeshFrontend, tell: Tell) -> None:
        self.believed: str | None = None
        self.seen: str | None = None
        self._frontend = frontend
        self._tell = tell

    async def begin(self) -> None:
        """Subscribe, and begin with an empty queue."""
        await self._ask_again()
        await self.drain()

    async def _ask_again(self) -> None:
        """Something may have been missed: subscribe, and look where the home PC is."""
        frontend = self._frontend
        await frontend.queues.begin(WORK, watch=HOME_RELIES_ON | {"topics": [HOME]})
        await frontend.subscribe()
        self.believed = await frontend.address() or self.believed
        await self.look()

    async def look(self) -> None:
        """See what the user has done."""
        self.seen = await self._frontend.activity() or self.seen

    async def drain(self, *, wait: float = 0.0) -> tuple[int, int]:
        """Read what is there; how many messages there were, and how many losses or gaps."""
        reader = self._frontend.queues.reader(WORK)
        messages = losses = 0
        while entries := await reader.next(wait=wait):
            told = [each for each in entries if told_by(each)]
            for each in entries:
                if not told_by(each):
                    self.believed = each.message["data"][ADDRESS]
            messages, losses = messages + len(entries) - len(told), losses + len(told)
            if told:
                await self._ask_again()
                await self._tell(WORK_PC, told)
            await reader.acknowledge(entries[-1].number)
        return messages, losses


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
