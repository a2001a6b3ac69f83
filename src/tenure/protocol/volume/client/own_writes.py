"""A client's own writes: a client that writes acknowledges thereby (V9).

A write is sent once, and only while there is a volume lease, or when the server has just said that
it gives none (V20): a client that has just been answered is on record, so its write is not refused
for lack of a record. If no answer comes, the outcome is unknown, and the application is told so.
"""

from tenure.base.instants import Instant
from tenure.protocol.volume.client.belief import EntryBelief
from tenure.protocol.volume.client.contacts import Contact
from tenure.protocol.volume.client.context import ClientContext
from tenure.protocol.volume.client.events import TellWriter, WriteOutcome, WriteWanted
from tenure.protocol.volume.client.fetches import OwnWrite
from tenure.protocol.volume.client.questions import CacheQuestions
from tenure.protocol.volume.messages import AsOf, WriteDone
from tenure.protocol.volume.noted import CacheKind


class OwnWrites:
    """The part of a client that writes through its server's store."""

    def __init__(
        self, context: ClientContext, belief: EntryBelief, questions: CacheQuestions
    ) -> None:
        self.context = context
        self.belief = belief
        self.questions = questions
        self.writes = context.fetches.writes

    def on_wanted(self, now: Instant, event: WriteWanted) -> None:
        write = OwnWrite(event.ticket, event.key, event.value, now)
        server = self.context.routes[event.key]
        self.context.fetches.due_by(self._patience_ends(write))
        if server is None:
            self.context.act(TellWriter(event.ticket, event.key, "elsewhere"))
            return
        contact = self.context.contact(server)
        if contact.runs(now):
            self._send(now, contact, write)
            return
        # Under this number nobody answers.
        self.writes[-self.questions.next_sequence()] = write
        self.questions.get_lease(now, contact)

    def on_lease(self, now: Instant, contact: Contact) -> None:
        """Send the writes that waited until the server gave a lease, or a place on record."""
        for write in list(self.writes.values()):
            if write.asking is None and self.context.routes[write.key] == contact.server:
                self._send(now, contact, write)

    def _send(self, now: Instant, contact: Contact, write: OwnWrite) -> None:
        """Send a write, which acknowledges: the client's entry, and every answer under way, are
        dead (V9).
        """
        self._forget(write)
        # Before it is sent: to the server the write itself is the acknowledgement (V9).
        self.context.void_answers(write.key)
        self.belief.drop(write.key)
        self.questions.write(now, contact, write)

    def on_done(self, now: Instant, contact: Contact, message: WriteDone) -> None:
        write = self.sent(message.sequence)
        asking = None if write is None else write.asking
        if (
            write is None
            or asking is None
            or write.server != contact.server
            or not contact.is_addressed_by(message)
        ):
            self.context.note(CacheKind.OLD_ANSWER, "write done")
            return
        self.belief.take(now, contact, asking, message.term_ns, message.items)
        if message.ok:
            self.belief.fill(now, contact, asking, message, "value", write.value)
        self.belief.acknowledge(contact, message.items)
        as_of = self.belief.as_of(message.number, message.count)
        self.end(write, "written" if message.ok else "failed", as_of, message.detail)

    def on_unknown(self, contact: Contact) -> None:
        """A server that does not know the client may have written before it forgot it."""
        for write in list(self.writes.values()):
            if write.server == contact.server and write.asking is not None:
                self.end(write, "unknown")

    def on_time(self, now: Instant) -> None:
        """Tell the writers that have waited long enough. What was never sent is not written."""
        for write in list(self.writes.values()):
            patience_ends = self._patience_ends(write)
            if now >= patience_ends:
                self.end(write, "unreachable" if write.asking is None else "unknown")
            else:
                self.context.fetches.due_by(patience_ends)

    def end_all(self) -> None:
        for write in list(self.writes.values()):
            self.end(write, "unreachable" if write.asking is None else "unknown")

    def sent(self, sequence: int) -> OwnWrite | None:
        """The write that was sent under this number."""
        write = self.writes.get(sequence)
        return None if write is None or write.asking is None else write

    def end(
        self, write: OwnWrite, outcome: WriteOutcome, as_of: AsOf | None = None, detail: str = ""
    ) -> None:
        self._forget(write)
        self.context.act(TellWriter(write.ticket, write.key, outcome, as_of, detail))

    def _forget(self, write: OwnWrite) -> None:
        for sequence, each in list(self.writes.items()):
            if each is write:
                del self.writes[sequence]

    def _patience_ends(self, write: OwnWrite) -> Instant:
        return Instant(write.asked_at + self.context.config.write_patience_ns)
