"""How state travels between owners on the stage: by hand, like everything else there.

An owner's state is a version for each key. It is copied while it is served, then what changed
follows; the taker says that it took each step. All four are in flight, so that a test can hold them
back. The stage judges, with every new belief, that nothing acknowledged is missing from it.
"""

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tenure.base.keys import Key
from tenure.protocol.lease.messages import HandOff, Leased
from tenure.protocol.lease.owner import events as owner_events
from tenure.protocol.lease.owner.transfer import Offer

if TYPE_CHECKING:
    from tests.simulation.actors import OwnerActor
    from tests.simulation.stage import Stage

Step: TypeAlias = (
    owner_events.HandOver
    | owner_events.CopiedAhead
    | owner_events.SendLast
    | owner_events.HandedOver
    | owner_events.HandOffFailed
)
"""A message from the source to its taker, and the taker's word that it has come."""


Decision: TypeAlias = owner_events.Admit | owner_events.TurnAway | owner_events.Keep


class Channel(NamedTuple):
    """A channel on which a source offers what it was ordered to hand over; numbered from 1."""

    source: "OwnerActor"
    order: HandOff


def _offer(source: "OwnerActor", order: HandOff) -> Offer:
    belief = source.machine.belief
    return Offer(
        pool=source.machine.config.pool,
        journal=belief.journal,
        start=order.start,
        end=order.end,
        number=order.number,
        source=belief.incarnation,
        taker=order.taker,
        secret=order.secret,
    )


class Written(NamedTuple):
    """The last write to a key that was acknowledged."""

    number: int
    version: int


class Transfers:
    """All that is handed over on a stage, and all that was written."""

    def __init__(self, stage: "Stage") -> None:
        self.stage = stage
        self.written: dict[Key, Written] = {}
        self._channels: list[Channel] = []

    def write(self, owner: "OwnerActor", key: Key) -> None:
        """A client writes a key to its owner, and is told that it is written."""
        number, versions = owner.number_of(key), [each.version for each in self.written.values()]
        assert number is not None, f"{owner.slot} does not hold {key!r}"
        self.written[key] = Written(number, max(versions, default=0) + 1)
        owner.values[key] = self.written[key].version

    def wrong(self, owner: "OwnerActor", lease: Leased) -> list[Key]:
        """The keys of which the owner should have the last version by its lease, and has not; or
        has one that its lease says was lost.
        """
        return [
            key
            for key, written in self.written.items()
            if key in lease.range
            and owner.values.get(key)
            != (written.version if written.number >= lease.since else None)
        ]

    def taker(self, order: HandOff) -> "OwnerActor | None":
        """Return the process that takes state at the order's address, if it is still the one that
        is meant.
        """
        there = [each for each in self.stage.owners if each.alive and each.takes_at(order)]
        return there[-1] if there else None

    def arrive(self, source: "OwnerActor", step: Step) -> None:
        """Let a step come to where it was sent."""
        order = step.order
        taker = self.taker(order)
        if not source.alive:
            return
        match step:
            case owner_events.HandOver() if taker is not None:
                self._channels.append(Channel(source, order))
                taker.post(owner_events.OfferMade(len(self._channels), _offer(source, order)))
            case owner_events.SendLast() if taker is not None and order in source.giving:
                self._copy(source, taker, order)
                taker.post(owner_events.Imported(self._channel(source, order)))
            case owner_events.HandOver() | owner_events.SendLast():
                source.post(owner_events.HandOffFailed(order))
            case _:
                source.post(step)

    def decide(self, taker: "OwnerActor", said: Decision) -> None:
        """The taker's machine answers what was offered, or what has come."""
        source, order = self._channels[said.channel - 1]
        match said:
            case owner_events.Admit():
                self._copy(source, taker, order)
                self.stage.send_step(source, owner_events.CopiedAhead(order))
            case owner_events.Keep():
                self.stage.send_step(source, owner_events.HandedOver(order))
            case owner_events.TurnAway():
                source.post(owner_events.HandOffFailed(order))

    def _channel(self, source: "OwnerActor", order: HandOff) -> int:
        """The last one on which the source offered it."""
        there = [i for i, each in enumerate(self._channels, 1) if each == (source, order)]
        return there[-1] if there else 0

    def break_off(self, source: "OwnerActor") -> None:
        """Its takers see their channels end."""
        for number, (giver, order) in enumerate(self._channels, 1):
            taker = self.taker(order) if giver is source else None
            if taker is not None:
                taker.post(owner_events.ArrivalEnded(number))

    def _copy(self, source: "OwnerActor", taker: "OwnerActor", order: HandOff) -> None:
        for key, version in source.values.items():
            if key in order.range:
                taker.values[key] = version

    def stop(self, source: "OwnerActor", order: HandOff) -> None:
        """The source gives it up: the taker sees the connection end."""
        source.giving.discard(order)
        taker = self.taker(order)
        if taker is not None:
            taker.post(owner_events.ArrivalEnded(self._channel(source, order)))
