"""The client of volumes: it decides which entries a cache may believe, and until when.

It counts leases from the time at which it asked for them (V3), and takes an answer only to its
newest question (V2). It first applies an answer's items, then believes its lease, then keeps its
entries, then acknowledges the items (V1, V4). A kept entry must not be older than the mark that
invalidations have left meanwhile (V7).

A server that does not know the client says so, and then every entry of that server is suspect: one
exchange, `Reconnect`, says which of them are live (V8).
"""

from random import Random
from typing import assert_never

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.keys import Key
from tenure.base.machine import Output
from tenure.base.rangemap import RangeMap
from tenure.protocol.volume.client.contacts import NOBODY, Contact
from tenure.protocol.volume.client.events import (
    AskWhetherUsed,
    AuditWanted,
    CacheAction,
    CacheConfig,
    CacheEvent,
    CacheView,
    DropEntries,
    Evicted,
    JudgeHit,
    LeaveAsked,
    ObjectWanted,
    Outcome,
    RoutesChanged,
    Saw,
    ServerSaid,
    TellReaders,
    TellServer,
    WasUsed,
    WriteOutcome,
    WriteWanted,
)
from tenure.protocol.volume.client.fetches import Flight
from tenure.protocol.volume.client.own_writes import OwnWriting
from tenure.protocol.volume.messages import (
    AsOf,
    Bye,
    Elsewhere,
    Fetched,
    Invalidate,
    Reconnected,
    Renewed,
    RequestRefused,
    ToCache,
    UnknownReader,
    Value,
    WriteDone,
)
from tenure.protocol.volume.noted import CacheKind

SOON_TERMS = 2
"""An object lease that ends within this many volume leases is renewed with the next of them: the
use of an entry is looked at only now and then.
"""


class CacheMachine(OwnWriting):
    def __init__(self, config: CacheConfig, random: Random) -> None:
        super().__init__(config, random)
        if config.server:
            self.routes = RangeMap(config.server)

    # --- the door ---

    def handle(self, now: Instant, event: CacheEvent) -> Output[CacheAction]:
        """Do what is due, then take an event."""
        self._advance(now)
        match event:
            case ServerSaid(server=server, message=message):
                self._on_message(now, server, message)
            case ObjectWanted(ticket=ticket, key=key):
                self.serve(now, key, ticket)
            case WriteWanted():
                self.on_write_wanted(now, event)
            case RoutesChanged():
                self._on_routes(now, event)
            case WasUsed(server=server, keys=keys):
                self.on_used(now, server, keys)
            case Evicted(keys=keys):
                self._on_evicted(keys)
            case Saw(key=key, as_of=as_of):
                self.on_saw(key, as_of)
            case AuditWanted(key=key):
                self.audit(now, key)
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
                self._actions.append(AskWhetherUsed(contact.server, soon))
            if now >= contact.again_at:
                self.ask_again(now, contact)
        if now >= self.fetches.next_at:
            self._look_at_fetches(now)

    def _next_ask(self, now: Instant, contact: Contact) -> Instant:
        """When to ask for use next: a lease is renewed in time if a reader begins before it is
        over.
        """
        at = Instant(now + max(contact.term_ns // 6, 1))
        return at if at < contact.until else FAR_FUTURE

    def _output(self, now: Instant) -> Output[CacheAction]:
        wake_at = self.fetches.next_at
        for contact in self.contacts.values():
            wake_at = min(wake_at, contact.ask_use_at, contact.again_at)
        actions, self._actions = self._actions, []
        return Output(actions, max(wake_at, now))

    def _look_at_fetches(self, now: Instant) -> None:
        self.fetches.next_at = FAR_FUTURE
        for flight in list(self.fetches.flights.values()):
            if now >= flight.asked_at + self.config.patience_ns:
                self._give_up(flight)
            elif now >= flight.retry_at:
                flight.void()
                self.send_fetch(now, flight)
            if flight.key in self.fetches.flights:
                self.fetches.due_by(min(flight.retry_at, self.patience_ends(flight)))
        for write in list(self.fetches.writes.values()):
            if now >= write.asked_at + self.config.write_patience_ns:
                outcome: WriteOutcome = "unreachable" if write.asking is None else "unknown"
                self.end_write(write, outcome)
            else:
                self.fetches.due_by(Instant(write.asked_at + self.config.write_patience_ns))

    def _give_up(self, flight: Flight) -> None:
        self.note(CacheKind.UNREACHABLE, flight.server)
        self._answer(flight, (*flight.starters, *flight.joiners), "unreachable")

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
                self._on_fetched(now, contact, message)
            case WriteDone():
                self._on_write_done(now, contact, message)
            case UnknownReader(client=client, sequence=sequence):
                if client == contact.nonce and self.is_newest(contact, sequence):
                    self._become_unknown(now, contact)
                else:
                    self.note(CacheKind.OLD_ANSWER, "unknown")
            case Elsewhere(client=client, sequence=sequence):
                if client == contact.nonce:
                    self._on_elsewhere(now, sequence)
            case RequestRefused(client=client):
                if client == contact.nonce:
                    self._on_refused(now, contact, message)
            case _:
                assert_never(message)

    def is_of_present_reader(
        self, contact: Contact, message: Invalidate | Renewed | Fetched | WriteDone
    ) -> bool:
        """Whether the message is meant for the client's present place on record (V2)."""
        return (
            contact.reader != NOBODY
            and message.epoch == contact.epoch
            and message.reader == contact.reader
        )

    def on_invalidate(self, contact: Contact, message: Invalidate) -> None:
        """Items for an unknown reader number were not applied: they must not be acknowledged."""
        if not self.is_of_present_reader(contact, message):
            self.note(CacheKind.PAST_READER)
            return
        self.apply_items(contact, message.items)
        self.acknowledge(contact, message.items)

    def _on_reconnected(self, now: Instant, contact: Contact, message: Reconnected) -> None:
        asking = contact.reconnecting
        if (
            asking is None
            or message.client != contact.nonce
            or message.reader == NOBODY
            or not self.answers(asking, message.sequence)
        ):
            self.note(CacheKind.OLD_ANSWER, "reconnected")
            return
        self.meet_history(message.history)
        contact.reconnecting = contact.renewing = None
        contact.epoch, contact.reader, contact.until = message.epoch, message.reader, Instant(0)
        contact.count_place(now, self.config.retry_ns)
        self.believe(now, contact, asking, message.term_ns)
        self.revive(contact, asking, message.live, message.lease_ns)
        self.note(CacheKind.IN_TOUCH, contact.server)
        self._go_on(now, contact)

    def _on_renewed(self, now: Instant, contact: Contact, message: Renewed) -> None:
        asking = contact.renewing
        if (
            asking is None
            or not self.is_of_present_reader(contact, message)
            or not self.answers(asking, message.sequence)
        ):
            self.note(CacheKind.OLD_ANSWER, "renewed")
            return
        contact.renewing = None
        self.take(now, contact, asking, message.term_ns, message.items)
        self.revive(contact, asking, message.live, message.lease_ns)
        self.acknowledge(contact, message.items)
        self._go_on(now, contact)

    def _on_fetched(self, now: Instant, contact: Contact, message: Fetched) -> None:
        flight = self.fetches.flights.get(message.key)
        asking = None if flight is None else flight.asking
        if (
            flight is None
            or asking is None
            or flight.server != contact.server
            or not self.is_of_present_reader(contact, message)
            or not self.answers(asking, message.sequence)
            or (message.kind == "unchanged" and flight.as_of is None)
        ):
            self.note(CacheKind.OLD_ANSWER, "fetched")
            return
        self.take(now, contact, asking, message.term_ns, message.items)
        before = self.entries.get(flight.key)
        if message.kind == "unchanged" and (before is None or before.as_of != flight.as_of):
            self.note(CacheKind.GONE_VALUE)
            self.acknowledge(contact, message.items)
            flight.void()
            self.send_fetch(now, flight)
            return
        if flight.audited is not None:
            self._judge(now, flight, message)
        as_of = AsOf(history=self.history, number=message.number, count=message.count)
        self.fill(now, contact, asking, as_of, message, message.kind, message.value)
        self.acknowledge(contact, message.items)
        self.land(now, flight, message, as_of)

    def _judge(self, now: Instant, flight: Flight, message: Fetched) -> None:
        """Judge an entry that was live when the question was sent, and is live now: all the while
        there was no other value (C1). The items of the answer are applied, and its value is not
        kept yet.
        """
        if (
            message.kind != "unchanged"
            and flight.audited is self.entries.get(flight.key)
            and self.is_hit(now, flight.key)
        ):
            self._actions.append(JudgeHit(flight.key, message.kind, message.value))

    def land(self, now: Instant, flight: Flight, message: Fetched, as_of: AsOf) -> None:
        """Tell the waiting readers. Those that asked before the question was sent get the answer's
        value. The others get the entry that is live by now, which may be newer, or share another
        question (V10).
        """
        joiners, flight.joiners = flight.joiners, []
        self._answer(flight, tuple(flight.starters), message.kind, message.value, as_of)
        if joiners and self.is_hit(now, flight.key):
            self.tell_hit(tuple(joiners), flight.key)
            return
        for ticket in joiners:
            self.serve(now, flight.key, ticket)

    def _on_write_done(self, now: Instant, contact: Contact, message: WriteDone) -> None:
        write = self.fetches.writes.get(message.sequence)
        if (
            write is None
            or write.asking is None
            or write.server != contact.server
            or not self.is_of_present_reader(contact, message)
        ):
            self.note(CacheKind.OLD_ANSWER, "write done")
            return
        asking = write.asking
        self.take(now, contact, asking, message.term_ns, message.items)
        as_of = AsOf(history=self.history, number=message.number, count=message.count)
        if message.ok:
            self.fill(now, contact, asking, as_of, message, "value", write.value)
        self.acknowledge(contact, message.items)
        self.end_write(write, "written" if message.ok else "failed", as_of, message.detail)

    def _become_unknown(self, now: Instant, contact: Contact) -> None:
        """Take note that the server has no reader of that number: nothing that it gave counts any
        longer (V8).
        """
        self.note(CacheKind.UNKNOWN_THERE, contact.server)
        contact.renewing = None
        self.doubt_all(contact)
        for flight in self.fetches.flights.values():
            if flight.server == contact.server:
                flight.void()
        for write in list(self.fetches.writes.values()):
            if write.server == contact.server and write.asking is not None:
                self.end_write(write, "unknown")
        if now >= contact.place_at:
            self.reconnect(now, contact)
        else:
            contact.again_at = contact.place_at

    def _on_elsewhere(self, now: Instant, sequence: int) -> None:
        for flight in self.fetches.flights.values():
            if flight.asking is not None and flight.asking.sequence == sequence:
                flight.void()
                flight.retry_at = Instant(now + self.config.retry_ns)
                self.fetches.due_by(flight.retry_at)
                return
        write = self.fetches.writes.get(sequence)
        if write is not None and write.asking is not None:
            self.end_write(write, "elsewhere")

    def _on_refused(self, now: Instant, contact: Contact, message: RequestRefused) -> None:
        self.note(CacheKind.REFUSED, message.why)
        sequence = message.sequence
        again_ns = max(message.again_ns, self.config.retry_ns)
        if any(asking.sequence == sequence for asking in contact.asked()):
            contact.again_at = Instant(now + again_ns)
            if message.why == "mute":  # on record, so it reads and writes without a lease (V20)
                contact.renewing = None
                contact.mute_until = contact.again_at
                self._go_on(now, contact)
            return
        for flight in list(self.fetches.flights.values()):
            if flight.asking is not None and flight.asking.sequence == sequence:
                if message.why == "load failed":
                    everybody = (*flight.starters, *flight.joiners)
                    self._answer(flight, everybody, "failed", detail=message.detail)
                else:
                    flight.retry_at = Instant(now + again_ns)
                return
        write = self.fetches.writes.get(sequence)
        if write is not None and write.asking is not None:
            self.end_write(write, "failed", detail=message.why)

    # --- telling the waiting readers and writers ---

    def _go_on(self, now: Instant, contact: Contact) -> None:
        """Go on after the client was put on record: serve the readers that waited, and send the
        writes.
        """
        contact.again_at = FAR_FUTURE
        contact.keys_used = ()
        for flight in list(self.fetches.flights.values()):
            if flight.asking is not None or self.routes[flight.key] != contact.server:
                continue
            if self.is_hit(now, flight.key):
                as_of = self.entries[flight.key].as_of
                self._answer(flight, tuple(flight.starters), "hit", as_of=as_of)
            else:
                self.send_fetch(now, flight)
        for write in list(self.fetches.writes.values()):
            if write.asking is None and self.routes[write.key] == contact.server:
                self.send_write(now, contact, write)

    def _answer(
        self,
        flight: Flight,
        tickets: tuple[int, ...],
        outcome: Outcome,
        value: Value = b"",
        as_of: AsOf | None = None,
        detail: str = "",
    ) -> None:
        del self.fetches.flights[flight.key]
        if tickets:
            said = TellReaders(tickets, flight.key, outcome, value, as_of, detail)
            self._actions.append(said)

    # --- what the application does ---

    def on_used(self, now: Instant, server: str, keys: tuple[Key, ...]) -> None:
        contact = self.contacts.get(server)
        if contact is None or contact.reader == NOBODY:
            return
        if not keys and contact.until - now > contact.term_ns * 2 // 3:
            return  # a fetch has renewed it meanwhile
        contact.used, contact.keys_used = True, keys
        self.renew(now, contact)

    def _on_evicted(self, keys: tuple[Key, ...]) -> None:
        for key in keys:
            self.entries.pop(key, None)

    def on_saw(self, key: Key, as_of: AsOf) -> None:
        """An answer under way may be older; the answer to any later question is not (C5)."""
        if self.history and as_of.history == self.history:
            self.fetches.raise_to(key, as_of.version)
        entry = self.entries.get(key)
        if entry is not None and not entry.as_of.covers(as_of):
            del self.entries[key]
            self._actions.append(DropEntries((key,)))
        flight = self.fetches.flights.get(key)
        if flight is not None and flight.asking is not None:
            flight.void()
            flight.retry_at = Instant(0)
            self.fetches.next_at = Instant(0)

    def _on_routes(self, now: Instant, event: RoutesChanged) -> None:
        """Take new routes: ask the new servers of ranges about the entries that came along."""
        self.routes = RangeMap.of(event.routes, None)
        suspects: dict[str, list[Key]] = {}
        for key, entry in self.entries.items():
            server = self.routes[key]
            if server is not None and not entry.is_live:
                suspects.setdefault(server, []).append(key)
        for flight in self.fetches.flights.values():
            if self.routes[flight.key] not in (None, flight.server):
                flight.void()
                self.send_fetch(now, flight)
        self._leave_servers(frozenset(each for each in self.routes.values() if each))
        for server, keys in suspects.items():
            contact = self.contact(server)
            contact.used, contact.keys_used = True, tuple(keys)
            if contact.reader == NOBODY:
                self.get_lease(now, contact)
            else:
                self.renew(now, contact)

    def _leave_servers(self, serving: frozenset[str]) -> None:
        """Leave servers that serve nothing any longer: no entry of theirs is live."""
        for server in [each for each in self.contacts if each not in serving]:
            self._say_bye(self.contacts.pop(server))

    def _say_bye(self, contact: Contact) -> None:
        reader, epoch = contact.reader, contact.epoch
        if reader != NOBODY:
            self.doubt_all(contact)
            self._actions.append(
                TellServer(contact.server, Bye(client=contact.nonce, epoch=epoch, reader=reader))
            )

    def _on_leave(self) -> None:
        for flight in list(self.fetches.flights.values()):
            self._answer(flight, (*flight.starters, *flight.joiners), "unreachable")
        for write in list(self.fetches.writes.values()):
            self.end_write(write, "unknown" if write.asking else "unreachable")
        for contact in self.contacts.values():
            self._say_bye(contact)
        self.contacts.clear()

    # --- what may be read of it ---

    def view(self) -> CacheView:
        """The view for the shell that runs this machine."""
        return CacheView(
            entries=len(self.entries),
            live=sum(entry.is_live for entry in self.entries.values()),
            flights=len(self.fetches.flights),
            writes=len(self.fetches.writes),
            in_touch=tuple(
                contact.server for contact in self.contacts.values() if contact.reader != NOBODY
            ),
        )

    def invariants(self) -> None:
        """A live entry has a present reader number, and every reader that waits has a question."""
        readers = {contact.reader for contact in self.contacts.values()} - {NOBODY}
        for key, entry in self.entries.items():
            assert not entry.is_live or entry.reader in readers, key
        for flight in self.fetches.flights.values():
            assert flight.starters or flight.joiners or flight.audited, flight.key
