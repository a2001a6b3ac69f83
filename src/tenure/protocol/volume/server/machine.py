"""The server of a volume: it gives read leases, and writes when no reader can read the old value.

It decides two things. It gives an object lease only while no write of the object has its turn, and
no range with the object is withdrawn. It runs a write's body once every reader that may hit the old
value has acknowledged, or can no longer hit (V5). All other rules keep these two true. They say
what a volume lease carries (V4), from when leases count (V3), which readers are forgotten (V8,
V17), and how long a server waits if it knows nothing of its predecessor's readers (V13, V16).

The server of an owner serves ranges that come and go, under the owner's term (V11, V12). A server
without owners is *alone*: it serves everything once it has opened.
"""

from random import Random
from typing import assert_never

from tenure.base.instants import Instant
from tenure.base.machine import Output
from tenure.base.ranges import WHOLE
from tenure.protocol.volume.limits import NONCE_LIMIT, READERS
from tenure.protocol.volume.messages import (
    Acknowledge,
    Bye,
    Fetch,
    Reconnect,
    Renew,
    ToVolumeServer,
    Write,
)
from tenure.protocol.volume.noted import VolumeServerKind
from tenure.protocol.volume.server.answers import Answers
from tenure.protocol.volume.server.context import VolumeContext
from tenure.protocol.volume.server.events import (
    BodyEnded,
    ClientAsked,
    DrainAsked,
    Drained,
    FenceRaised,
    MemoryPersisted,
    ObjectLoaded,
    PersistMemory,
    RaiseFence,
    RangeGranted,
    ReaderView,
    ServerAction,
    ServerConfig,
    ServerEvent,
    StopAsked,
    TermEnded,
    TermMoved,
    VolumeClosed,
    VolumeMemory,
    VolumeServerView,
    WriteAsked,
    WriteGivenUp,
)
from tenure.protocol.volume.server.invalidations import Invalidations
from tenure.protocol.volume.server.read_leases import ReadLeases
from tenure.protocol.volume.server.served_ranges import Serving
from tenure.protocol.volume.server.withdrawn_ranges import Withdrawals
from tenure.protocol.volume.server.write_turns import WriteTurns


class VolumeServer:
    """The machine of a server."""

    def __init__(self, config: ServerConfig, random: Random) -> None:
        self.config = config
        self.context = VolumeContext(config, random)
        self.invalidations = Invalidations(self.context)
        self.leases = ReadLeases(self.context, self.invalidations)
        self.answers = Answers(self.context, self.leases)
        self.writing = WriteTurns(self.context, self.invalidations, self.answers)
        self.withdrawals = Withdrawals(self.context, self.invalidations)
        self._has_begun = not config.alone
        self._moving = False
        """Whether a later end of leases is being written down."""

    # --- the door ---

    def handle(self, now: Instant, event: ServerEvent) -> Output[ServerAction]:
        """Do what is due, then take an event."""
        self._advance(now)
        match event:
            case ClientAsked(message=message):
                self._on_message(now, message)
            case WriteAsked(ticket=ticket, keys=keys):
                self.writing.on_write_asked(now, ticket, keys)
            case WriteGivenUp(ticket=ticket):
                self.writing.on_given_up(now, ticket)
            case BodyEnded():
                self.writing.on_body_ended(now, event)
            case ObjectLoaded():
                self.answers.on_loaded(now, event)
            case TermMoved(until=until, longest_ns=longest_ns):
                self.context.term_until, self.context.longest_ns = until, longest_ns
                self._advance(now)
            case RangeGranted():
                self._on_granted(now, event)
            case DrainAsked():
                self.withdrawals.on_drain_asked(now, event.range, served=event.served)
            case MemoryPersisted(memory=memory):
                self._on_persisted(memory)
            case FenceRaised():
                self._on_fenced(now, event)
            case StopAsked():
                self._on_stop(now)
            case _:
                assert_never(event)
        self._settle(now)
        return self._output(now)

    def advance(self, now: Instant) -> Output[ServerAction]:
        """Do what is due."""
        self._advance(now)
        return self._output(now)

    def _advance(self, now: Instant) -> None:
        if not self._has_begun:
            self._has_begun = True
            self.context.act(PersistMemory(self.context.opening.begin(now)))
        # First: nothing is decided under a term that is over (P6, V11).
        self.end_term(now)
        for reader in self.context.readers.forgettable(now):
            self.invalidations.forget(reader, VolumeServerKind.FORGOTTEN)
        self.writing.look_at_due(now)
        self.withdrawals.look_at_due(now)
        self._settle(now)
        if (
            self.context.opening.phase == "open"
            and self.context.opening.is_to_be_moved(now)
            and not self._moving
        ):
            self._moving = True
            self.context.act(PersistMemory(self.context.opening.memory(now)))

    def _settle(self, now: Instant) -> None:
        """Let writes and drains go on that have nothing left to wait for.

        Writes come first, so that those in a departing range that may still run do run.
        """
        writes, drains = self.context.writes, self.context.drains
        while waits := self.context.take_to_look_at():
            for wait in waits:
                writing = writes.get(wait)
                if writing is not None:
                    self.writing.proceed(now, writing)
            for wait in waits:
                drain = drains.get(wait)
                if drain is not None:
                    self.withdrawals.proceed(now, drain)
        if self.context.is_stopping and not len(drains):
            self._stop(now)

    def _output(self, now: Instant) -> Output[ServerAction]:
        # Nothing outlives the term: no epoch, and so nobody on record (V11).
        assert not self.context.epoch or now < self.context.term_until, self.context.term_until
        assert self.context.epoch or not len(self.context.readers), len(self.context.readers)
        wake_at = min(
            self.context.readers.next_at, self.context.writes.next_at, self.context.drains.next_at
        )
        if self.context.epoch:
            wake_at = min(wake_at, self.context.term_until)
        return Output(self.context.take_actions(), max(wake_at, now))

    # --- beginning and ending, without owners ---

    def _on_persisted(self, memory: VolumeMemory) -> None:
        opening = self.context.opening
        if opening.phase == "stopping":
            opening.phase = "stopped"
            self.context.act(VolumeClosed())
        elif memory.number == opening.number:
            self._moving = False
            opening.persisted(memory)
            if opening.phase == "persisting":
                opening.phase = "fencing"
                # Not before it is written down: a number that is lost would be drawn twice (V16).
                self.context.act(RaiseFence(opening.number))

    def _on_fenced(self, now: Instant, event: FenceRaised) -> None:
        opening = self.context.opening
        if opening.phase != "fencing" or event.number != opening.number:
            return
        if event.refused_by >= opening.number:
            self.context.note(VolumeServerKind.WENT_BACK, f"the store has seen {event.refused_by}")
            opening.phase = "persisting"
            self.context.act(PersistMemory(opening.went_back(now, event.refused_by)))
            return
        opening.phase = "open"
        self.context.epoch = self.context.history = opening.epoch
        # Reads begin at once, as the state is in the store; writes wait for the quiet (V16).
        self.context.served.begin(WHOLE, Serving(opening.number, opening.quiet_until))
        self.context.versions.begin(WHOLE, opening.number, None)
        self.context.note(VolumeServerKind.OPENED, f"under {opening.number}")

    def _on_stop(self, now: Instant) -> None:
        self.context.is_stopping = True
        self.withdrawals.on_drain_asked(now, WHOLE, served=False)

    def _stop(self, now: Instant) -> None:
        if self.context.opening.phase in ("stopping", "stopped"):
            return
        if self.context.opening.phase != "open":  # as at an owner, always
            self.context.opening.phase = "stopped"
            self.context.act(VolumeClosed())
            return
        self.context.opening.phase = "stopping"
        self.context.act(PersistMemory(self.context.opening.last_memory(now)))

    # --- under an owner's term ---

    def end_term(self, now: Instant) -> None:
        """End the owner's term, and with it every read lease (V11)."""
        if now < self.context.term_until or self.context.epoch == 0:
            return
        self.context.note(VolumeServerKind.TERM_ENDED)
        self.context.act(TermEnded())
        # From here on every message is of a past epoch (V2).
        self.context.epoch = 0
        self.context.served.clear()
        self.context.versions.clear()
        self.context.readers.clear()
        self.context.loads.clear()
        for writing in self.context.writes.clear():
            self.writing.fail(writing, "moved")
        for drain in self.context.drains.clear():
            if not drain.is_over:
                self.context.act(Drained(drain.range))

    def _on_granted(self, now: Instant, event: RangeGranted) -> None:
        if self.context.is_stopping or now >= self.context.term_until:
            return
        if self.context.epoch == 0:
            self.context.epoch = self.context.random.randrange(1, NONCE_LIMIT)
        if event.history != self.context.history:
            self.context.history = event.history
        if self.context.served.is_under(event.range, event.number):
            for drain in self.context.drains.all():
                if event.range.covers(drain.range):
                    drain.taken_back = True
            return
        quiet_until = Instant(now + event.quiet_ns)
        # Knowledge of the writes comes only with state that did not die. Otherwise the state is
        # read as lost, and to readers that may still hit it that is a write (V13).
        is_lost = event.known is None and not self.config.durable
        reads_from = quiet_until if is_lost else Instant(0)
        # What is being read may be from before the grant (V10).
        self.context.loads.move(event.range)
        self.context.served.begin(event.range, Serving(event.number, quiet_until, reads_from))
        self.context.versions.begin(event.range, event.number, event.known)

    # --- what clients say ---

    def _on_message(self, now: Instant, message: ToVolumeServer) -> None:
        if isinstance(message, Reconnect):
            self._on_reconnect(now, message)
            return
        reader = self.answers.find_reader(message)
        if reader is None:
            self.answers.answer_unknown(message)
            return
        self.context.readers.hear(now, reader)
        match message:
            case Renew():
                self.answers.on_renew(now, reader, message)
            case Fetch():
                self.answers.on_fetch(now, reader, message)
            case Acknowledge(items=items):
                self.invalidations.acknowledged(reader, items)
            case Write():
                self.writing.on_write(now, reader, message)
            case Bye():
                self.invalidations.forget(reader, VolumeServerKind.FORGOTTEN)
            case _:
                assert_never(message)

    def _on_reconnect(self, now: Instant, message: Reconnect) -> None:
        """Put the sender on record. It has only suspects, so all items of its earlier reader are
        acknowledged (V8).
        """
        if self.context.is_closed:
            self.context.refuse(message, "closed")
            return
        if not self.context.readers.is_newer(message.client, message.sequence):
            self.context.note(VolumeServerKind.OLD_REQUEST, "reconnect")
            return
        before = self.context.readers.of_client(message.client)
        if before is not None:
            self.invalidations.forget(before, VolumeServerKind.ON_RECORD)
        elif len(self.context.readers) >= READERS:
            self.context.refuse(message, "too many")
            return
        reader = self.context.readers.add(now, message.client, message.sequence)
        if before is not None:
            # Coming anew is no way out of being mute (V20).
            reader.muted_until, reader.missed = before.muted_until, before.missed
        self.answers.answer_reconnect(now, reader, message)

    # --- what may be read of it ---

    def view(self) -> VolumeServerView:
        """The view for the shell that runs this machine."""
        return VolumeServerView(
            epoch=self.context.epoch,
            is_open=not self.context.is_closed,
            readers=tuple(
                ReaderView(
                    each.client, each.heard_at, each.volume_until, len(each.leases), len(each.items)
                )
                for each in self.context.readers
            ),
            leases=self.context.readers.leases,
            writes=len(self.context.writes),
            loads=len(self.context.loads),
            drains=len(self.context.drains),
            known_writes=len(self.context.versions),
            count=self.context.versions.count,
        )

    def invariants(self) -> None:
        """The server's parts agree, and nothing is held that is not served."""
        self.context.readers.invariants()
        self.context.writes.invariants()
        self.context.versions.invariants()
        assert self.context.epoch or not len(self.context.readers)
        for drain in self.context.drains.all():
            if not drain.taken_back:
                held = self.context.readers.held_in(drain.range)
                assert not held, (drain.range, held)
        for writing in self.context.writes.waiting():
            for key in writing.keys:
                assert not self.context.readers.holders(key), key
