"""The client of volumes: it decides which entries a cache may believe, and until when.

It counts leases from the time at which it asked for them (V3), and takes an answer only to its
newest question (V2). It first applies an answer's items, then believes its lease, then keeps its
entries, then acknowledges the items (V1, V4). A kept entry must not be older than the mark that
invalidations have left meanwhile (V7).

A server that does not know the client says so, and then every entry of that server is suspect: one
exchange, `Reconnect`, says which of them are live (V8).

The machine is the door to four parts: its belief, its questions, its readers, and its own writes.
"""

from random import Random
from typing import assert_never

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.keys import Key
from tenure.base.machine import Output
from tenure.base.rangemap import RangeMap
from tenure.protocol.volume.client.belief import EntryBelief
from tenure.protocol.volume.client.contacts import NOBODY, Contact
from tenure.protocol.volume.client.context import ClientContext
from tenure.protocol.volume.client.events import (
    AskWhetherUsed,
    AuditWanted,
    CacheAction,
    CacheConfig,
    CacheEvent,
    CacheView,
    Evicted,
    LeaveAsked,
    ObjectWanted,
    RoutesChanged,
    Saw,
    ServerSaid,
    WasUsed,
    WriteWanted,
)
from tenure.protocol.volume.client.own_writes import OwnWrites
from tenure.protocol.volume.client.questions import CacheQuestions
from tenure.protocol.volume.client.reading import CacheReads
from tenure.protocol.volume.messages import (
    Bye,
    Elsewhere,
    Fetched,
    Invalidate,
    Reconnected,
    Renewed,
    RequestRefused,
    ToCache,
    UnknownReader,
    WriteDone,
)
from tenure.protocol.volume.noted import CacheKind

SOON_TERMS = 2
"""An object lease that ends within this many volume leases is renewed with the next of them: the
use of an entry is looked at only now and then.
"""


class CacheMachine:
    """Decides for one cache, whatever servers say and readers want."""

    def __init__(self, config: CacheConfig, random: Random) -> None:
        self.context = ClientContext(config, random)
        self.contacts = self.context.contacts
        self.belief = EntryBelief(self.context)
        self.questions = CacheQuestions(self.context, self.belief)
        self.reads = CacheReads(self.context, self.belief, self.questions)
        self.writes = OwnWrites(self.context, self.belief, self.questions)

    # --- the door ---

    def handle(self, now: Instant, event: CacheEvent) -> Output[CacheAction]:
        """Do what is due, then take an event."""
        self._advance(now)
        match event:
            case ServerSaid(server=server, message=message):
                self._on_message(now, server, message)
            case ObjectWanted(ticket=ticket, key=key):
                self.reads.serve(now, key, ticket)
            case WriteWanted():
                self.writes.on_wanted(now, event)
            case RoutesChanged():
                self._on_routes(now, event)
            case WasUsed(server=server, keys=keys):
                self.on_used(now, server, keys)
            case Evicted(keys=keys):
                self.belief.forget(keys)
            case Saw(key=key, as_of=as_of):
                self.reads.on_saw(key, as_of)
            case AuditWanted(key=key):
                self.reads.audit(now, key)
            case LeaveAsked():
                self._on_leave()
            case _:
                assert_never(event)
        return self._output(now)

    def advance(self, now: Instant) -> Output[CacheAction]:
        """Do what is due."""
        self._advance(now)
        return self._output(now)

    def _advance(self, now: Instant) -> None:
        for contact in self.contacts.values():
            if now >= contact.ask_use_at:
                contact.ask_use_at = self._next_ask(now, contact)
                soon = Instant(now + SOON_TERMS * contact.term_ns)
                self.context.act(AskWhetherUsed(contact.server, soon))
            if now >= contact.again_at:
                self.questions.ask_again(now, contact)
        fetches = self.context.fetches
        if now >= fetches.next_at:
            fetches.next_at = FAR_FUTURE
            self.reads.on_time(now)
            self.writes.on_time(now)

    def _next_ask(self, now: Instant, contact: Contact) -> Instant:
        """When to ask for use next: a lease is renewed in time if a reader begins before it is
        over.
        """
        at = Instant(now + max(contact.term_ns // 6, 1))
        return at if at < contact.until else FAR_FUTURE

    def _output(self, now: Instant) -> Output[CacheAction]:
        wake_at = self.context.fetches.next_at
        for contact in self.contacts.values():
            if contact.reader == NOBODY:  # who is not on record has no lease, and renews none (V8)
                assert not contact.until, contact.server
                assert contact.renewing is None, contact.server
            wake_at = min(wake_at, contact.ask_use_at, contact.again_at)
        return Output(self.context.take_actions(), max(wake_at, now))

    # --- what servers say ---

    def _on_message(self, now: Instant, server: str, message: ToCache) -> None:
        contact = self.contacts.get(server)
        if contact is None:
            return
        match message:
            case Invalidate():
                self.on_invalidate(contact, message)
            case Reconnected():
                self._on_reconnected(now, contact, message)
            case Renewed():
                self._on_renewed(now, contact, message)
            case Fetched():
                self.reads.on_fetched(now, contact, message)
            case WriteDone():
                self.writes.on_done(now, contact, message)
            case UnknownReader():
                self._on_unknown(now, contact, message)
            case Elsewhere(client=client, sequence=sequence):
                if client == contact.nonce:
                    self._on_elsewhere(now, sequence)
            case RequestRefused(client=client):
                if client == contact.nonce:
                    self._on_refused(now, contact, message)
            case _:
                assert_never(message)

    def on_invalidate(self, contact: Contact, message: Invalidate) -> None:
        """Items for an unknown reader number were not applied: they must not be acknowledged."""
        if not contact.is_addressed_by(message):
            self.context.note(CacheKind.PAST_READER)
            return
        self.belief.apply_items(contact, message.items)
        self.belief.acknowledge(contact, message.items)

    def _on_reconnected(self, now: Instant, contact: Contact, message: Reconnected) -> None:
        asking = contact.reconnecting
        if (
            asking is None
            or message.client != contact.nonce
            or message.reader == NOBODY
            or not asking.is_answered_by(message.sequence)
        ):
            self.context.note(CacheKind.OLD_ANSWER, "reconnected")
            return
        self.belief.meet_history(message.history)
        contact.reconnecting = contact.renewing = None
        # No lease of an earlier place counts under this one (V8).
        contact.epoch, contact.reader, contact.until = message.epoch, message.reader, Instant(0)
        contact.count_place(now, self.context.config.retry_ns)
        self.belief.believe(now, contact, asking, message.term_ns)
        self.belief.revive(contact, asking, message.live, message.lease_ns)
        self.context.note(CacheKind.IN_TOUCH, contact.server)
        self._go_on(now, contact)

    def _on_renewed(self, now: Instant, contact: Contact, message: Renewed) -> None:
        asking = contact.renewing
        if (
            asking is None
            or not contact.is_addressed_by(message)
            or not asking.is_answered_by(message.sequence)
        ):
            self.context.note(CacheKind.OLD_ANSWER, "renewed")
            return
        contact.renewing = None
        self.belief.take(now, contact, asking, message.term_ns, message.items)
        self.belief.revive(contact, asking, message.live, message.lease_ns)
        self.belief.acknowledge(contact, message.items)
        self._go_on(now, contact)

    def _go_on(self, now: Instant, contact: Contact) -> None:
        """Serve the readers and send the writes that waited for this server's answer."""
        contact.again_at = FAR_FUTURE
        contact.keys_used = ()
        self.reads.on_lease(now, contact)
        self.writes.on_lease(now, contact)

    def _on_unknown(self, now: Instant, contact: Contact, message: UnknownReader) -> None:
        """Take note that the server has no reader of that number: nothing that it gave counts any
        longer (V8).
        """
        newest = self.questions.is_newest(contact, message.sequence)
        if message.client != contact.nonce or not newest:
            self.context.note(CacheKind.OLD_ANSWER, "unknown")
            return
        self.context.note(CacheKind.UNKNOWN_THERE, contact.server)
        contact.renewing = None
        self.belief.doubt_all(contact)
        self.reads.void_all(contact)
        self.writes.on_unknown(contact)
        if now >= contact.place_at:
            self.questions.reconnect(now, contact)
        else:
            contact.again_at = contact.place_at

    def _on_elsewhere(self, now: Instant, sequence: int) -> None:
        flight = self.context.fetches.flight_of(sequence)
        if flight is not None:
            self.reads.on_elsewhere(now, flight)
        elif (write := self.writes.sent(sequence)) is not None:
            self.writes.end(write, "elsewhere")

    def _on_refused(self, now: Instant, contact: Contact, message: RequestRefused) -> None:
        self.context.note(CacheKind.REFUSED, message.why)
        sequence = message.sequence
        again_at = Instant(now + max(message.again_ns, self.context.config.retry_ns))
        flight = self.context.fetches.flight_of(sequence)
        if any(asking.sequence == sequence for asking in contact.asked()):
            contact.again_at = again_at
            if message.why == "mute":  # on record, so it reads and writes without a lease (V20)
                contact.renewing = None
                contact.mute_until = again_at
                self._go_on(now, contact)
        elif flight is not None and message.why == "load failed":
            self.reads.on_load_failed(flight, message.detail)
        elif flight is not None:
            flight.retry_at = again_at
        elif (write := self.writes.sent(sequence)) is not None:
            self.writes.end(write, "failed", detail=message.why)

    # --- what the application does ---

    def on_used(self, now: Instant, server: str, keys: tuple[Key, ...]) -> None:
        contact = self.contacts.get(server)
        if contact is None or contact.reader == NOBODY:
            return
        if not keys and contact.until - now > contact.term_ns * 2 // 3:
            return  # a fetch has renewed it meanwhile
        contact.used, contact.keys_used = True, keys
        self.questions.renew(now, contact)

    def _on_routes(self, now: Instant, event: RoutesChanged) -> None:
        """Take new routes: ask the new servers of ranges about the entries that came along. An
        earlier server that is well has withdrawn them before its range was another's (V12); one
        that lies would go on renewing them.
        """
        routes = self.context.routes = RangeMap.of(event.routes, None)
        suspects: dict[str, list[Key]] = {}
        moved: list[Key] = []
        for key, entry in self.belief.entries.items():
            server = routes[key]
            if server is None or (entry.is_live and server == entry.server):
                continue
            suspects.setdefault(server, []).append(key)
            if entry.is_live:
                moved.append(key)
        self.belief.doubt(tuple(moved))
        self.reads.on_routes(now)
        self._leave_servers(frozenset(each for each in routes.values() if each))
        for server, keys in suspects.items():
            contact = self.context.contact(server)
            contact.used, contact.keys_used = True, tuple(keys)
            if contact.reader == NOBODY:
                self.questions.get_lease(now, contact)
            else:
                self.questions.renew(now, contact)

    def _leave_servers(self, serving: frozenset[str]) -> None:
        """Leave servers that serve nothing any longer: no entry of theirs is live."""
        for server in [each for each in self.contacts if each not in serving]:
            # An owner that lies withdraws nothing, so nothing of a past one is believed (V12).
            self._say_bye(self.contacts.pop(server))

    def _say_bye(self, contact: Contact) -> None:
        reader, epoch = contact.reader, contact.epoch
        if reader != NOBODY:
            self.belief.doubt_all(contact)
            self.context.tell(contact, Bye(client=contact.nonce, epoch=epoch, reader=reader))

    def _on_leave(self) -> None:
        self.reads.end_all()
        self.writes.end_all()
        for contact in self.contacts.values():
            self._say_bye(contact)
        self.contacts.clear()

    # --- what may be read of it ---

    def view(self) -> CacheView:
        """The view for the shell that runs this machine."""
        entries, fetches = self.belief.entries, self.context.fetches
        return CacheView(
            entries=len(entries),
            live=sum(entry.is_live for entry in entries.values()),
            flights=len(fetches.flights),
            writes=len(fetches.writes),
            in_touch=tuple(
                contact.server for contact in self.contacts.values() if contact.reader != NOBODY
            ),
        )

    def invariants(self) -> None:
        """A live entry has a present reader number, and every reader that waits has a question."""
        readers = {contact.reader for contact in self.contacts.values()} - {NOBODY}
        for key, entry in self.belief.entries.items():
            assert not entry.is_live or entry.reader in readers, key
        for flight in self.context.fetches.flights.values():
            assert flight.starters or flight.joiners or flight.audited, flight.key
