"""A topic: the entity of which each has a key.

**What is checked, and what is not.** To subscribe, to refresh and to unsubscribe are turns of an
entity: they happen while this process owns the topic, on the state that its last owner left, or
not at all. To publish is a turn as well, so it asks whether this is the owner. It does not ask
whether the subscriptions that it finds are of this lease. When a lease is interrupted, what was
kept under it no longer counts, and a topic would begin without any subscription, until every
subscriber has come back. But a subscription never changes. So a topic that begins anew takes those
that this process remembers. One that was ended elsewhere meanwhile costs a message too many, until
its time to live is over. One that was made elsewhere meanwhile is missing, and that its topic is
lost was told to whom it concerns (PRS 3.1).

The topic begins another epoch then: a subscriber that is sent a message of it knows that messages
of the former one may be missing.
"""

from collections import OrderedDict
from typing import ClassVar, Protocol

import msgspec

from tenure import Alarm, Entity, reading
from tenure.services.lives import new_name
from tenure.services.pubsub.topic_state import (
    Delivery,
    DeliveryOutcome,
    TopicState,
    short_name,
)

DELIVER, EXPIRE = "deliver", "expire"
AGAIN_SECONDS = 5.0
"""After which the owner of a topic looks whether something is still to be sent: the process that
was sending it may be gone."""
MOST_REMEMBERED = 100_000
"""Subscriptions that a process remembers of topics that it has, or has had."""


class Subscribed(msgspec.Struct, frozen=True):
    """A subscription, as its subscriber sees it."""

    id: str
    epoch: str
    number: int
    """Messages from the next number on are for it."""
    expires: float
    """In seconds since 1970."""


class MessageAccepted(msgspec.Struct, frozen=True):
    """A message that a topic has taken."""

    epoch: str
    number: int
    subscribers: int


class MessageSettled(msgspec.Struct, frozen=True):
    """How far the targets of a topic are with a message."""

    epoch: str
    waiting: int
    """Those that may take it yet."""
    refusing: int
    """Those that refuse, and take it later, or are told of a gap."""


class TopicFigures(msgspec.Struct, frozen=True):
    """What a topic has."""

    epoch: str
    number: int
    subscribers: int
    refusing: int
    waiting: int
    """Messages that some target has not taken."""
    expired: int
    """Subscriptions that nobody has refreshed, and that went within the last hour: 100 at most."""


class RememberedTopics:
    """The subscriptions that this process has made, or has been handed, whether their leases last
    or not. It may forget the oldest: then it is as if another process owned the topic.
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
    """What sends the messages of the topics of a process."""

    name: str
    """Of the process, unlike any other."""

    def kick(self, topic: str) -> None:
        """Something may be to be sent."""
        ...

    async def settle(self, topic: str, number: int, seconds: float) -> None:
        """Send, and return when this message has been taken by all who take, or after so long."""
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
        """Subscriptions, or when they expire."""
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
        """Take what this process remembers, where nothing was handed over."""
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
        """Have messages sent to a target for so long. Raises ServiceRefusal for one too many."""
        id_ = self.state.subscribe(target, self.fair_now(), seconds, self._epoch())
        return self._subscribed(id_)

    async def refresh(self, id_: str, seconds: float) -> Subscribed:
        """Have them sent for so long from now on; how far the topic is. Raises ServiceRefusal where
        the subscription has gone.
        """
        self.state.collect(self.fair_now())
        self.state.refresh(id_, self.fair_now(), seconds)
        return self._subscribed(id_)

    def _subscribed(self, id_: str) -> Subscribed:
        self._changed()
        state = self.state
        return Subscribed(id_, state.epoch, state.number, state.subscriptions[id_].expires)

    async def unsubscribe(self, id_: str) -> None:
        """Have nothing sent there any more. What is on its way may still arrive. Raises
        ServiceRefusal where there is no such subscription.
        """
        if not self.state.unsubscribe(id_, self.now()):
            raise self.state.without(id_)
        self._changed()

    # --- messages ---

    async def publish(self, data: bytes, id: str = "") -> MessageAccepted:  # noqa: A002  # what it is
        """Give a message its number, once for each id. It is sent from `settled` on. Raises
        ServiceRefusal where targets that take messages have too many before them.
        """
        state = self.state
        number = state.publish(data, self.now(), short_name(id) if id else "")
        if number and DELIVER not in self.alarms:
            self.set_alarm(DELIVER, self.now() + AGAIN_SECONDS)
        return MessageAccepted(state.epoch, number, len(state.subscriptions))

    @reading
    async def settled(self, number: int, seconds: float) -> MessageSettled:
        """Have it sent, and say who has not taken it when that is done, or after so long."""
        await self.sender.settle(self._name, number, seconds)
        return MessageSettled(self.state.epoch, *self.state.behind(number))

    @reading
    async def due(self, sender: str, busy: list[str]) -> list[Delivery] | None:
        """What is to be sent now; None where this is another process than the sender's."""
        if sender != self.sender.name:
            return None
        return self.state.due(self.fair_now(), set(busy))

    async def report(self, epoch: str, outcomes: list[DeliveryOutcome]) -> int:
        """This came of it. The number up to which all targets that do not refuse have taken it."""
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
        """What it has."""
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
