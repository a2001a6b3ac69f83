"""The server of a volume: it gives read leases, and writes when nobody can read the old value.

What it decides is small. An object lease is given while no write of the object has its turn, and no
range with it is withdrawn. A write's body runs once every reader that may hit the old value has
acknowledged, or can hit no more (V5). Everything else keeps these two true: what a volume lease
carries (V4), from when leases count (V3), who is forgotten (V8, V17), and what a server must wait
for that knows nothing of its predecessor's readers (V13, V16).

The server of an owner serves ranges that come and go, under the owner's term (V11, V12). A server
without owners is *alone*: it serves everything, from when it has opened.
"""

from random import Random
from typing import assert_never

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.machine import Output
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import WHOLE, KeyRange
from tenure.protocol.volume.drains import Serving
from tenure.protocol.volume.invalidations import Invalidating
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
from tenure.protocol.volume.readers import NONCE_LIMIT
from tenure.protocol.volume.server_events import (
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
    TermMoved,
    VolumeClosed,
    VolumeMemory,
    VolumeServerView,
    WriteAsked,
    WriteGivenUp,
)


class VolumeServer(Invalidating):
    """The machine of a server."""

    def __init__(self, config: ServerConfig, random: Random) -> None:
        super().__init__(config, random)
        self._has_begun = not config.alone
        self._moving = False
        """A later end of leases is being written down."""

    # --- the door ---

    def handle(self, now: Instant, event: ServerEvent) -> Output[ServerAction]:
        """Do what is due, then take an event."""
        self._advance(now)
        match event:
            case ClientAsked(message=message):
                self._on_message(now, message)
            case WriteAsked(ticket=ticket, keys=keys):
                self.on_write_asked(now, ticket, keys)
            case WriteGivenUp(ticket=ticket):
                self.on_given_up(now, ticket)
            case BodyEnded():
                self.on_body_ended(now, event)
            case ObjectLoaded():
                self.on_loaded(now, event)
            case TermMoved(until=until):
                self.term_until = until
                self._advance(now)
            case RangeGranted():
                self._on_granted(now, event)
            case DrainAsked():
                self.on_drain_asked(now, event.range, served=event.served)
            case MemoryPersisted(memory=memory):
                self._on_persisted(memory)
            case FenceRaised():
                self._on_fenced(now, event)
            case StopAsked():
                self._on_stop(now)
            case _:
                assert_never(event)
        return self._output(now)

    def advance(self, now: Instant) -> Output[ServerAction]:
        """Do what is due."""
        self._advance(now)
        return self._output(now)

    def _advance(self, now: Instant) -> None:
        if not self._has_begun:
            self._has_begun = True
            self._actions.append(PersistMemory(self.opening.begin(now)))
        self.end_term(now)
        for reader in self.readers.forgettable(now):
            self.forget(now, reader, VolumeServerKind.FORGOTTEN)
        if now >= self.writes.next_at:
            for writing in self.writes.waiting():
                self.proceed(now, writing)
            self.writes.next_at = min(
                (self.due_at(each) for each in self.writes.waiting()), default=FAR_FUTURE
            )
        if now >= self.drains.next_at:
            for drain in self.drains.all():
                self.proceed_draining(now, drain)
            self.drains.next_at = min(
                (each.to_come.due_at for each in self.drains.all() if each.to_come.missing),
                default=FAR_FUTURE,
            )
        if self.opening.phase == "open" and self.opening.is_to_be_moved(now) and not self._moving:
            self._moving = True
            self._actions.append(PersistMemory(self.opening.memory(now)))

    def _output(self, now: Instant) -> Output[ServerAction]:
        wake_at = min(self.readers.next_at, self.writes.next_at, self.drains.next_at)
        if self.epoch:
            wake_at = min(wake_at, self.term_until)
        actions, self._actions = self._actions, []
        return Output(actions, max(wake_at, now))

    # --- beginning and ending, without owners ---

    def _on_persisted(self, memory: VolumeMemory) -> None:
        opening = self.opening
        if opening.phase == "stopping":
            opening.phase = "stopped"
            self._actions.append(VolumeClosed())
        elif memory.number == opening.number:
            self._moving = False
            opening.persisted(memory)
            if opening.phase == "persisting":
                opening.phase = "fencing"
                self._actions.append(RaiseFence(opening.number))

    def _on_fenced(self, now: Instant, event: FenceRaised) -> None:
        opening = self.opening
        if opening.phase != "fencing" or event.number != opening.number:
            return
        if event.refused_by >= opening.number:
            self.note(VolumeServerKind.WENT_BACK, f"the store has seen {event.refused_by}")
            opening.phase = "persisting"
            self._actions.append(PersistMemory(opening.went_back(now, event.refused_by)))
            return
        opening.phase = "open"
        self.epoch = self.history = opening.epoch
        self._serve(WHOLE, Serving(opening.number, opening.quiet_until))
        self.versions.begin(WHOLE, opening.number, None)
        self.note(VolumeServerKind.OPENED, f"under {opening.number}")

    def _on_stop(self, now: Instant) -> None:
        self.is_stopping = True
        self.on_drain_asked(now, WHOLE, served=False)
        if not len(self.drains):
            self.stop(now)

    def stop(self, now: Instant) -> None:
        if not self.config.alone or self.opening.phase != "open":
            self.opening.phase = "stopped"
            self._actions.append(VolumeClosed())
            return
        self.opening.phase = "stopping"
        self._actions.append(PersistMemory(self.opening.last_memory(now)))

    # --- under an owner's term ---

    def end_term(self, now: Instant) -> None:
        """The owner's term has ended, and with it every read lease (V11)."""
        if now < self.term_until or self.epoch == 0:
            return
        self.note(VolumeServerKind.TERM_ENDED)
        self.epoch = 0
        self.served = RangeMap(None)
        self.versions.clear()
        self.readers.clear()
        self.loads.clear()
        for writing in self.writes.clear():
            self.fail(writing, "moved")
        for drain in self.drains.clear():
            self._actions.append(Drained(drain.range))

    def _on_granted(self, now: Instant, event: RangeGranted) -> None:
        if self.is_stopping or now >= self.term_until:
            return
        if self.epoch == 0:
            self.epoch = self.random.randrange(1, NONCE_LIMIT)
        if event.history != self.history:
            self.history = event.history
        if self._is_served_under(event.range, event.number):
            for drain in self.drains.all():
                if event.range.covers(drain.range):
                    drain.taken_back = True
            return
        quiet_until = Instant(now + event.quiet_ns)
        reads_from = quiet_until if event.reads_wait else Instant(0)
        self._serve(event.range, Serving(event.number, quiet_until, reads_from))
        self.versions.begin(event.range, event.number, event.known)

    def _is_served_under(self, key_range: KeyRange, number: int) -> bool:
        return all(
            serving is not None and serving.number == number
            for _, serving in self.served.within(key_range)
        )

    def _serve(self, key_range: KeyRange, serving: Serving) -> None:
        self.served.assign(key_range, serving)

    # --- what clients say ---

    def _on_message(self, now: Instant, message: ToVolumeServer) -> None:
        if isinstance(message, Reconnect):
            self._on_reconnect(now, message)
            return
        reader = self.find_reader(message)
        if reader is None:
            self.answer_unknown(message)
            return
        self.readers.hear(now, reader)
        match message:
            case Renew():
                self.on_renew(now, reader, message)
            case Fetch():
                self.on_fetch(now, reader, message)
            case Acknowledge(items=items):
                self.acknowledged(now, reader, self.readers.acknowledged(reader, items))
            case Write():
                self.on_write(now, reader, message)
            case Bye():
                self.forget(now, reader, VolumeServerKind.FORGOTTEN)
            case _:
                assert_never(message)

    def _on_reconnect(self, now: Instant, message: Reconnect) -> None:
        """Its sender has only suspects: all items of its earlier reader are acknowledged (V8)."""
        if self.epoch == 0 or self.is_stopping:
            self.refuse(message, "closed")
            return
        if not self.readers.is_newer(message.client, message.sequence):
            self.note(VolumeServerKind.OLD_REQUEST, "reconnect")
            return
        before = self.readers.of_client(message.client)
        if before is not None:
            self.forget(now, before, VolumeServerKind.ON_RECORD)
        elif self.has_too_many_readers():
            self.refuse(message, "too many")
            return
        reader = self.readers.add(now, message.client, message.sequence)
        if before is not None:
            reader.muted_until, reader.missed = before.muted_until, before.missed
        self.answer_reconnect(now, reader, message)

    # --- what may be read of it ---

    def view(self) -> VolumeServerView:
        """What whoever runs it may read."""
        return VolumeServerView(
            epoch=self.epoch,
            is_open=self.epoch != 0 and not self.is_stopping,
            readers=tuple(
                ReaderView(
                    each.client, each.heard_at, each.volume_until, len(each.leases), len(each.items)
                )
                for each in self.readers
            ),
            leases=self.readers.leases,
            writes=len(self.writes),
            loads=len(self.loads),
            drains=len(self.drains),
            known_writes=len(self.versions),
            count=self.versions.count,
        )

    def invariants(self) -> None:
        """Its parts agree with themselves, and nothing is held that is not served."""
        self.readers.invariants()
        self.writes.invariants()
        self.versions.invariants()
        assert self.epoch or not len(self.readers)
        for writing in self.writes.waiting():
            for key in writing.keys:
                assert not self.readers.holders(key), key
