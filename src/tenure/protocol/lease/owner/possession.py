"""The possession of an owner: the leases that it counts on, and copies; and how an answer changes
both.

The order counts. Obstacles to a grant are dealt with before it is believed, belief ends before
anybody is told so, and the expiry moves last (P4). All of it ends with the one term.
"""

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.protocol.lease.messages import Copy, Leased, LeaseResponse
from tenure.protocol.lease.owner.admission import Admission
from tenure.protocol.lease.owner.belief import Belief
from tenure.protocol.lease.owner.copies import Copies
from tenure.protocol.lease.owner.events import (
    ArrivalEnded,
    HandOffEvent,
    OfferMade,
    OwnerAction,
    ReadsEnded,
    Revoked,
)


class Possession:
    """The belief and the copies of one owner."""

    def __init__(self, pool: str, *, gives_reads: bool = False) -> None:
        self.belief = Belief(gives_reads=gives_reads)
        self.copies = Copies(self.belief)
        self.admission = Admission(pool, self.belief, self.copies)
        self.waits_for_application = False
        """Something was granted that the application has not let go of since it had it last. It is
        not listed, and so granted anew with each answer: not to be asked for all the time.
        """

    @property
    def has_anything(self) -> bool:
        """Whether there is anything that ends with the term."""
        return bool(self.belief.leases or self.belief.held() or self.copies.kept)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing left, nor anything that the application is to let go of."""
        return not self.has_anything and not self.belief.is_giving_up

    @property
    def ends_at(self) -> Instant:
        """When the term runs out on something."""
        return self.belief.expires_at if self.has_anything else FAR_FUTURE

    @property
    def wake_at(self) -> Instant:
        """The same, or when an offer has waited for long enough."""
        ends_at = self.ends_at
        return min(ends_at, self.admission.wake_at) if self.admission.waiting else ends_at

    def decide(self, now: Instant, *, may_take: bool) -> list[OwnerAction]:
        """Answer the offers that wait, where that can be done now."""
        return self.admission.decide(now, may_take=may_take) if self.admission.waiting else []

    def on_hand_off(
        self, now: Instant, event: OfferMade | HandOffEvent
    ) -> tuple[list[OwnerAction], bool]:
        """Take an event; what follows, and whether the manager is to hear of it now."""
        if isinstance(event, OfferMade):
            self.admission.on_offer(now, event.channel, event.offer)
            return [], False
        if isinstance(event, ArrivalEnded):
            self.admission.on_ended(event.channel)
        return self.copies.on_event(event)

    def let_go(self, event: Revoked | ReadsEnded) -> bool:
        """Note that the application, or the last cache, has let go. Returns whether the manager
        must hear of it.
        """
        if isinstance(event, ReadsEnded):
            return self.belief.end_reads(event.revocation)
        return self.belief.let_go(event.revocation) or self.waits_for_application

    def take(
        self,
        now: Instant,
        answer: LeaseResponse,
        asked: tuple[Copy, ...],
        expires_at: Instant,
        *,
        is_leaving: bool,
        gives_up: bool,
        has_rival: bool = False,
    ) -> tuple[list[OwnerAction], bool]:
        """Believe what is listed from here on, until the term ends, and do what is ordered; and
        whether to ask again at once. `asked` are the copies that the request listed.

        An owner that leaves takes nothing new, and back only what it is handing over; who gives up
        takes nothing and hands nothing over. Beside a rival of its leader it takes nothing (P25).
        """
        granted = tuple(lease for lease in answer.leases if lease.mark == "granted")
        self.waits_for_application = not all(map(self._is_clear_for, granted))
        leases = tuple(
            lease
            for lease in answer.leases
            if lease.mark != "granted"
            or (not (gives_up or has_rival) and self._may_take(lease, is_leaving=is_leaving))
        )
        # What is not taken is not listed next, and free again.
        asks = len(leases) < len(answer.leases) and not (self.waits_for_application or has_rival)
        actions: list[OwnerAction] = []
        if granted:
            actions += self.copies.give_way(granted)
        if self.copies.kept:
            actions += self.copies.settle(asked, answer.copies, leases)
        if answer.expected or self.admission.expected:
            actions += self.admission.expect(answer.expected)
        actions += self.belief.take(leases)
        actions += self.belief.move_expiry(now, expires_at)
        if now >= expires_at:
            actions += self.copies.drop_all()
        elif not gives_up and (answer.hand_offs or self.copies.orders):
            ordered, comes_back = self.copies.take_orders(answer.hand_offs)
            actions += ordered
            asks = asks or comes_back
        return actions, asks

    def _is_clear_for(self, lease: Leased) -> bool:
        return self.belief.has_let_go(lease.range) and self.copies.is_clear_for(lease)

    def _may_take(self, lease: Leased, *, is_leaving: bool) -> bool:
        """Whether a grant may be taken: with its state, only if the state is here (P13), and
        nothing before the application has let go of what it had there.
        """
        if not self._is_clear_for(lease):
            return False
        return self.copies.cover(lease) if lease.handed else not is_leaving

    def drop_all(self) -> list[OwnerAction]:
        """Believe nothing, list nothing, and have no copy."""
        return [*self.belief.drop_all(), *self.copies.drop_all()]

    def give_up_all(self) -> list[OwnerAction]:
        """Believe nothing, but list it until the application has let go; and have no copy."""
        return [*self.belief.give_up_all(), *self.copies.drop_all()]
