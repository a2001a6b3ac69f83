"""Letters, journal calls and steps of hand-offs in flight on the stage; and holding them back."""

from typing import TYPE_CHECKING, Any

from lab.worlds.rivals.seen import as_seen
from tenure.protocol.lease.leader.events import LookAround, OthersSeen
from tenure.protocol.lease.messages import AnyMessage
from tenure.protocol.lease.records import JournalAction, JournalEvent
from tenure.sim.journal import failure_of
from tenure.wire.lease import encode
from tenure.wire.versions import NEWEST
from tests.simulation.actors import Actor, OwnerActor
from tests.simulation.transfers import Step

if TYPE_CHECKING:
    from tests.simulation.stage import Stage

JOURNAL = "journal"


class InFlight:
    """A letter or a journal call: on its way until it is delivered, or for ever."""

    def __init__(self, stage: "Stage", sender: "Actor", receiver: str, what: object) -> None:
        self.stage = stage
        self.sender = sender
        self.receiver = receiver
        self.what = what
        self.due = stage.now + stage.latency_of(sender.slot) + stage.latency_of(receiver)

    def arrive(self) -> None:
        raise NotImplementedError

    def deliver(self) -> None:
        """Let it arrive now, once more if it did before, and everything take its course."""
        self.arrive()
        self.stage.settle()


class Letter(InFlight):
    """A message. To a manager's address, or to one life of a client."""

    def __init__(
        self, stage: "Stage", sender: "Actor", receiver: str, what: AnyMessage, to: "Actor | None"
    ) -> None:
        super().__init__(stage, sender, receiver, what)
        self.message = what
        self.to = to

    def arrive(self) -> None:
        """It is read by that client, or by whichever manager is at the address by now."""
        to = self.to or self.stage.managers.get(self.receiver)
        if to is not None:
            to.receive(self.sender, encode(self.message, NEWEST))


class Call(InFlight):
    """A manager's call to the journal: it takes effect first, and is answered then."""

    def __init__(self, stage: "Stage", sender: "Actor", what: JournalAction) -> None:
        super().__init__(stage, sender, JOURNAL, what)
        self.action = what
        self.event: JournalEvent | None = None

    def arrive(self) -> None:
        self.take_effect()
        self.answer()

    def take_effect(self) -> None:
        self.event = self.stage.journal_of(self.sender.slot).carry_out(self.action)

    def answer(self) -> None:
        if self.event is not None:
            self.sender.post(self.event)

    def fail(self) -> None:
        """Give no answer: the caller cannot know whether the call took effect."""
        failure = failure_of(self.action, "no answer came")
        if failure is not None:
            self.sender.post(failure)
        self.stage.settle()


class Parcel(InFlight):
    """A step of a hand-off, or the word that it has come."""

    def __init__(self, stage: "Stage", source: "OwnerActor", receiver: str, what: Step) -> None:
        super().__init__(stage, source, receiver, what)
        self.source = source
        self.step = what

    def arrive(self) -> None:
        self.stage.transfers.arrive(self.source, self.step)


class LookAcross(InFlight):
    """A manager's question to another, whether it leads and in which journal; answered at once."""

    def arrive(self) -> None:
        other = self.stage.managers.get(self.receiver)
        assert isinstance(self.what, LookAround)
        is_there = other is not None and other.alive and not other.stopped
        seen = (as_seen(other.machine.view(other.now)),) if other and is_there else ()
        self.sender.post(OthersSeen(self.what.asked_at, seen))


class Hold:
    """A rule by which what is in flight is kept back until the test says so."""

    def __init__(
        self, stage: "Stage", kinds: tuple[type, ...], sender: str | None, receiver: str | None
    ) -> None:
        self.stage = stage
        self.kinds = kinds
        self.sender = sender
        self.receiver = receiver
        self.caught: list[Any] = []

    def wants(self, item: InFlight) -> bool:
        return (
            (not self.kinds or isinstance(item.what, self.kinds))
            and self.sender in (None, item.sender.slot)
            and self.receiver in (None, item.receiver)
        )

    @property
    def last(self) -> Any:  # noqa: ANN401 - what is caught is known to who holds it
        """The last that was caught: a Letter or a Call."""
        assert self.caught, "nothing of that kind was sent"
        return self.caught[-1]

    def end(self) -> None:
        """Hold nothing more back; what was caught stays with the test."""
        self.stage.holds.remove(self)

    def end_and_deliver(self) -> None:
        """Hold nothing more back, and deliver what was caught, in order."""
        self.end()
        for item in self.caught:
            item.arrive()
        self.stage.settle()
