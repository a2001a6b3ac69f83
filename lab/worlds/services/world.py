"""The world of services: programs with all three in them, and their users."""

import asyncio
from contextlib import suppress
from typing import Any, ClassVar

import msgspec

from lab.worlds.entity.checkers import ToldLoss, check_told
from lab.worlds.entity.store import SimDatabase
from lab.worlds.entity.used_world import UsedProcess, UsedWorld
from lab.worlds.services.device import Device
from lab.worlds.services.document_history import DocumentHistory
from lab.worlds.services.faults import (
    FAULTS,
    QUEUE_ANSWER_LOST,
    QUEUE_LATE,
    QUEUE_REFUSES,
    QUEUE_SLOW,
)
from lab.worlds.services.ledgers import PublicationLedger
from lab.worlds.services.trial import ServicesTrial
from lab.worlds.services.users import ServicesUsers
from tenure.base.instants import SECOND_NS
from tenure.base.ranges import KeyRange
from tenure.entities.entities import Entities
from tenure.errors import ServiceRefusal, TenureError
from tenure.services.documents.document import Document
from tenure.services.expiring import of_this_process
from tenure.services.pubsub.queue_writer import place_of
from tenure.services.pubsub.sender import FanOut
from tenure.services.pubsub.service import bound_topic
from tenure.services.pubsub.targets import MessageTargets, TopicEvent
from tenure.services.pubsub.topic import RememberedTopics
from tenure.services.queues.queue import Queue
from tenure.services.queues.watched_pools import WatchedPools
from tenure.sim.kernel.checkers import Violation
from tenure.sim.kernel.faults import FaultTable

TOPICS, QUEUES, DOCUMENTS = "topics", "queues", "documents"
QUIET_SECONDS = 150.0
"""More than the longest pause before a topic tries a target again."""
LOOK_SECONDS = 120.0


class ServicesProcess(UsedProcess):
    """One life of a program with all three services."""

    topics: Entities[Any]
    queues: Entities[Any]
    documents: Entities[Any]


class SimQueueWriter:
    """Queues in the same process, or in another: see `QueueWriter`. Some do not answer."""

    def __init__(self, process: ServicesProcess) -> None:
        self._process = process
        self._late: set[asyncio.Future[None]] = set()

    def owner_of(self, queue: str) -> str:
        """Each is one of its own."""
        return queue

    async def put(self, queue: str, event: TopicEvent) -> None:
        """Put it in, with what may go wrong over HTTP."""
        faults = self._process.site.faults
        if faults.strikes(QUEUE_LATE):
            late = asyncio.ensure_future(self._put_late(queue, event))
            self._late.add(late)
            late.add_done_callback(self._late.discard)
            raise ServiceRefusal(503, "refused", "nobody has answered, and it is on its way")
        if faults.strikes(QUEUE_SLOW):
            await asyncio.sleep(faults.span(0.01, 0.3) / SECOND_NS)
        if faults.strikes(QUEUE_REFUSES):
            raise ServiceRefusal(503, "refused", "it has taken nothing")
        await self._enqueue(queue, event)
        if faults.strikes(QUEUE_ANSWER_LOST):
            raise ServiceRefusal(503, "refused", "it has taken it, and nobody knows")

    async def _enqueue(self, queue: str, event: TopicEvent) -> None:
        place = place_of(event, TOPICS)
        await self._process.queues[queue].enqueue(msgspec.json.encode(event), "", place)

    async def _put_late(self, queue: str, event: TopicEvent) -> None:
        site = self._process.site
        await asyncio.sleep(site.faults.span(0.01, 2.0) / SECOND_NS)
        with suppress(TenureError):
            await self._enqueue(queue, event)

    async def rely(self, queue: str, topic: str) -> None:
        await self._process.queues[queue].watch({TOPICS: [topic]})


async def program(process: Any) -> None:
    """The program of each process."""
    site: ServicesWorld = process.site
    left = asyncio.Event()
    process.leave = left.set
    fan_out = FanOut(f"{process.slot}.{process.uid}")
    fan_out.targets = MessageTargets(SimQueueWriter(process), None)

    async def look(queue: str) -> None:
        await process.queues[queue].look_for_losses()

    async def on_loss(lost: tuple[KeyRange, ...]) -> None:
        process.told.tellings.append(ToldLoss(site.now, lost))

    options: dict[str, Any] = {
        "idle": site.term,
        "drain": site.term,
        "watchdog": site.term,  # a simulated loop never hangs by itself, and each probe costs
        "enter_timeout": 10 * site.term,
    }
    pools = WatchedPools(None, (TOPICS,), look)
    process.topics = Entities(bound_topic(fan_out, RememberedTopics()), TOPICS, **options)
    fan_out.topics = process.topics
    process.queues = Entities(of_this_process(Queue, pools=pools, usual_ttl=1e6), QUEUES, **options)
    store = "sqlite:simulated" if site.database else None
    process.documents = Entities(
        of_this_process(Document), DOCUMENTS, store=store, on_loss=on_loss, **options
    )
    if site.database is not None:
        process.documents._settings.make_store = site.opener(process)  # noqa: SLF001  # for a URL
    async with process.topics, pools.entered(), process.queues, process.documents:
        await process.serve(ServicesUsers(process), left)
        await fan_out.close()


class ServicesWorld(UsedWorld):
    """Everything there is in one run."""

    faults_there_are: ClassVar[FaultTable] = FAULTS
    process_type: ClassVar[type[UsedProcess]] = ServicesProcess
    trial: ServicesTrial

    def __init__(self, trial: ServicesTrial) -> None:
        super().__init__(trial, program)
        self.apart = trial.apart or self.random.choice((0.05, 0.2, 1.0))
        is_durable = self.random.random() < 0.5 if trial.stored is None else trial.stored
        self.database = SimDatabase() if is_durable else None
        self.topics = [f"topic-{i}" for i in range(trial.topics)]
        self.devices = [
            Device(f"device-{i}", lambda: self.now, refreshes=self.random.random() < 0.3)
            for i in range(trial.devices)
        ]
        self.documents = [f"document-{i}" for i in range(trial.documents)]
        self.histories = {
            key: DocumentHistory(key, is_durable=is_durable) for key in self.documents
        }
        self.publications = PublicationLedger()

    def when_well(self, left_ns: int) -> None:
        """Let users ask no longer: messages under way arrive, and every device checks its state."""
        super().when_well(left_ns)
        self.is_quiet = True
        self.run_until(self.now + round(QUIET_SECONDS * SECOND_NS))
        there = self.there()
        users = there[0].users
        last = [there[0].loop.create_task(users.drain_all(each)) for each in self.devices]
        looks = [
            each.loop.create_task(each.users.documents.read(key))
            for each in there
            for key in self.documents
        ]
        self.run_until(self.now + round(LOOK_SECONDS * SECOND_NS))
        for task in (*last, *looks):
            if not task.done():
                raise Violation("L1", "the services do not answer when all is well")
            task.result()
        for device in self.devices:
            device.check_owed()
        for history in self.histories.values():
            history.check_sections()
            check_told([each.told for each in there], history.losses)
        self.is_quiet = False
