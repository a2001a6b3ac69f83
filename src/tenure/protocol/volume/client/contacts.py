"""A client's contact with one server: a number, a volume lease, and questions under way."""

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.keys import Key
from tenure.protocol.volume.client.fetches import Question
from tenure.protocol.volume.messages import Fetched, Invalidate, Item, Renewed, WriteDone

NOBODY = 0
MOST_PAUSES = 4


class Contact:
    """One server, as a client knows it."""

    __slots__ = (
        "again_at",
        "ask_use_at",
        "epoch",
        "keys_used",
        "mute_until",
        "nonce",
        "place_at",
        "places",
        "reader",
        "reconnecting",
        "renewing",
        "server",
        "term_ns",
        "until",
        "used",
    )

    def __init__(self, server: str, nonce: int) -> None:
        self.server = server
        self.nonce = nonce
        """The nonce by which the server knows us. Each server has another, since one server may be
        known by two names: the record of one name must not go when the other reconnects.
        """
        self.epoch = 0
        self.reader = NOBODY
        """The number that the server drew for us; NOBODY while we are not on record."""
        self.places = 0
        """The number of places on record in turn under which the server has answered nothing."""
        self.place_at = Instant(0)
        """The earliest time to ask for another place."""
        self.until = Instant(0)
        """When the volume lease ends."""
        self.term_ns = 0
        self.mute_until = Instant(0)
        """The time until which the server gives no volume lease, as it has said (V20)."""
        self.renewing: Question | None = None
        self.reconnecting: Question | None = None
        self.ask_use_at: Instant = FAR_FUTURE
        """When to ask whether there were hits."""
        self.used = False
        """Whether the lease is in use; if so, it is renewed until an answer comes, or it ends."""
        self.keys_used: tuple[Key, ...] = ()
        self.again_at: Instant = FAR_FUTURE
        """When to repeat questions that were not answered."""

    def runs(self, now: Instant) -> bool:
        """Whether the volume lease runs."""
        return self.reader != NOBODY and now < self.until

    def is_addressed_by(self, message: Invalidate | Renewed | Fetched | WriteDone) -> bool:
        """Whether the message is meant for the client's present place on record (V2)."""
        # What was said to an earlier place on record does not hold for this one.
        return (
            self.reader != NOBODY and message.epoch == self.epoch and message.reader == self.reader
        )

    def count_place(self, now: Instant, pause_ns: int) -> None:
        """Count a place on record. If no answer follows, the pause before the next one grows: a
        server that knows nobody under the number that it has just given is not asked in a loop.
        """
        self.place_at = Instant(now + min(self.places, MOST_PAUSES) * pause_ns)
        self.places += 1

    def has_answered(self) -> None:
        """Take note that the server keeps the client on record."""
        self.places, self.place_at = 0, Instant(0)

    def asked(self) -> list[Question]:
        """The questions to this server under way."""
        return [each for each in (self.renewing, self.reconnecting) if each is not None]

    def apply(self, item: Item) -> None:
        """Apply an invalidation."""
        for asking in self.asked():
            asking.marks.apply(item)
