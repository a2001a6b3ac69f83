"""Readers that found no entry which they may take, and how they are answered.

Readers of one object share a fetch. Those that asked before it was sent get the answer's value; the
others get only what is live when it comes, because a write may have come between (V10).
"""

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.protocol.volume.client.belief import EntryBelief
from tenure.protocol.volume.client.contacts import Contact
from tenure.protocol.volume.client.context import ClientContext
from tenure.protocol.volume.client.events import JudgeHit, Outcome, TellReaders
from tenure.protocol.volume.client.fetches import Flight
from tenure.protocol.volume.client.questions import CacheQuestions
from tenure.protocol.volume.messages import AsOf, Fetched, Value
from tenure.protocol.volume.noted import CacheKind


class CacheReads:
    """The part of a client that serves readers."""

    def __init__(
        self, context: ClientContext, belief: EntryBelief, questions: CacheQuestions
    ) -> None:
        self.context = context
        self.belief = belief
        self.questions = questions
        self.flights = context.fetches.flights

    # --- what readers want ---

    def serve(self, now: Instant, key: Key, ticket: int) -> None:
        """Serve a reader that wants an object."""
        if self.belief.is_hit(now, key):
            self._tell_hit((ticket,), key)
            return
        flight = self.flights.get(key)
        if flight is not None:
            flight.join(ticket)
            return
        flight = self.flights[key] = Flight(key, now)
        flight.join(ticket)
        entry = self.belief.entries.get(key)
        if entry is not None and entry.is_live and now < entry.until:
            contact = self.context.contacts.get(entry.server)
            if contact is not None and contact.reader == entry.reader and now >= contact.mute_until:
                self._wait_for_lease(now, contact, flight)
                return
        self.questions.fetch(now, flight)

    def _wait_for_lease(self, now: Instant, contact: Contact, flight: Flight) -> None:
        """Ask for the volume lease, since nothing else is over: its renewal serves all entries at
        once.
        """
        flight.server = contact.server
        flight.retry_at = Instant(now + self.context.config.retry_ns)
        self.context.fetches.due_by(flight.retry_at)
        contact.used = True
        self.questions.get_lease(now, contact)

    def audit(self, now: Instant, key: Key) -> None:
        """Have a hit judged: the server reads the object, whatever it knows of it."""
        if self.belief.is_hit(now, key) and key not in self.flights:
            flight = self.flights[key] = Flight(key, now)
            flight.audited = self.belief.entries[key]
            self.questions.fetch(now, flight)

    def on_saw(self, key: Key, as_of: AsOf) -> None:
        """An answer under way may be older; the answer to any later question is not (C5)."""
        if self.belief.history and as_of.history == self.belief.history:
            self.context.fetches.raise_to(key, as_of.version)
        entry = self.belief.entries.get(key)
        if entry is not None and not entry.as_of.covers(as_of):
            self.belief.drop(key)
        flight = self.flights.get(key)
        if flight is not None and flight.asking is not None:
            flight.void()
            flight.retry_at = Instant(0)
            self.context.fetches.next_at = Instant(0)

    # --- what servers say ---

    def on_fetched(self, now: Instant, contact: Contact, message: Fetched) -> None:
        flight = self.flights.get(message.key)
        asking = None if flight is None else flight.asking
        if (
            flight is None
            or asking is None
            or flight.server != contact.server
            or not contact.is_addressed_by(message)
            or not asking.is_answered_by(message.sequence)
            or (message.kind == "unchanged" and flight.as_of is None)
        ):
            self.context.note(CacheKind.OLD_ANSWER, "fetched")
            return
        self.belief.take(now, contact, asking, message.term_ns, message.items)
        before = self.belief.entries.get(flight.key)
        # Meanwhile the entry has gone, or become another: there is no value to tell.
        if message.kind == "unchanged" and (before is None or before.as_of != flight.as_of):
            self.context.note(CacheKind.GONE_VALUE)
            self.belief.acknowledge(contact, message.items)
            self._fetch_anew(now, flight)
            return
        if flight.audited is not None:
            self._judge(now, flight, message)
        self.belief.fill(now, contact, asking, message, message.kind, message.value)
        self.belief.acknowledge(contact, message.items)
        self._land(now, flight, message)

    def _judge(self, now: Instant, flight: Flight, message: Fetched) -> None:
        """Judge an entry that was live when the question was sent, and is live now: all the while
        there was no other value (C1). The items of the answer are applied, and its value is not
        kept yet.
        """
        if (
            message.kind != "unchanged"
            and flight.audited is self.belief.entries.get(flight.key)
            and self.belief.is_hit(now, flight.key)
        ):
            self.context.act(JudgeHit(flight.key, message.kind, message.value))

    def _land(self, now: Instant, flight: Flight, message: Fetched) -> None:
        """Tell the waiting readers. Those that asked before the question was sent get the answer's
        value. The others get the entry that is live by now, which may be newer, or share another
        question (V10).
        """
        as_of = self.belief.as_of(message.number, message.count)
        joiners, flight.joiners = flight.joiners, []
        self._answer(flight, tuple(flight.starters), message.kind, message.value, as_of)
        # They came after it was sent: a write may have come between (V10).
        if joiners and self.belief.is_hit(now, flight.key):
            self._tell_hit(tuple(joiners), flight.key)
            return
        for ticket in joiners:
            self.serve(now, flight.key, ticket)

    def on_elsewhere(self, now: Instant, flight: Flight) -> None:
        """Ask again in a while, since the server does not serve the object: routes may change."""
        flight.void()
        flight.retry_at = Instant(now + self.context.config.retry_ns)
        self.context.fetches.due_by(flight.retry_at)

    def on_load_failed(self, flight: Flight, detail: str) -> None:
        self._answer(flight, flight.tickets(), "failed", detail=detail)

    # --- what has changed ---

    def on_lease(self, now: Instant, contact: Contact) -> None:
        """Serve the readers that waited until the server gave a lease, or a place on record."""
        for flight in list(self.flights.values()):
            if flight.asking is not None or self.context.routes[flight.key] != contact.server:
                continue
            if self.belief.is_hit(now, flight.key):
                as_of = self.belief.entries[flight.key].as_of
                self._answer(flight, tuple(flight.starters), "hit", as_of=as_of)
            else:
                self.questions.fetch(now, flight)

    def on_routes(self, now: Instant) -> None:
        """Ask the servers that serve by now."""
        for flight in self.flights.values():
            if self.context.routes[flight.key] not in (None, flight.server):
                self._fetch_anew(now, flight)

    def void_all(self, contact: Contact) -> None:
        """Make the answers of a server void."""
        for flight in self.flights.values():
            if flight.server == contact.server:
                flight.void()

    def on_time(self, now: Instant) -> None:
        """Ask again, or tell the readers that no server answers (V19)."""
        config, fetches = self.context.config, self.context.fetches
        for flight in list(self.flights.values()):
            patience_ends = flight.patience_ends(config.patience_ns)
            if now >= patience_ends:
                self.context.note(CacheKind.UNREACHABLE, flight.server)
                self._answer(flight, flight.tickets(), "unreachable")
                continue
            if now >= flight.retry_at:
                self._fetch_anew(now, flight)
            fetches.due_by(min(flight.retry_at, patience_ends))

    def end_all(self) -> None:
        """Tell all readers that no server answers."""
        for flight in list(self.flights.values()):
            self._answer(flight, flight.tickets(), "unreachable")

    # --- telling the waiting readers ---

    def _fetch_anew(self, now: Instant, flight: Flight) -> None:
        flight.void()
        self.questions.fetch(now, flight)

    def _tell_hit(self, tickets: tuple[int, ...], key: Key) -> None:
        """Tell the readers that the entry may be taken."""
        self.context.act(TellReaders(tickets, key, "hit", b"", self.belief.entries[key].as_of))

    def _answer(
        self,
        flight: Flight,
        tickets: tuple[int, ...],
        outcome: Outcome,
        value: Value = b"",
        as_of: AsOf | None = None,
        detail: str = "",
    ) -> None:
        del self.flights[flight.key]
        if tickets:
            self.context.act(TellReaders(tickets, flight.key, outcome, value, as_of, detail))
