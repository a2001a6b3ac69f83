"""The entries of a queue: messages, and losses in place of messages that were lost."""

from hashlib import blake2b
from typing import Annotated

import msgspec

from tenure.services.limits import NONE_REFUSED, ServiceLimit, ShortText
from tenure.services.lives import came_before, journal_of

ENTRIES = ServiceLimit(
    "entries", 1000, NONE_REFUSED, "if a reader is away for long, its oldest entries go"
)
QUEUE_BYTES = ServiceLimit(
    "queue_bytes", 512 * 1024, NONE_REFUSED, "a queue moves as one, and one key may keep 1 MiB"
)
OF_ENTRY_BYTES = 64
"""The bytes that an entry takes beside its message."""


FORMER = 4
MOST_LOST = 256
"""How many keys one loss names: as many as a queue watches. Of more, it says that all may be
lost.
"""


class QueueLoss(msgspec.Struct, frozen=True, omit_defaults=True):
    """A loss. Its reader must ask again for everything that it relies on."""

    began: bool = False
    """The queue begins here: everything in an earlier one is gone."""
    dropped: int = 0
    """How many of the oldest entries were dropped because the queue was full."""
    pools: dict[str, tuple[str, ...]] = {}
    """Keys of other pools whose state was lost, by pool."""

    def and_also(self, other: "QueueLoss") -> "QueueLoss":
        """The loss that combines both."""
        pools = dict(self.pools)
        for pool, keys in other.pools.items():
            pools[pool] = tuple(dict.fromkeys((*pools.get(pool, ()), *keys)))
        began, dropped = self.began or other.began, self.dropped + other.dropped
        if sum(map(len, pools.values())) > MOST_LOST:
            return QueueLoss(began=True, dropped=dropped)
        return QueueLoss(began, dropped, pools)


class SourcePlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a message stands among those of one source, such as a topic.

    Messages of a source may be late: another process may have taken over the source meanwhile, and
    this queue may have begun again, without any ids. So the place travels with the message.
    """

    source: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
    epoch: Annotated[
        str, msgspec.Meta(max_length=74, pattern=r"^[0-9]{1,20}\.[0-9]{1,20}\.[0-9a-f]{1,32}$")
    ]
    """The epoch, named as in `lives`, so that the later of two is known."""
    number: Annotated[int, msgspec.Meta(ge=1, le=1 << 62)]
    """The number within the epoch; each is above the one before."""

    @property
    def name(self) -> str:
        """The short name of the source, which queues keep."""
        return blake2b(self.source.encode(), digest_size=9).hexdigest()


class SourceReached(msgspec.Struct, frozen=True, array_like=True):
    """The progress of a source in a queue."""

    epoch: str
    number: int
    entry: int
    """The number that its newest message has in the queue."""
    former: tuple[str, ...] = ()
    """The last journals that numbered its epochs before: where managers lose their journal, the
    names of epochs do not say which is the later.
    """

    def after(self, place: SourcePlace, entry: int) -> "SourceReached":
        """When this message was put in."""
        former, journal = self.former, journal_of(self.epoch)
        if self.entry and journal != journal_of(place.epoch):
            former = (*former, journal)[-FORMER:]
        return SourceReached(place.epoch, place.number, entry, former)

    def is_past(self, epoch: str) -> bool:
        """Whether the source has begun another epoch since."""
        return came_before(epoch, self.epoch) or journal_of(epoch) in self.former


class EntryPut(msgspec.Struct, forbid_unknown_fields=True):
    """A message for one of several queues."""

    queue: Annotated[ShortText, msgspec.Meta(min_length=1)]
    message: msgspec.Raw
    place: SourcePlace


NOTHING_REACHED = SourceReached("0.0.0", 0, 0)


class QueueEntry(msgspec.Struct, frozen=True):
    """A message as JSON, or a loss."""

    number: int
    at: float
    message: bytes = b""
    loss: QueueLoss | None = None

    @property
    def size(self) -> int:
        """The size in bytes."""
        pools = {} if self.loss is None else self.loss.pools
        keys = sum(len(key) for those in pools.values() for key in those)
        return len(self.message) + keys + OF_ENTRY_BYTES


class EntryShown(msgspec.Struct, omit_defaults=True):
    """An entry, as readers see it: it has a message or a loss."""

    number: int
    at: float
    message: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    loss: QueueLoss | None = None

    @classmethod
    def of(cls, entry: QueueEntry) -> "EntryShown":
        """The entry, as its reader gets it."""
        if entry.loss is not None:
            return cls(entry.number, entry.at, loss=entry.loss)
        return cls(entry.number, entry.at, msgspec.Raw(entry.message))


def with_room(entries: list[QueueEntry]) -> list[QueueEntry]:
    """The entries; if there are too many, a loss takes the place of the oldest."""
    size, dropped = sum(each.size for each in entries), 0
    loss: QueueEntry | None = None
    while len(entries) - dropped + bool(loss) > ENTRIES.most or size > QUEUE_BYTES.most:
        oldest = entries[dropped]
        lost = oldest.loss or QueueLoss(dropped=1)
        if loss is not None and loss.loss is not None:
            lost = loss.loss.and_also(lost)
            size -= loss.size
        loss = QueueEntry(oldest.number, oldest.at, loss=lost)
        size += loss.size - oldest.size
        dropped += 1
    return entries if loss is None else [loss, *entries[dropped:]]
