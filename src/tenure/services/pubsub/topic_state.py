"""The state of one topic, and the rules by which it changes.

Every message of a topic has a number, one more than the one before, and each subscription has the
number up to which its target has taken them. The messages between are the log, which is kept once
for all targets. So a target that takes nothing for long costs no memory of its own: when the log
needs the room, messages that the target has not taken are dropped, and the numbers show what is
missing. This gap is the first thing that the target gets afterwards.

Numbers count within an epoch. A topic whose state is lost begins another epoch, and a subscriber
that sees an unknown epoch has missed something, and cannot know what.

A subscription is named after its topic and its target, and only its time to live ever changes. So a
subscription that was kept too long sends messages too many, but never sends one to a wrong place.
"""

from hashlib import blake2b
from itertools import islice

import msgspec

from tenure.errors import ServiceRefusal
from tenure.services.limits import NONE_REFUSED, TOO_LARGE, TOO_MANY, ServiceLimit

SUBSCRIBERS = ServiceLimit(
    "subscribers", 1000, TOO_MANY, "a topic and its subscriptions are one entity, of 1 MiB at most"
)
TARGET_BYTES = ServiceLimit(
    "target_bytes", 500, TOO_LARGE, "a thousand of them are kept in one entity"
)
MESSAGE_BYTES = ServiceLimit(
    "message_bytes", 1 << 16, TOO_LARGE, "several wait together for targets, in one entity"
)
LOG_BYTES = ServiceLimit(
    "log_bytes", 1 << 18, TOO_MANY, "publishers wait for targets that take, and not for others"
)
LOG_MESSAGES = ServiceLimit("log_messages", 256, TOO_MANY, LOG_BYTES.why)
IDS = ServiceLimit(
    "ids", 1000, NONE_REFUSED, "a repeat of one of the last so many messages is known"
)
LIMITS = (SUBSCRIBERS, TARGET_BYTES, MESSAGE_BYTES, LOG_BYTES, LOG_MESSAGES, IDS)
LOG_SECONDS = 600.0
"""How long messages are kept for targets that refuse them."""
GONE_SECONDS = 3600.0
MOST_GONE = 100
"""How long, and of how many subscriptions, it is remembered when they expired."""
STEP = 100
"""How many subscriptions are collected at a time."""


class TopicMessage(msgspec.Struct, frozen=True, array_like=True):
    number: int
    at: float
    data: bytes
    """The message as JSON, as it was published."""


class Subscription(msgspec.Struct, array_like=True):
    """A target of the messages of a topic."""

    target: str
    """`queue:NAME`, or a URL."""
    expires: float
    sent: int
    """The number up to which the target has taken everything, or was told that it missed some."""
    refusals: int = 0
    """How often the target has refused in a row. The sender decides when to try again, by a clock
    that nobody sets.
    """


class Delivery(msgspec.Struct, frozen=True, array_like=True):
    """The messages to send to one target, in order."""

    id: str
    target: str
    epoch: str
    missed: tuple[int, int] | None
    """The first and the last number of a gap, which is sent before the messages."""
    messages: list[TopicMessage]


class DeliveryOutcome(msgspec.Struct, frozen=True, array_like=True):
    id: str
    taken: int
    """The number up to which the target has taken everything."""
    is_refused: bool


class TopicState(msgspec.Struct):
    epoch: str = ""
    """Empty while the topic has no subscription, and nothing is kept of it."""
    number: int = 0
    """The number of the last message."""
    log: list[TopicMessage] = []
    subscriptions: dict[str, Subscription] = {}
    gone: dict[str, float] = {}
    ids: dict[str, int] = {}
    """The numbers of messages by short names of their ids, the oldest first."""
    counted: float = 0.0
    """When a subscription last changed, by the time by which they expire."""

    # --- subscriptions ---

    def subscribe(self, target: str, now: float, seconds: float, epoch: str) -> str:
        """Make a subscription that lasts that long, and return its id; an existing one keeps its
        id. It gets what is published after this. Raises ServiceRefusal if there are too many.
        """
        id_ = short_name(target)
        there = self.subscriptions.get(id_)
        if there is not None:
            there.expires = max(there.expires, now + seconds)
            return id_
        SUBSCRIBERS.check(len(self.subscriptions) + 1)
        self.epoch = self.epoch or epoch
        self.subscriptions[id_] = Subscription(target, now + seconds, self.number)
        self.gone.pop(id_, None)
        return id_

    def refresh(self, id_: str, now: float, seconds: float) -> Subscription:
        """Let a subscription last that long from now on. Raises ServiceRefusal if it is gone."""
        there = self.subscriptions.get(id_)
        if there is None:
            raise self.without(id_)
        there.expires = max(there.expires, now + seconds)
        return there

    def without(self, id_: str) -> ServiceRefusal:
        """The refusal that there is no such subscription."""
        at = self.gone.get(id_)
        if at is None:
            return ServiceRefusal(404, "unknown", "the topic has no such subscription")
        return ServiceRefusal(410, "gone", "nobody has refreshed it in time", gone_at=at)

    def restore(self, remembered: dict[str, float], now: float, epoch: str) -> None:
        """Restore subscriptions of a topic whose state is lost, by target, as the process remembers
        them that made them: see `topic`.
        """
        for target, expires in remembered.items():
            if expires > now:
                self.subscribe(target, now, expires - now, epoch)

    def count_anew(self, now: float) -> None:
        """Count the times of subscriptions anew: nobody knows how long the topic had no owner, so
        each keeps the time that it had left.
        """
        for each in self.subscriptions.values():
            each.expires += max(now - self.counted, 0.0)
        self.counted = now

    def unsubscribe(self, id_: str, now: float) -> bool:
        """End a subscription; return whether there was one."""
        there = self.subscriptions.pop(id_, None)
        self._trim(now)
        return there is not None

    def collect(self, now: float) -> int:
        """Drop what has expired, some at a time; return how many subscriptions."""
        ended = (id_ for id_, it in self.subscriptions.items() if it.expires <= now)
        expired = list(islice(ended, STEP))
        for id_ in expired:
            self.gone[id_] = self.subscriptions.pop(id_).expires
        old = [id_ for id_, at in self.gone.items() if at + GONE_SECONDS <= now]
        for id_ in [*old, *list(self.gone)[: max(len(self.gone) - MOST_GONE - len(old), 0)]]:
            self.gone.pop(id_, None)
        self._trim(now)
        return len(expired)

    def next_expiry(self) -> float | None:
        """When `collect` has something to do."""
        ends = [each.expires for each in self.subscriptions.values()]
        return min([*ends, *(at + GONE_SECONDS for at in self.gone.values())], default=None)

    # --- messages ---

    def publish(self, data: bytes, now: float, name: str = "") -> int:
        """Return the number of the message, which it already has if `name` is known. Raises
        ServiceRefusal if targets that take messages are behind.

        A topic without subscriptions keeps nothing: its messages have no numbers, because nobody
        could see a gap in them.
        """
        if not self.subscriptions or name in self.ids:
            return self.ids.get(name, 0)
        size = len(data) + sum(len(each.data) for each in self.log)
        while self.log and (size > LOG_BYTES.most or len(self.log) >= LOG_MESSAGES.most):
            if any(it.sent < self.log[0].number for it in self._taking()):
                LOG_BYTES.check(size)
                raise LOG_MESSAGES.exceeded(len(self.log) + 1)
            size -= len(self.log.pop(0).data)
        self.number += 1
        self.log.append(TopicMessage(self.number, now, data))
        if name:
            self.ids[name] = self.number
            while len(self.ids) > IDS.most:
                del self.ids[next(iter(self.ids))]
        return self.number

    def _taking(self) -> list[Subscription]:
        return [each for each in self.subscriptions.values() if not each.refusals]

    def due(self, now: float, busy: set[str]) -> list[Delivery]:
        """The deliveries to make now, except to targets in `busy`."""
        return [
            self._delivery(id_, it)
            for id_, it in self.subscriptions.items()
            if it.sent < self.number and now < it.expires and id_ not in busy
        ]

    def _delivery(self, id_: str, it: Subscription) -> Delivery:
        messages = [each for each in self.log if each.number > it.sent]
        last_missed = messages[0].number - 1 if messages else self.number
        missed = (it.sent + 1, last_missed) if it.sent < last_missed else None
        return Delivery(id_, it.target, self.epoch, missed, messages)

    def report(self, epoch: str, outcomes: list[DeliveryOutcome], now: float) -> None:
        """These are the outcomes of deliveries."""
        for each in outcomes if epoch == self.epoch else ():
            there = self.subscriptions.get(each.id)
            if there is None:
                continue
            if each.taken > there.sent:
                there.sent = min(each.taken, self.number)
                there.refusals = 0
            there.refusals = there.refusals + 1 if each.is_refused else 0
        self._trim(now)

    def is_behind(self) -> bool:
        """Whether some target has not taken everything yet."""
        return any(it.sent < self.number for it in self.subscriptions.values())

    def behind(self, number: int) -> tuple[int, int]:
        """How many targets have not taken this message: of those that take messages, and of those
        that refuse.
        """
        late = [it for it in self.subscriptions.values() if it.sent < number]
        refusing = sum(1 for it in late if it.refusals)
        return len(late) - refusing, refusing

    def settled_number(self) -> int:
        """The number up to which every target that does not refuse has taken everything."""
        return min((it.sent for it in self._taking()), default=self.number)

    def _trim(self, now: float) -> None:
        """Drop messages for which nobody waits, or that waited too long."""
        if not (self.subscriptions or self.gone):
            # The next subscription begins an epoch.
            self.epoch, self.number, self.log, self.ids = "", 0, [], {}
            return
        all_have = min((it.sent for it in self.subscriptions.values()), default=self.number)
        taking_have = min((it.sent for it in self._taking()), default=self.number)
        self.log = [
            each
            for each in self.log
            if each.number > all_have and (each.number > taking_have or each.at + LOG_SECONDS > now)
        ]


def short_name(text: str) -> str:
    """The short name of a target, or of a message's id, which is the same everywhere and always."""
    return blake2b(text.encode(), digest_size=9).hexdigest()
