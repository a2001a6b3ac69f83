"""The replacements that leave a rule of services out, for canaries."""

from typing import Any

import msgspec

from tenure.entities.entities import Entities
from tenure.entities.methods import reading
from tenure.services.documents.document import Condition, Document, DocumentWritten
from tenure.services.pubsub.topic import MessageSettled, Topic
from tenure.services.pubsub.topic_state import DeliveryOutcome, TopicState
from tenure.services.queues.entries import QueueLoss, SourcePlace
from tenure.services.queues.queue import Enqueued, Queue, SignedOn

_report, _sign_on, _put = TopicState.report, Queue.sign_on, Document._put  # noqa: SLF001
_publish = TopicState.publish
_enqueue, _begin, _queue_begins = Queue.enqueue, Queue._begin_if_new, Queue.on_activate  # noqa: SLF001


def nothing(*_: Any, **__: Any) -> None:
    """Do nothing."""


async def nothing_async(*_: Any, **__: Any) -> None:
    """Do nothing."""


async def looks_at_nothing(self: Queue) -> None:
    """Whatever is lost, the queue does not look."""


@reading
async def settled_at_once(self: Topic, number: int, seconds: float) -> MessageSettled:
    """All have it, it says, and it is sent meanwhile."""
    del number, seconds
    self.sender.kick(str(self.key))
    return MessageSettled(self.state.epoch, 0, 0)


def all_taken(self: TopicState, epoch: str, outcomes: list[DeliveryOutcome], now: float) -> None:
    """A target has taken everything, whatever it said."""
    _report(self, epoch, [DeliveryOutcome(each.id, self.number, False) for each in outcomes], now)  # noqa: FBT003


def always_the_same_epoch(self: Topic) -> str:
    """A topic has one epoch."""
    del self
    return "1.1.a"


async def without_losses(self: Queue, reader: str, acknowledge: int, most: int) -> SignedOn:
    """A loss is gone when somebody is about to read it."""
    found = await _sign_on(self, reader, acknowledge, most)
    self.state.entries = [each for each in self.state.entries if each.loss is None]
    return found


def begins_in_silence(self: Queue) -> bool:
    """A queue begins empty."""
    is_new = _begin(self)
    if is_new:
        began = QueueLoss(began=True)
        self.state.entries = [each for each in self.state.entries if each.loss != began]
    return is_new


async def without_sources(self: Queue) -> None:
    """How far sources are is gone where the queue has moved."""
    await _queue_begins(self)
    self.state.sources = {}


async def known_by_ids(
    self: Queue,
    message: bytes,
    id: str,  # noqa: A002
    place: SourcePlace | None = None,
) -> Enqueued:
    """A place is an id like any other."""
    name = id if place is None else f"{place.source} {place.epoch} {place.number}"
    return await _enqueue(self, message, name)


def acknowledged_and_kept(self: Queue, number: int) -> None:
    """Entries stay."""
    self.state.acknowledged = max(self.state.acknowledged, number)


def under_no_id(self: Entities[Any], id: str) -> Entities[Any]:  # noqa: A002
    """Each attempt is a call of its own."""
    del id
    return self


def under_no_name(self: TopicState, data: bytes, now: float, name: str = "") -> int:
    """Each attempt is a message of its own."""
    del name
    return _publish(self, data, now)


def version_stays(self: Document, sections: dict[str, bytes], ttl: float = 0.0) -> DocumentWritten:
    """An update keeps the version."""
    before = self.state.version
    written = _put(self, sections, ttl)
    self.state.version = before or written.version
    return msgspec.structs.replace(written, version=self.state.version)


def versions_begin_anew(
    self: Document, sections: dict[str, bytes], ttl: float = 0.0
) -> DocumentWritten:
    """Versions count the updates of the document."""
    before = self.state.version
    written = _put(self, sections, ttl)
    count = int(before.split(".")[1]) + 1 if before else 1
    self.state.version = f"1.{count}.a"
    return msgspec.structs.replace(written, version=self.state.version)


async def section_alone(
    self: Document, name: str, value: bytes, condition: Condition
) -> DocumentWritten:
    """A section is the whole document."""
    condition.check(self.state.version)
    return _put(self, {name: value}, 0.0)
