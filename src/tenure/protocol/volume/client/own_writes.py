"""A client's own writes: a client that writes acknowledges thereby (V9).

A write is sent once, and only while there is a volume lease, or when the server has just said that
it gives none (V20): a client that has just been answered is on record, so its write is not refused
for lack of a record. If no answer comes, the outcome is unknown, and the application is told so.
"""

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.protocol.volume.client.contacts import Contact
from tenure.protocol.volume.client.events import (
    DropEntries,
    TellServer,
    TellWriter,
    WriteOutcome,
    WriteWanted,
)
from tenure.protocol.volume.client.fetches import NOTHING_IS_KEPT, OwnWrite, Question
from tenure.protocol.volume.client.fills import Fills
from tenure.protocol.volume.messages import (
    AsOf,
)


class OwnWriting(Fills):
    """The part of a client that writes through its server's store."""

    def on_write_wanted(self, now: Instant, event: WriteWanted) -> None:
        write = OwnWrite(event.ticket, event.key, event.value, now)
        server = self.routes[event.key]
        self.fetches.due_by(Instant(now + self.config.write_patience_ns))
        if server is None:
            self._actions.append(TellWriter(event.ticket, event.key, "elsewhere"))
            return
        contact = self.contact(server)
        if contact.runs(now):
            self.send_write(now, contact, write)
            return
        self.fetches.writes[-self.next_sequence()] = write  # a number under which nobody answers
        self.get_lease(now, contact)

    def send_write(self, now: Instant, contact: Contact, write: OwnWrite) -> None:
        """Send a write, which acknowledges: the client's entry, and every answer under way, are
        dead (V9).
        """
        self._forget_write(write)
        self.kill_before_writing(write.key)
        sequence = self.next_sequence()
        write.server = contact.server
        write.asking = Question(sequence, now, (write.key,))
        self.fetches.writes[sequence] = write
        self._actions.append(TellServer(contact.server, self.write_message(contact, write)))

    def kill_before_writing(self, key: Key) -> None:
        """Kill the entry of what is to be written, and every answer about it that is under way."""
        self.fetches.raise_to(key, NOTHING_IS_KEPT)
        for contact in self.contacts.values():
            for asking in contact.asked():
                asking.marks.raise_to(key, NOTHING_IS_KEPT)
        self.entries.pop(key, None)
        self._actions.append(DropEntries((key,)))  # also what was known last

    def _forget_write(self, write: OwnWrite) -> None:
        for sequence, each in list(self.fetches.writes.items()):
            if each is write:
                del self.fetches.writes[sequence]

    def end_write(
        self, write: OwnWrite, outcome: WriteOutcome, as_of: AsOf | None = None, detail: str = ""
    ) -> None:
        self._forget_write(write)
        self._actions.append(TellWriter(write.ticket, write.key, outcome, as_of, detail))
