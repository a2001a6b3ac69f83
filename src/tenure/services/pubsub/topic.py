"""A topic: an entity, so each topic has a key.

**What is checked, and what is not.** To subscribe, to refresh and to unsubscribe are turns of an
entity: they happen while this process owns the topic, on the state that its last owner left, or not
at all. To publish is a turn as well, so it asks whether this is the owner. It does not ask whether
the subscriptions that it finds are of this lease. When a lease is interrupted, what was kept under
it no longer counts, and a topic would begin without any subscription, until every subscriber has
come back. But a subscription never changes. So a topic that begins again takes those that this
process remembers. A subscription that was ended elsewhere meanwhile costs messages too many, until
its time to live is over. A subscription that was made elsewhere meanwhile is missing, but its
subscriber was told that the topic is lost (PRS 3.1).

The topic then begins another epoch: a subscriber that gets a message of it knows that messages of
the former epoch may be missing.
"""

from collections import OrderedDict
from typing import ClassVar, Protocol

import msgspec

from tenure import Alarm, Entity, reading
from tenure.services.lives import new_name
from tenure.services.pubsub.topic_state import Delivery, DeliveryOutcome, TopicState, short_name

DELIVER, EXPIRE = "deliver", "expire"
AGAIN_SECONDS = 5.0
"""How often the owner of a topic looks for messages that are still to be sent: the process that was
sending them may be gone.
"""
MOST_REMEMBERED = 100_000
"""How many subscriptions a process remembers, of topics that it has or has had."""


class Subscribed(msgspec.Struct, frozen=True):
    """A subscription, as its subscriber sees it."""

    id: str
    epoch: str
    number: int
    """Messages after this number are for it."""
    expires: float
    """The end of the subscription, in seconds since 1970."""


class MessageAccepted(msgspec.Struct, frozen=True):
    """A message that a topic has taken."""

    epoch: str
    number: int
    subscribers: int


class MessageSettled(msgspec.Struct, frozen=True):
    """How many targets of a topic have taken a message."""

    epoch: str
    waiting: int
    """Targets that may still take it."""
    refusing: int
    """Targets that refuse, and take it later, or learn of a gap."""


class TopicFigures(msgspec.Struct, frozen=True):
    epoch: str
    number: int
    subscribers: int
    refusing: int
    waiting: int
    """Messages that some target has not taken."""
    expired: int
    """Subscriptions that nobody has refreshed, and that went within the last hour: 100 at most."""


class RememberedTopics:
    """The subscriptions that this process has made, or was handed, even if their leases have ended.
    It may forget the oldest: then the effect is the same as if another process owned the topic.
    """

    def __init__(self, most: int = MOST_REMEMBERED) -> None:
        self._most = most
        self._topics: OrderedDict[str, dict[str, float]] = OrderedDict()
        self._count = 0

    def note(self, topic: str, state: TopicState) -> None:
        """This is what the topic has."""
        self._count -= len(self._topics.pop(topic, ()))
        if state.subscriptions:
            found = {it.target: it.expires for it in state.subscriptions.values()}
            self._topics[topic] = found
            self._count += len(found)
        while self._count > self._most and self._topics:
            self._count -= len(self._topics.popitem(last=False)[1])

    def of(self, topic: str) -> dict[str, float]:
        """The targets of a topic, and when each expires."""
        return self._topics.get(topic, {})


class Sender(Protocol):
    """The sender of the messages of the topics of a process."""

    name: str
    """The name of the process, unlike any other."""

    def kick(self, topic: str) -> None:
        """Look whether there is something to send."""
        ...

    async def settle(self, topic: str, number: int, seconds: float) -> None:
        """Send, and return when all targets that take messages have taken this one, or after that
        long.
        """
        ...


class Topic(Entity[TopicState]):
    """One topic. Each process has a subclass, with what it shares with all its topics."""

    remembered: ClassVar[RememberedTopics]
    sender: ClassVar["Sender"]

    @property
    def _name(self) -> str:
        return str(self.key)

    def _epoch(self) -> str:
        return new_name(self.lease)

    def _changed(self) -> None:
        """Subscriptions have changed, or when they expire."""
        self.remembered.note(self._name, self.state)
        at, now = self.state.next_expiry(), self.fair_now()
        self.state.counted = now
        if at is not None:
            self.set_alarm(EXPIRE, self.now() + max(at - now, 1.0))
        elif self.state.epoch:
            self.clear_alarm(EXPIRE)
        else:
            self.forget()  # nothing is left of it

    async def on_activate(self) -> None:
        """Take what this process remembers, if nothing was handed over."""
        now = self.fair_now()
        if self.state.epoch:
            if self.was_interrupted:
                self.state.count_anew(now)
            self.remembered.note(self._name, self.state)
            if self.state.is_behind():
                self.sender.kick(self._name)
        elif remembered := self.remembered.of(self._name):
            self.state.restore(remembered, now, self._epoch())
            self._changed()

    # --- subscriptions ---

    async def subscribe(self, target: str, seconds: float) -> Subscribed:
        """Have messages sent to a target for that long. Raises ServiceRefusal if there are too many
        targets.
        """
        id_ = self.state.subscribe(target, self.fair_now(), seconds, self._epoch())
        return self._subscribed(id_)

    async def refresh(self, id_: str, seconds: float) -> Subscribed:
        """Have them sent for that long from now on; return how far the topic is. Raises
        ServiceRefusal if the subscription has gone.
        """
        self.state.collect(self.fair_now())
        self.state.refresh(id_, self.fair_now(), seconds)
        return self._subscribed(id_)

    def _subscribed(self, id_: str) -> Subscribed:
        self._changed()
        state = self.state
        return Subscribed(id_, state.epoch, state.number, state.subscriptions[id_].expires)

    async def unsubscribe(self, id_: str) -> None:
        """Stop sending to a target. Messages on their way may still arrive. Raises ServiceRefusal
        if there is no such subscription.
        """
        if not self.state.unsubscribe(id_, self.now()):
            raise self.state.without(id_)
        self._changed()

    # --- messages ---

    async def publish(self, data: bytes, id: str = "") -> MessageAccepted:  # noqa: A002  # what it is
        """Give a message its number, once for each id. `settled` sends it. Raises ServiceRefusal if
        too many messages wait for targets that take them.
        """
        state = self.state
        number = state.publish(data, self.now(), short_name(id) if id else "")
        if number and DELIVER not in self.alarms:
            self.set_alarm(DELIVER, self.now() + AGAIN_SECONDS)
        return MessageAccepted(state.epoch, number, len(state.subscriptions))

    @reading
    async def settled(self, number: int, seconds: float) -> MessageSettled:
        """Have it sent, and say how many have not taken it when that is done, or after that
        long.
        """
        await self.sender.settle(self._name, number, seconds)
        return MessageSettled(self.state.epoch, *self.state.behind(number))

    @reading
    async def due(self, sender: str, busy: list[str]) -> list[Delivery] | None:
        """The deliveries to make now; None if the sender is in another process."""
        if sender != self.sender.name:
            return None
        return self.state.due(self.fair_now(), set(busy))

    async def report(self, epoch: str, outcomes: list[DeliveryOutcome]) -> int:
        """These are the outcomes. Returns the number up to which all targets that do not refuse
        have taken messages.
        """
        now = self.now()
        self.state.report(epoch, outcomes, now)
        self._deliver_again(now)
        return self.state.settled_number()

    def _deliver_again(self, now: float) -> None:
        if self.state.is_behind():
            self.set_alarm(DELIVER, now + AGAIN_SECONDS)
        else:
            self.clear_alarm(DELIVER)

    async def on_alarm(self, alarm: Alarm) -> None:
        """Send what is left, or drop what has expired."""
        now = self.now()
        if alarm.name == EXPIRE:
            self.state.collect(self.fair_now())
            self._changed()
        else:
            self._deliver_again(now)
            self.sender.kick(self._name)

    @reading
    async def figures(self) -> TopicFigures:
        """The figures of the topic."""
        state = self.state
        refusing = sum(1 for it in state.subscriptions.values() if it.refusals)
        return TopicFigures(
            state.epoch,
            state.number,
            len(state.subscriptions),
            refusing,
            len(state.log),
            len(state.gone),
        )
