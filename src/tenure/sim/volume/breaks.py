"""How each canary of caches breaks its rule: the replacement of a method while it runs."""

from collections.abc import Callable, Iterable
from typing import Any

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.base.machine import Output
from tenure.protocol.volume.client import CacheMachine
from tenure.protocol.volume.contacts import Contact
from tenure.protocol.volume.entries import Entries
from tenure.protocol.volume.epochs import Opening
from tenure.protocol.volume.fetches import Flight, Question
from tenure.protocol.volume.fills import Fills
from tenure.protocol.volume.loads import Loading, LoadsUnderWay
from tenure.protocol.volume.messages import AsOf, Fetched, Item, Listed
from tenure.protocol.volume.read_leases import ReadLeases
from tenure.protocol.volume.readers import ReaderRecord, Readers
from tenure.protocol.volume.server import VolumeServer
from tenure.protocol.volume.terms import Terms
from tenure.protocol.volume.versions import Version, Versions
from tenure.protocol.volume.write_turns import WriteTurns
from tenure.protocol.volume.writes import Acknowledgements, Writing
from tenure.sim.volume.store import Fence, FencedStore

original_end_term = VolumeServer.end_term
original_begin: Callable[..., None] = Versions.begin
original_server_handle = VolumeServer.handle
original_fenced: Callable[..., None] = VolumeServer.__dict__["_on_fenced"]


def always(*_: object) -> bool:
    return True


def never(*_: object) -> bool:
    return False


def nothing(*_: object) -> None:
    return None


# --- V1: what readers look at, and in which order it changes ---


def live_before_lease(self: Entries, key: Key, clock: Callable[[], Instant]) -> Any:
    """Whether the entry is live is looked at before the end of the lease."""
    found = self.objects.get(key)
    if found is None or not found.is_live:
        return None
    until = found.lease.until
    now = clock()
    found.lease.used = True
    return found if now < until and now < found.until else None


def lease_before_items(
    self: Fills, now: Instant, contact: Contact, asking: Question, term_ns: int, items: Any
) -> None:
    """The volume lease is believed before its items are applied."""
    self.believe(now, contact, asking, term_ns)
    self.apply_items(contact, items)


def acknowledged_at_once(self: CacheMachine, contact: Contact, message: Any) -> None:
    """Items are acknowledged before they are applied."""
    if not self.is_of_present_reader(contact, message):
        return
    self.acknowledge(contact, message.items)
    self.apply_items(contact, message.items)


# --- V2, V3: numbers and anchors ---


def items_of_any_reader(self: CacheMachine, contact: Contact, message: Any) -> bool:
    """Items that are meant for another reader number are taken too."""
    del self, message
    return bool(contact.reader)


def unapplied_but_acknowledged(self: CacheMachine, contact: Contact, message: Any) -> None:
    """Items for an unknown reader number are acknowledged, and not applied."""
    if self.is_of_present_reader(contact, message):
        self.apply_items(contact, message.items)
    kept = contact.epoch, contact.reader
    contact.epoch, contact.reader = message.epoch, message.reader
    self.acknowledge(contact, message.items)
    contact.epoch, contact.reader = kept


def any_older_answer(self: Any, asking: Question, sequence: int) -> bool:
    """An answer to an older question counts as one to the newest."""
    del self
    return sequence <= asking.sequence


def counted_from_receipt(asking: Question, now: Instant, duration_ns: int) -> Instant:
    """A lease is counted from when its answer came."""
    del asking
    return Instant(now + duration_ns)


def as_long_as_told(self: Terms, told_ns: int) -> int:
    """The server counts only on the durations that it told."""
    del self
    return told_ns


# --- V4, V6, V17: items ---


def no_items(*_: object) -> tuple[Item, ...]:
    return ()


def only_by_acknowledging(self: Acknowledgements, now: Instant) -> bool:
    """A reader that is silent is waited for until it is forgotten."""
    del now
    return not self.missing


def half_as_long(reader: ReaderRecord, lease_until: Instant) -> Instant:
    """A write waits half as long, counted from when the reader was heard."""
    until = min(reader.volume_until, lease_until)
    return Instant(reader.heard_at + (until - reader.heard_at) // 2)


# --- V7, V8: fills ---


def marks_of_contacts_stay(self: Fills, contact: Contact, item: Item) -> None:
    """The marks of a Renew or Reconnect are not raised by an item."""
    del contact
    self.fetches.apply(item)


def held_whatever_it_has(now: Instant, reader: ReaderRecord, listed: Listed) -> bool:
    """Whatever is listed is current while an object lease runs."""
    right = reader.leases.get(listed.key)
    return right is not None and now < right.until


def all_that_are_listed(self: ReadLeases, key: Key, version: tuple[int, int]) -> bool:
    """Every listed entry of an object that is served is current."""
    del version
    return self.context.served[key] is not None


# --- V9: own writes ---


def always_its_own(self: WriteTurns, reader: ReaderRecord, key: Key, writing: Writing) -> bool:
    """A writer is not waited for, whenever its lease was given."""
    del self, key
    return writing.writer is not None and writing.writer.reader == reader.number


def the_last(before: int, sequence: int) -> int:
    """Remember the request that came last."""
    del before
    return sequence


# --- V10: one flight ---


def for_all(
    self: CacheMachine, now: Instant, flight: Flight, message: Fetched, as_of: AsOf
) -> None:
    """Readers that joined a fetch take what it brought."""
    del now
    tickets = (*flight.starters, *flight.joiners)
    self._answer(flight, tickets, message.kind, message.value, as_of)


def joined_though_overtaken(self: LoadsUnderWay, key: Key) -> None:
    """An overtaken load gives no lease, but still takes joiners."""
    number = self._to_join.get(key)
    if number is not None:
        self._by_number[number].overtaken = True


def never_overtaken(self: LoadsUnderWay, key: Key) -> None:
    """A body that runs changes nothing for loads under way."""


def begun_as_if_alone(self: LoadsUnderWay, key: Key, *, overtaken: bool) -> Loading:
    """A load may begin while a body runs, and is kept."""
    del overtaken
    self._last += 1
    loading = self._by_number[self._last] = Loading(self._last, key, overtaken=False)
    self._to_join[key] = loading.number
    return loading


# --- V14 to V16: who begins ---


def at_once(self: Opening, now: Instant) -> int:
    """Nobody is waited for."""
    del self, now
    return 0


def the_present_term(self: Opening, now: Instant) -> int:
    """The server waits as long as it told its readers, as if all clocks ran alike."""
    del now
    return self.config.terms.term_ns * 11 // 12


def any_number_is_the_floor(self: Versions, key_range: Any, number: int, known: Any) -> None:
    """An entry is current however old it is."""
    original_begin(self, key_range, 0 * number, known)


def floors_stay(self: Versions, key_range: Any, version: Version) -> None:
    """A write that was forgotten counts as never made."""


def by_count_alone(self: Versions, key: Key, version: Version) -> bool:
    """Versions are compared by their counts alone, whatever lease numbers they were
    counted under.
    """
    return version[1] >= self.last(key)[1]


def raised_by_nothing(self: Versions, numbers: Iterable[tuple[Key, int]]) -> None:
    """A write that has ended is not remembered."""
    del numbers
    self.count += 1


# --- V11, V12 ---


def unbounded(self: ReadLeases, received_at: Instant) -> int:
    """A volume lease lasts t_v, whatever is left of the owner's term."""
    del received_at
    return self.context.config.terms.term_ns


def term_after_the_event(self: VolumeServer, now: Instant, event: Any) -> Output[Any]:
    """The event is handled before the end of the term."""
    self.__dict__["end_term"] = nothing
    try:
        output = original_server_handle(self, now, event)
    finally:
        del self.__dict__["end_term"]
    original_end_term(self, now)
    return Output([*output.actions, *self.context.take_actions()], output.wake_at)


# --- what was asked twice, or said elsewhere ---


def believed_as_it_is(self: VolumeServer, now: Instant, event: Any) -> None:
    """The answer that the store has seen a higher number is ignored."""
    original_fenced(self, now, type(event)(event.number))


def whatever_its_number(self: FencedStore, fence: Fence, key: Key, value: bytes) -> bool:
    """The store takes the writes of past servers."""
    del fence
    self.values[key] = value
    return True


def kept_under_another_number(self: CacheMachine, contact: Contact) -> None:
    """No entry becomes suspect, and the volume lease runs on."""
    del self
    contact.reader = 0


def not_at_all(*_: object) -> Instant:
    """Return the beginning of time."""
    return Instant(0)


def nobody(*_: object) -> list[ReaderRecord]:
    return []


def who_is_silent(self: Readers, now: Instant) -> list[ReaderRecord]:
    """A reader is forgotten after half a term without a word."""
    return [each for each in self if now >= each.heard_at + self.terms.term_ns // 2]
