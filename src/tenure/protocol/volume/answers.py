"""What a server says to those who read: leases, objects, and who is on record.

Every volume lease is given here, with all that its reader has not acknowledged (V4); and every
object lease, where no write and no drain stands against it (V5, V12).
"""

from random import Random

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.keys import Key
from tenure.base.noted import Noted
from tenure.base.rangemap import RangeMap
from tenure.protocol.volume.drains import Drains, ServedRanges
from tenure.protocol.volume.epochs import Opening
from tenure.protocol.volume.limits import (
    FETCHES_OF_A_READER,
    KNOWN_WRITES,
    LISTED,
    OBJECT_LEASES,
    READERS,
)
from tenure.protocol.volume.loads import Asked, LoadsUnderWay
from tenure.protocol.volume.messages import (
    Acknowledge,
    Bye,
    Elsewhere,
    Fetch,
    Fetched,
    FetchedKind,
    Invalidate,
    Item,
    Listed,
    Numbered,
    Reconnect,
    Reconnected,
    RefusedWhy,
    Renew,
    Renewed,
    RequestRefused,
    ToCache,
    UnknownReader,
    Value,
    Write,
    WriteDone,
)
from tenure.protocol.volume.noted import VolumeServerKind
from tenure.protocol.volume.readers import ReaderRecord, Readers
from tenure.protocol.volume.server_events import (
    BodyEnded,
    LoadObject,
    ObjectLoaded,
    ServerAction,
    ServerConfig,
    TellCache,
)
from tenure.protocol.volume.versions import NOTHING, Versions
from tenure.protocol.volume.writes import Writer, Writes


class Answering:
    """The state of a server, and its answers."""

    def __init__(self, config: ServerConfig, random: Random) -> None:
        self.config = config
        self.random = random
        self.opening = Opening(config, random)
        self.readers = Readers(config.terms, random, config.most_leases or OBJECT_LEASES)
        self.writes = Writes()
        self.drains = Drains()
        self.versions = Versions(config.known_writes or KNOWN_WRITES)
        self.loads = LoadsUnderWay()
        self.served: ServedRanges = RangeMap(None)
        self.epoch = 0
        """0: nothing is served, nobody is on record."""
        self.history = 0
        self.term_until = FAR_FUTURE if config.alone else Instant(0)
        """The owner's; without owners there is none to end."""
        self.is_stopping = False
        self._actions: list[ServerAction] = []

    # --- who asks ---

    def find_reader(
        self, message: Renew | Fetch | Acknowledge | Write | Bye
    ) -> ReaderRecord | None:
        """The reader that a message is of, under the present epoch and its present number (V2)."""
        if message.epoch != self.epoch or self.epoch == 0:
            return None
        return self.readers.find(message.client, message.reader)

    def answer_unknown(self, message: Renew | Fetch | Acknowledge | Write | Bye) -> None:
        """Whoever is not on record reconnects (V8)."""
        if isinstance(message, Acknowledge | Bye):
            return
        self.note(VolumeServerKind.NOT_ON_RECORD, str(message.client))
        if self.epoch == 0 or self.is_stopping:
            self.refuse(message, "closed")
        else:
            self.tell(
                message.client, UnknownReader(client=message.client, sequence=message.sequence)
            )

    def has_too_many_readers(self) -> bool:
        """Whether a client that was not on record may not come on it."""
        return len(self.readers) >= READERS

    def refuse(
        self, message: Reconnect | Numbered, why: RefusedWhy, detail: str = "", again_ns: int = 0
    ) -> None:
        """Say why there is no answer."""
        if why == "too many":
            self.note(VolumeServerKind.TOO_MANY, str(message.client))
        again_ns = again_ns or self.config.terms.term_ns
        refused = RequestRefused(
            client=message.client,
            sequence=message.sequence,
            why=why,
            detail=detail,
            again_ns=again_ns,
        )
        self.tell(message.client, refused)

    def is_here(self, message: Fetch | Write) -> bool:
        """Whether the object is served here; if not, that is the answer."""
        if self.served[message.key] is not None:
            return True
        self.tell(message.client, Elsewhere(client=message.client, sequence=message.sequence))
        return False

    # --- volume leases ---

    def term_for(self, now: Instant, reader: ReaderRecord, received_at: Instant) -> int:
        """How long a volume lease the reader is told of, for a request that came then."""
        if now < reader.muted_until or self.epoch == 0 or self.is_stopping:
            return 0
        return min(self.config.terms.term_ns, self.bound_ns(received_at))

    def bound_ns(self, received_at: Instant) -> int:
        """The longest that may be told, so that the lease ends within the owner's term (V11), and
        by what is written down (V16).
        """
        ends_by = min(self.term_until, self.opening.ends_by)
        return self.config.terms.told_ns(ends_by - received_at)

    def give_volume(self, now: Instant, reader: ReaderRecord, received_at: Instant) -> int:
        """A volume lease; 0 where there is none."""
        told_ns = self.term_for(now, reader, received_at)
        if told_ns:
            self.readers.give_volume(reader, received_at, told_ns)
        return told_ns

    # --- object leases ---

    def may_lease(self, now: Instant, key: Key) -> bool:
        """Whether anybody may be given an object lease on a key now."""
        return (
            self.served[key] is not None
            and not self.writes.is_written(key)
            and not self.drains.is_draining(key)
            and not self.is_stopping
            and now >= self.reads_from(key)
        )

    def give_object(
        self, now: Instant, reader: ReaderRecord, key: Key, sequence: int, received_at: Instant
    ) -> int:
        """An object lease; 0 where there is none."""
        if not self.may_lease(now, key):
            return 0
        if key not in reader.leases:
            self.readers.drop_ended(now, reader)
            self.make_room(now, reader)
            if not self.readers.has_room(now):
                return 0
        self.readers.give_object(reader, key, received_at, sequence)
        return self.config.terms.lease_ns

    def make_room(self, now: Instant, asks: ReaderRecord) -> None:
        """Too many object leases, and this reader asks for another."""
        raise NotImplementedError

    def reads_from(self, key: Key) -> Instant:
        """From when on the key may be read."""
        serving = self.served[key]
        return Instant(0) if serving is None else serving.reads_from

    def quiet_until(self, keys: tuple[Key, ...]) -> Instant:
        """From when on these may be written."""
        if not self.config.terms.is_strong:
            return Instant(0)
        servings = [self.served[key] for key in keys]
        return max((each.writes_from for each in servings if each), default=Instant(0))

    def fence_of(self, keys: tuple[Key, ...]) -> int:
        """The number under which these are written: the lowest of theirs."""
        return min((each.number for key in keys if (each := self.served[key])), default=0)

    def _live(
        self, now: Instant, reader: ReaderRecord, message: Reconnect | Renew
    ) -> tuple[Listed, ...]:
        """What is current of what is listed, with an object lease each (V8, V15)."""
        if message.history != self.history:
            return ()
        live = []
        for listed in message.listed[:LISTED]:
            key = listed.key
            if self.is_current(key, listed.version) and self.give_object(
                now, reader, key, message.sequence, now
            ):
                number, count = self.version_of(key)
                live.append(Listed(key=key, number=number, count=count))
        return tuple(live)

    def is_current(self, key: Key, version: tuple[int, int]) -> bool:
        """Whether an entry of this history is what is served (V15)."""
        return self.served[key] is not None and self.versions.is_current(key, version)

    def version_of(self, key: Key) -> tuple[int, int]:
        """As of when an object is current that is given now."""
        serving = self.served[key]
        return NOTHING if serving is None else (serving.number, self.versions.count)

    # --- answers ---

    def answer_reconnect(self, now: Instant, reader: ReaderRecord, message: Reconnect) -> None:
        """On record from here on."""
        term_ns = self.give_volume(now, reader, now)
        live = self._live(now, reader, message)
        answer = Reconnected(
            client=message.client,
            sequence=message.sequence,
            epoch=self.epoch,
            history=self.history,
            reader=reader.number,
            term_ns=term_ns,
            lease_ns=self.config.terms.lease_ns,
            live=live,
        )
        self.note(VolumeServerKind.ON_RECORD, str(message.client))
        self.tell(message.client, answer)

    def on_renew(self, now: Instant, reader: ReaderRecord, message: Renew) -> None:
        """Another volume lease."""
        if now < reader.muted_until:
            self.refuse(message, "mute", again_ns=reader.muted_until - now)
            return
        term_ns = self.give_volume(now, reader, now)
        live = self._live(now, reader, message)
        answer = Renewed(
            epoch=self.epoch,
            reader=reader.number,
            sequence=message.sequence,
            term_ns=term_ns,
            lease_ns=self.config.terms.lease_ns,
            live=live,
            items=self.items_for(reader),
        )
        self.tell(message.client, answer)

    def items_for(self, reader: ReaderRecord) -> tuple[Item, ...]:
        """What travels with each volume lease (V4)."""
        return reader.unacknowledged()

    def on_fetch(self, now: Instant, reader: ReaderRecord, message: Fetch) -> None:
        """An object: from the store, unless the client has it already."""
        if not self.is_here(message):
            return
        key = message.key
        if now < self.reads_from(key):
            self.refuse(message, "quiet", again_ns=self.reads_from(key) - now)
            return
        if reader.fetches >= FETCHES_OF_A_READER:
            self.refuse(message, "too many")
            return
        asked = Asked(message.client, reader.number, message.sequence, now)
        as_of = message.as_of
        if (
            as_of is not None
            and as_of.history == self.history
            and self.is_current(key, as_of.version)
            and not self.writes.is_written(key)
        ):
            self._answer_fetch(now, reader, asked, key, "unchanged", b"", overtaken=False)
            return
        reader.fetches += 1
        loading = self.loads.to_join(key)
        if loading is None:
            loading = self.loads.begin(key, overtaken=self.writes.is_running(key))
            self._actions.append(LoadObject(loading.number, key))
        loading.asked.append(asked)

    def on_loaded(self, now: Instant, event: ObjectLoaded) -> None:
        """Whoever waited gets what was read."""
        loading = self.loads.end(event.load)
        if loading is None:
            self.note(VolumeServerKind.STRANGE_EVENT, f"load {event.load}")
            return
        if event.failed:
            self.note(VolumeServerKind.LOAD_FAILED, event.failed)
        if loading.overtaken:
            self.note(VolumeServerKind.OVERTAKEN)
        kind: FetchedKind = "absent" if event.value is None else "value"
        for asked in loading.asked:
            reader = self.readers.find(asked.client, asked.reader)
            if reader is None:
                continue  # it has reconnected, and asks again
            reader.fetches -= 1
            if event.failed:
                refused = RequestRefused(
                    client=asked.client,
                    sequence=asked.sequence,
                    why="load failed",
                    detail=event.failed[:2000],
                )
                self.tell(asked.client, refused)
            elif self.served[loading.key] is None:
                self.tell(asked.client, Elsewhere(client=asked.client, sequence=asked.sequence))
            else:
                value = event.value or b""
                self._answer_fetch(
                    now, reader, asked, loading.key, kind, value, overtaken=loading.overtaken
                )

    def _answer_fetch(
        self,
        now: Instant,
        reader: ReaderRecord,
        asked: Asked,
        key: Key,
        kind: FetchedKind,
        value: Value,
        *,
        overtaken: bool,
    ) -> None:
        term_ns = self.give_volume(now, reader, asked.received_at)
        lease_ns = 0
        if not overtaken:
            lease_ns = self.give_object(now, reader, key, asked.sequence, asked.received_at)
        number, count = self.version_of(key)
        answer = Fetched(
            epoch=self.epoch,
            reader=reader.number,
            sequence=asked.sequence,
            key=key,
            kind=kind,
            value=value,
            number=number,
            count=count,
            term_ns=term_ns,
            lease_ns=lease_ns,
            items=self.items_for(reader),
        )
        self.tell(asked.client, answer)

    def answer_write(self, now: Instant, writer: Writer, ended: BodyEnded) -> None:
        """The body of a client's write has ended: the answer fills its entry (V9)."""
        reader = self.readers.find(writer.client, writer.reader)
        if reader is None:
            return
        term_ns = self.give_volume(now, reader, writer.received_at)
        lease_ns = 0
        if ended.ok:
            lease_ns = self.give_object(
                now, reader, writer.key, writer.sequence, writer.received_at
            )
        number, count = self.version_of(writer.key)
        answer = WriteDone(
            epoch=self.epoch,
            reader=reader.number,
            sequence=writer.sequence,
            key=writer.key,
            ok=ended.ok,
            detail=ended.detail[:2000],
            number=number,
            count=count,
            term_ns=term_ns,
            lease_ns=lease_ns,
            items=self.items_for(reader),
        )
        self.tell(writer.client, answer)

    def answer_failed(self, writer: Writer) -> None:
        """The body of a client's write will not run."""
        self.tell(writer.client, Elsewhere(client=writer.client, sequence=writer.sequence))

    def tell_items(self, number: int, items: list[Item]) -> None:
        """Tell a reader at once."""
        reader = self.readers.get(number)
        if reader is not None:
            self.tell(
                reader.client,
                Invalidate(epoch=self.epoch, reader=reader.number, items=tuple(items)),
            )

    def tell(self, client: int, message: ToCache) -> None:
        """Send."""
        self._actions.append(TellCache(client, message))

    def note(self, kind: VolumeServerKind, detail: str = "") -> None:
        """Tell of something."""
        self._actions.append(Noted(kind, "", detail))
