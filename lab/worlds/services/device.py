"""A device with a queue: what it has received and was told, and the rules for it.

Its memory survives every fault: it is the client, and not a process of the service. It knows
nothing of how the services are written. It sees entries with numbers, messages with epochs and
numbers, and notices that something was lost.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from tenure.sim.kernel.checkers import Violation

MOST_READERS = 20


class Publication(NamedTuple):
    """A message that was accepted."""

    topic: str
    epoch: str
    number: int
    payload: str
    began_at: int
    """When it was published, in real nanoseconds."""
    is_with_all: bool
    """Whether the answer said that every target has taken it, and not that it will."""


class Device:
    def __init__(self, name: str, now: Callable[[], int], *, refreshes: bool) -> None:
        self.name = name
        self.refreshes = refreshes
        """Whether it asks now and then how its subscriptions are; nobody has to, since losses are
        told.
        """
        self._now = now
        self.subscribed: dict[str, str] = {}
        """The epochs of topics to which it is subscribed, as far as it knows."""
        self.session: object = None
        """The session that attends to it."""
        self.session_at = -1
        self._readers: dict[str, tuple[int, int]] = {}
        """When the last readers asked to be it, and were answered."""
        self.is_whole = False
        """Whether it has a queue, as far as it knows."""
        self.reader = ""
        """The name of its newest reader."""
        self.life = ""
        self.acknowledged = 0
        """The entries that were acknowledged in the present life of the queue."""
        self._newest = 0
        self._owed: list[Publication] = []
        self._received: set[tuple[str, str, int]] = set()
        self._entries: dict[tuple[str, int], str] = {}
        """The payload of each entry of each life of the queue."""
        self._payloads: dict[tuple[str, str, str], int] = {}
        """The entry of each life in which a payload of an epoch came."""
        self._epochs: dict[str, str] = {}
        self._numbers: dict[tuple[str, str, str], tuple[int, int]] = {}
        """The newest entry of each epoch of each topic in each life of the queue, and the number
        that its message has in the topic.
        """
        self._told_of_queue = -1
        self._told_of: dict[str, int] = {}
        self._missed: list[tuple[str, str, int, int]] = []
        self.messages = self.losses = 0

    # --- what it is owed ---

    def published(self, publication: Publication, subscribed: dict[str, str]) -> None:
        """This was accepted; `subscribed` is what the device was subscribed to when it began."""
        epoch = subscribed.get(publication.topic)
        if epoch is not None:
            is_with_all = publication.is_with_all and epoch == publication.epoch
            self._owed.append(publication._replace(is_with_all=is_with_all))

    def check_owed(self) -> None:
        """Check that everything that it is owed has come, or that it was told (Centrifuge 4.3,
        4.4). Raises Violation.
        """
        for each in self._owed:
            if not self._has(each):
                raise Violation("no silent loss", f"{self.name} has nothing of {each}")
        self._owed.clear()

    def _has(self, owed: Publication) -> bool:
        if (owed.topic, owed.epoch, owed.number) in self._received:
            return True
        if self._told_of_queue >= owed.began_at:
            return True
        if any(
            (topic, epoch) == (owed.topic, owed.epoch) and first <= owed.number <= last
            for topic, epoch, first, last in self._missed
        ):
            return True
        # Where the queue had it, only what befell the queue can have lost it.
        return not owed.is_with_all and self._told_of.get(owed.topic, -1) >= owed.began_at

    # --- what comes ---

    def attended(self) -> object:
        """Attend to the device from now on; the former attendant is no longer heard."""
        self.session, self.session_at = object(), self._now()
        return self.session

    def signed_on(self, reader: str, asked_at: int) -> None:
        """Take the name under which the attendant reads."""
        self.reader = reader
        self._readers[reader] = asked_at, self._now()
        for old in list(self._readers)[:-MOST_READERS]:
            del self._readers[old]
        life = reader.partition(".")[2]
        if life != self.life:
            self.life, self.acknowledged, self._newest = life, 0, 0

    def check_served(self, reader: str, asked_at: int) -> None:
        """A reader was served. Raises Violation if another had taken over before that was asked."""
        if reader not in self._readers:
            return
        signed_on_at = self._readers[reader][1]
        for other, (took_over_at, answered_at) in self._readers.items():
            if other != reader and signed_on_at < took_over_at and answered_at < asked_at:
                raise Violation("one reader", f"{self.name}: {reader} is served after {other}")

    def subscribed_to(self, topic: str, epoch: str, asked_at: int) -> None:
        """An answer says so, unless the device has learned of a loss since it asked."""
        self.saw_epoch(topic, epoch)
        if max(self._told_of_queue, self._told_of.get(topic, -1)) < asked_at:
            self.subscribed[topic] = epoch

    def not_subscribed(self, topic: str) -> None:
        """An answer says so."""
        self._told(topic)

    def received(self, life: str, number: int, what: dict[str, Any] | None, loss: Any) -> None:
        """An entry has come."""
        if life != self.life:
            return  # of a queue that is gone
        if number <= self.acknowledged:
            raise Violation(
                "acknowledged once", f"{self.name}: {number} comes after {self.acknowledged}"
            )
        known = self._entries.setdefault((life, number), repr((what, bool(loss))))
        is_again = number <= self._newest
        if known != repr((what, bool(loss))) and not (is_again and loss):  # it was dropped since
            raise Violation("in order", f"{self.name}: entry {number} was {known}")
        self._newest = max(self._newest, number)
        if loss is not None:
            self._on_loss(loss)
        if what is not None:
            self._on_event(life, number, what)

    def _on_loss(self, loss: Any) -> None:
        self.losses += 1
        if loss.began or loss.dropped:
            self._told_of_queue = self._now()
            self.subscribed.clear()
            self.is_whole = False
        for keys in loss.pools.values():
            for topic in keys:
                self._told(topic)

    def _told(self, topic: str) -> None:
        self._told_of[topic] = self._now()
        self.subscribed.pop(topic, None)

    def told_of_queue(self) -> None:
        """An answer has said that the queue no longer exists."""
        self._told_of_queue = self._now()
        self.subscribed.clear()
        self.is_whole = False

    def _on_event(self, life: str, entry: int, event: dict[str, Any]) -> None:
        topic, epoch, number = event["topic"], event["epoch"], event["number"]
        self.saw_epoch(topic, epoch)
        missed = event.get("missed")
        if missed:
            self._missed.append((topic, epoch, *missed))
            return
        self.messages += 1
        payload = event["data"]
        there = self._payloads.setdefault((life, epoch, payload), entry)
        if there != entry:
            raise Violation(
                "counted once", f"{self.name}: {payload} is at {there}, and again at {entry}"
            )
        at, newest = self._numbers.get((life, topic, epoch), (0, 0))
        if (entry > at) != (number > newest) and entry != at:
            raise Violation(
                "in order", f"{self.name}: {topic} {number} is at {entry}, and {newest} at {at}"
            )
        self._numbers[life, topic, epoch] = max((at, newest), (entry, number))
        self._received.add((topic, epoch, number))

    def saw_epoch(self, topic: str, epoch: str) -> None:
        """A message, or an answer about a subscription, is of this epoch of the topic."""
        if self._epochs.get(topic, epoch) != epoch:
            self._told(topic)
        self._epochs[topic] = epoch
