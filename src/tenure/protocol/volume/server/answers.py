"""The answers of a server to readers: leases, objects, and places on record.

Every message that gives a volume lease is made here, with all that its reader has not acknowledged
(V4).
"""

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.protocol.volume.limits import FETCHES_OF_A_READER
from tenure.protocol.volume.messages import (
    Acknowledge,
    Bye,
    Elsewhere,
    Fetch,
    Fetched,
    FetchedKind,
    Reconnect,
    Reconnected,
    Renew,
    Renewed,
    RequestRefused,
    UnknownReader,
    Value,
    Write,
    WriteDone,
)
from tenure.protocol.volume.noted import VolumeServerKind
from tenure.protocol.volume.server.context import VolumeContext
from tenure.protocol.volume.server.events import BodyEnded, LoadObject, ObjectLoaded
from tenure.protocol.volume.server.loads import Asked
from tenure.protocol.volume.server.read_leases import ReadLeases
from tenure.protocol.volume.server.readers import ReaderRecord, label_of
from tenure.protocol.volume.server.writes import Writer


class Answers:
    """The answers of a server."""

    def __init__(self, context: VolumeContext, leases: ReadLeases) -> None:
        self.context = context
        self.leases = leases

    # --- who asks ---

    def find_reader(
        self, message: Renew | Fetch | Acknowledge | Write | Bye
    ) -> ReaderRecord | None:
        """The reader to which a message belongs, under the present epoch and its present number
        (V2).
        """
        # Who asks under an earlier number may have missed items of that time (V2, V8).
        if message.epoch != self.context.epoch or self.context.epoch == 0:
            return None
        return self.context.readers.find(message.client, message.reader)

    def answer_unknown(self, message: Renew | Fetch | Acknowledge | Write | Bye) -> None:
        """Tell a client that is not on record to reconnect (V8)."""
        if isinstance(message, Acknowledge | Bye):
            return
        self.context.note(VolumeServerKind.NOT_ON_RECORD, label_of(message.client))
        if self.context.is_closed:
            self.context.refuse(message, "closed")
        else:
            self.context.tell(
                message.client, UnknownReader(client=message.client, sequence=message.sequence)
            )

    def is_here(self, message: Fetch | Write) -> bool:
        """Whether the object is served here. If not, answer so."""
        if self.context.served[message.key] is not None:
            return True
        self.context.tell(
            message.client, Elsewhere(client=message.client, sequence=message.sequence)
        )
        return False

    # --- answers ---

    def answer_reconnect(self, now: Instant, reader: ReaderRecord, message: Reconnect) -> None:
        """Tell a reader that is on record from here on."""
        term_ns = self.leases.give_volume(now, reader, now)
        live = self.leases.live(now, reader, message)
        answer = Reconnected(
            client=message.client,
            sequence=message.sequence,
            epoch=self.context.epoch,
            history=self.context.history,
            reader=reader.number,
            term_ns=term_ns,
            lease_ns=self.context.config.terms.lease_ns,
            live=live,
        )
        self.context.note(VolumeServerKind.ON_RECORD, label_of(message.client))
        self.context.tell(message.client, answer)

    def on_renew(self, now: Instant, reader: ReaderRecord, message: Renew) -> None:
        """Give another volume lease."""
        if now < reader.muted_until:
            self.context.refuse(message, "mute", again_ns=reader.muted_until - now)
            return
        term_ns = self.leases.give_volume(now, reader, now)
        live = self.leases.live(now, reader, message)
        answer = Renewed(
            epoch=self.context.epoch,
            reader=reader.number,
            sequence=message.sequence,
            term_ns=term_ns,
            lease_ns=self.context.config.terms.lease_ns,
            live=live,
            items=reader.unacknowledged(),  # with every volume lease (V4)
        )
        self.context.tell(message.client, answer)

    def on_fetch(self, now: Instant, reader: ReaderRecord, message: Fetch) -> None:
        """Answer with an object: from the store, unless the client has it already."""
        if not self.is_here(message):
            return
        key = message.key
        # Readers of a dead owner may still hit what this one has lost (V13).
        if now < self.context.served.reads_from(key):
            self.context.refuse(
                message, "quiet", again_ns=self.context.served.reads_from(key) - now
            )
            return
        if reader.fetches >= FETCHES_OF_A_READER:
            self.context.refuse(message, "too many")
            return
        asked = Asked(message.client, reader.number, message.sequence, now)
        as_of = message.as_of
        if (
            as_of is not None
            and as_of.history == self.context.history
            and self.leases.is_current(key, as_of.version)
            and not self.context.writes.is_written(key)
        ):
            self._answer_fetch(now, reader, asked, key, "unchanged", b"", overtaken=False)
            return
        reader.fetches += 1
        loading = self.context.loads.to_join(key)
        if loading is None:
            loading = self.context.loads.begin(key, overtaken=self.context.writes.is_running(key))
            self.context.act(LoadObject(loading.number, key, self.context.served.number_of((key,))))
        loading.asked.append(asked)

    def on_loaded(self, now: Instant, event: ObjectLoaded) -> None:
        """Give a loaded value to the readers that waited for it."""
        loading = self.context.loads.end(event.load)
        if loading is None:
            self.context.note(VolumeServerKind.STRANGE_EVENT, f"load {event.load}")
            return
        if event.failed:
            self.context.note(VolumeServerKind.LOAD_FAILED, event.failed)
        if loading.overtaken:
            self.context.note(VolumeServerKind.OVERTAKEN)
        kind: FetchedKind = "absent" if event.value is None else "value"
        for asked in loading.asked:
            reader = self.context.readers.find(asked.client, asked.reader)
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
                self.context.tell(asked.client, refused)
            # Others may have written there meanwhile, even if the range is back (V10).
            elif loading.has_moved or self.context.served[loading.key] is None:
                self.context.tell(
                    asked.client, Elsewhere(client=asked.client, sequence=asked.sequence)
                )
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
        term_ns = self.leases.give_volume(now, reader, asked.received_at)
        number, count = self.context.version_of(key)
        lease_ns = 0
        # A body may have written since it was read: told once, it is not kept (V10).
        if not overtaken:
            lease_ns = self.leases.give_object(
                now, reader, key, asked.sequence, asked.received_at, (number, count)
            )
        answer = Fetched(
            epoch=self.context.epoch,
            reader=reader.number,
            sequence=asked.sequence,
            key=key,
            kind=kind,
            value=value,
            number=number,
            count=count,
            term_ns=term_ns,
            lease_ns=lease_ns,
            items=reader.unacknowledged(),  # with every volume lease (V4)
        )
        self.context.tell(asked.client, answer)

    def answer_write(self, now: Instant, writer: Writer, ended: BodyEnded) -> None:
        """Answer a client's write whose body has ended: the answer fills the client's
        entry (V9).
        """
        reader = self.context.readers.find(writer.client, writer.reader)
        if reader is None:
            return
        term_ns = self.leases.give_volume(now, reader, writer.received_at)
        number, count = self.context.version_of(writer.key)
        lease_ns = 0
        # Nobody knows what a body has stored that raised.
        if ended.ok:
            lease_ns = self.leases.give_object(
                now, reader, writer.key, writer.sequence, writer.received_at, (number, count)
            )
        answer = WriteDone(
            epoch=self.context.epoch,
            reader=reader.number,
            sequence=writer.sequence,
            key=writer.key,
            ok=ended.ok,
            detail=ended.detail[:2000],
            number=number,
            count=count,
            term_ns=term_ns,
            lease_ns=lease_ns,
            items=reader.unacknowledged(),  # with every volume lease (V4)
        )
        self.context.tell(writer.client, answer)

    def answer_failed(self, writer: Writer) -> None:
        """Answer a client's write whose body will not run."""
        self.context.tell(writer.client, Elsewhere(client=writer.client, sequence=writer.sequence))
