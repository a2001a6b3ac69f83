"""The users of services: tasks in each process that publish, serve devices and write documents."""

import asyncio
import json
from collections.abc import Awaitable
from typing import Any, TypeVar

from lab.worlds.services.device import Device, Publication
from lab.worlds.services.writers import ATTEMPTS, NOT_THERE, TTL, DocumentUsers
from tenure.errors import ServiceRefusal, TenureError
from tenure.services.pubsub.sender import RETRY_SECONDS
from tenure.services.pubsub.topic_state import short_name
from tenure.services.queues.queue import UNNAMED
from tenure.sim.kernel.checkers import Violation

T = TypeVar("T")
MOST = 20
SETTLED_SECONDS = 5.0
HELD_TERMS = 1.0
"""The time, in terms, after which another may attend to a device, though the former may not have
ended.
"""


class ServicesUsers:
    """The users in one process."""

    def __init__(self, process: Any) -> None:
        self._process = process
        self._site = process.site
        self._random = process.random
        self._count = 0
        self.documents = DocumentUsers(process, self._new_name)

    async def run(self) -> None:
        """Use the services until this is cancelled."""
        await asyncio.gather(
            self._often(self._publish),
            self._often(self._publish),
            self._often(self._attend_some),
            self._often(self.documents.use),
        )

    async def _often(self, what: Any) -> None:
        while True:
            pause = self._random.expovariate(1.0) * self._site.apart * self._site.term
            await asyncio.sleep(pause)
            while self._site.is_quiet:  # noqa: ASYNC110  # the world says when, and knows no loop
                await asyncio.sleep(self._site.term / 10)
            await what()

    def _new_name(self) -> str:
        self._count += 1
        return f"{self._process.slot}.{self._process.uid}-{self._count}"

    # --- publishing ---

    async def _publish(self) -> None:
        topic, payload = self._random.choice(self._site.topics), self._new_name()
        began_at = self._site.now
        subscribed = [(each, dict(each.subscribed)) for each in self._site.devices]
        for _ in range(ATTEMPTS):
            try:
                found = await self._accepted(topic, payload, began_at)
            except TenureError as error:
                self._site.count(f"publish: {type(error).__name__}")
                continue
            if found is None:
                self._site.count("publish: lost")
                continue
            self._site.count("published to all" if found.is_with_all else "published")
            if found.number:
                self._site.publications.add(found)
            for device, to in subscribed:
                device.published(found, to)
            return

    async def _accepted(self, topic: str, payload: str, began_at: int) -> Publication | None:
        """Publish as the service's operation does."""
        topics = self._process.topics
        data = json.dumps(payload).encode()
        accepted = await topics.once(payload)[topic].publish(data, payload)
        if accepted.number and self._random.random() < 0.1:  # a client may ask again
            again = await topics.once(payload)[topic].publish(data, payload)
            if again.epoch == accepted.epoch and again != accepted:
                raise Violation("counted once", f"{payload} is both {accepted} and {again}")
        waiting = refusing = 0
        if accepted.number:
            settled = await topics[topic].settled(accepted.number, SETTLED_SECONDS)
            if settled.epoch != accepted.epoch:
                return None
            waiting, refusing = settled.waiting, settled.refusing
        is_with_all = bool(accepted.number) and not waiting and not refusing
        return Publication(topic, accepted.epoch, accepted.number, payload, began_at, is_with_all)

    # --- devices ---

    async def _attend_some(self) -> None:
        device = self._random.choice(self._site.devices)
        held_ns = HELD_TERMS * self._site.timing.term_ns
        is_held = device.session is not None and self._site.now < device.session_at + held_ns
        if is_held and self._random.random() < 0.9:
            return
        session = device.attended()
        try:
            await self._attend(device, session)
        except ServiceRefusal as error:
            self._site.count(f"device: {error.error}")
        except TenureError as error:
            self._site.count(f"device: {type(error).__name__}")
        finally:
            if device.session is session:
                device.session = None

    async def _attend(self, device: Device, session: object) -> None:
        queue = self._process.queues[device.name]
        if not device.is_whole:
            await queue.begin(TTL, None)
            if device.session is session:
                device.is_whole = True
        for topic in self._site.topics:
            if topic not in device.subscribed:
                await self._subscribe(device, topic)
            elif device.refreshes and self._random.random() < 0.1:
                await self._refresh(device, topic)
        await self._drain(device, session, takes_over=self._random.random() < 0.3)

    async def _subscribe(self, device: Device, topic: str) -> None:
        asked_at, target = self._site.now, f"queue:{device.name}"
        try:
            await self._process.queues[device.name].watch({"topics": [topic]})
        except ServiceRefusal as error:
            if error.status in NOT_THERE:
                device.told_of_queue()
            raise
        found = await self._process.topics[topic].subscribe(target, TTL)
        device.subscribed_to(topic, found.epoch, asked_at)
        self._site.count("subscribed")

    async def _refresh(self, device: Device, topic: str) -> None:
        id_ = short_name(f"queue:{device.name}")
        asked_at = self._site.now
        try:
            found = await self._process.topics[topic].refresh(id_, TTL)
        except ServiceRefusal as error:
            if error.status in NOT_THERE:
                device.not_subscribed(topic)
            return
        device.subscribed_to(topic, found.epoch, asked_at)

    async def _drain(self, device: Device, session: object, *, takes_over: bool) -> int:
        queue = self._process.queues[device.name]
        asked_at = self._site.now
        reader = UNNAMED if takes_over else device.reader
        try:
            signed = await queue.sign_on(reader, 0, MOST)
        except ServiceRefusal as error:
            if error.error != "taken_over":
                raise
            signed = await queue.sign_on("", 0, MOST)
        if signed.is_named_anew:
            signed = await queue.sign_on(signed.reader, 0, MOST)
        if device.session is not session:
            return 0
        if takes_over and signed.reader == device.reader:
            raise Violation("one reader", f"{device.name}: two readers are {signed.reader}")
        device.signed_on(signed.reader, asked_at)
        if self._random.random() < 0.2 and not self._site.is_quiet:
            await asyncio.sleep(self._random.random() * self._site.term)  # another may take over
        if not signed.upto:
            return 0
        asked_at = self._site.now
        entries = await queue.entries_to(signed.reader, signed.upto)
        device.check_served(signed.reader, asked_at)
        if device.session is not session:
            return 0
        for each in entries:
            what = json.loads(each.message) if each.message else None
            device.received(signed.reader.partition(".")[2], each.number, what, each.loss)
        self._site.counts["entries"] += len(entries)
        if entries and self._random.random() < 0.8:
            asked_at = self._site.now
            await queue.acknowledge(signed.reader, entries[-1].number)
            device.check_served(signed.reader, asked_at)
            if device.session is session:
                device.acknowledged = max(device.acknowledged, entries[-1].number)
        return len(entries)

    async def drain_all(self, device: Device) -> None:
        """Read a device's queue until it is empty, when all is well."""
        session = device.attended()
        for topic in self._site.topics:  # who uses a topic has it sent what waits
            await self._again(self._process.topics[topic].figures())
        await asyncio.sleep(RETRY_SECONDS + 5.0)
        while True:
            await self._again(self._process.queues[device.name].begin(TTL, None))
            if not await self._again(self._drain(device, session, takes_over=True)):
                return

    async def _again(self, what: Awaitable[T]) -> T | bool:
        try:
            return await what
        except TenureError as error:
            self._site.count(f"at the end: {type(error).__name__}")
            await asyncio.sleep(1)
            return True
