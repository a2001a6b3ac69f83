"""Admission: which offers of state an owner accepts, and when (P13).

An owner accepts only the offers that its manager has announced: a source shows the secret of its
order, which only the two owners have been told. If an offer comes before the answer that announces
it, or while the rest of an earlier one is being cleared, it waits for a moment; a refused offer
comes again only when its source asks the manager next.
"""

from collections.abc import Sequence
from hmac import compare_digest
from typing import NamedTuple

from tenure.base.instants import FAR_FUTURE, SECOND_NS, Instant
from tenure.protocol.lease.messages import Expected
from tenure.protocol.lease.owner.belief import Belief
from tenure.protocol.lease.owner.copies import Copies, Part
from tenure.protocol.lease.owner.events import Admit, OwnerAction, TurnAway
from tenure.protocol.lease.owner.transfer import Offer

ARRIVING_AT_ONCE = 32
"""The most ranges that arrive at a time: a manager orders four of each owner, so eight owners may
give to one at once. More are refused, and come later, because each may have some chunks in memory.
"""
PATIENCE_NS = SECOND_NS
SECRET_BYTES = 8
CHANNELS_AT_ONCE = 64
"""The most channels that have not been admitted: twice as many as ranges may arrive. Nobody has
shown any proof on them, and each may have a large message in memory."""
CHANNELS_OF_A_PEER = 32
"""The most channels of one host, so that no stranger keeps out the owners of other hosts. Owners of
one host that have more ranges to give come with them later.
"""


class Waiting(NamedTuple):
    """An offer, and until when it may wait for what is in its way."""

    offer: Offer
    until: Instant


class Unadmitted(NamedTuple):
    """A channel that has not been admitted."""

    peer: str
    has_offered: bool


def which_gives_way(channels: Sequence[Unadmitted], peer: str) -> int | str | None:
    """What another channel of `peer` costs, beside those that are not admitted, the oldest first:
    None if there is room for it, the place of the one that gives way, or the reason why the new
    one is refused.

    Whoever has offered nothing gives way, so that nobody closes this owner to others by saying
    nothing: an owner offers at once. Of these it is the oldest, of the peer that has the most.
    """
    of_peer = sum(each.peer == peer for each in channels)
    silent = [each.peer for each in channels if not each.has_offered]
    if of_peer >= CHANNELS_OF_A_PEER:
        whose, why = peer, f"{of_peer} channels from {peer} wait to be admitted already"
    elif len(channels) >= CHANNELS_AT_ONCE:
        whose = max(silent, key=silent.count, default=peer)
        why = f"{len(channels)} channels wait to be admitted already"
    else:
        return None
    return next((at for at, each in enumerate(channels) if each == (whose, False)), why)


def _is_proven(offer: Offer, expected: Expected) -> bool:
    """Whether the secret of the order was shown. The comparison takes equally long wherever the
    secrets differ, so its time reveals nothing about them.
    """
    named = offer.range, offer.number, offer.source
    secrets = (secret.to_bytes(SECRET_BYTES, "big") for secret in (offer.secret, expected.secret))
    is_named = named == (expected.range, expected.number, expected.source)
    return is_named and compare_digest(*secrets)


class Admission:
    """The offers made to one owner."""

    def __init__(self, pool: str, belief: Belief, copies: Copies) -> None:
        self._pool = pool
        self._belief = belief
        self._copies = copies
        self.expected: tuple[Expected, ...] = ()
        """The ranges that the last answer has announced."""
        self.waiting: dict[int, Waiting] = {}
        """The offers that are not decided yet."""

    @property
    def wake_at(self) -> Instant:
        """When an offer has waited long enough."""
        return min((each.until for each in self.waiting.values()), default=FAR_FUTURE)

    def on_offer(self, now: Instant, channel: int, offer: Offer) -> None:
        """Take an offer; what `decide` returns, now or later, answers it."""
        self.waiting[channel] = Waiting(offer, Instant(now + PATIENCE_NS))

    def on_ended(self, channel: int) -> None:
        """Forget the offer of a channel that has ended: nobody waits for an answer there."""
        self.waiting.pop(channel, None)

    def expect(self, expected: tuple[Expected, ...]) -> list[OwnerAction]:
        """Expect these ranges from here on, and forget whatever else is arriving."""
        self.expected = expected
        if not self._copies.arriving:
            return []
        known = {Part(each.range, each.number) for each in expected}
        return self._copies.forget_arriving(lambda part: part not in known)

    def decide(self, now: Instant, *, may_take: bool) -> list[OwnerAction]:
        """Admit offers that can be taken now, and turn away those that never can, or have waited
        long enough.
        """
        actions: list[OwnerAction] = []
        for channel, (offer, until) in list(self.waiting.items()):
            why = self._never(offer, may_take=may_take)
            is_over = why is not None or now >= until
            if why is None:
                why = self._not_expected(offer) or self._not_now(offer, actions)
            if why is None:
                self._copies.begin(channel, Part(offer.range, offer.number))
                actions.append(Admit(channel))
            elif is_over:
                actions.append(TurnAway(channel, why))
            if why is None or is_over:
                del self.waiting[channel]
        return actions

    def _never(self, offer: Offer, *, may_take: bool) -> str | None:
        """Refuse an offer that does not name exactly this owner, as it is now."""
        belief = self._belief
        if offer.pool != self._pool:
            return f"this is an owner of the pool {self._pool!r}, not {offer.pool!r}"
        if offer.journal != belief.journal:
            return "this owner's manager has another journal"
        if offer.taker != belief.incarnation:
            return f"this is incarnation {belief.incarnation}, not {offer.taker}"
        return None if may_take else "this owner is leaving"

    def _not_expected(self, offer: Offer) -> str | None:
        if offer.secret and any(_is_proven(offer, each) for each in self.expected):
            return None
        return (
            f"this owner's manager has not announced {offer.range} from incarnation "
            f"{offer.source} with such a proof; where tenure of the manager or of the source is "
            "older, upgrade it: ranges move without their state until then"
        )

    def _not_now(self, offer: Offer, actions: list[OwnerAction]) -> str | None:
        """Refuse an offer of a range of which some state is here already, or is arriving."""
        arriving = self._copies.arriving
        for part in [part for part in arriving.values() if part.range.overlaps(offer.range)]:
            if part.number < offer.number:  # an older copy is of no use to anybody
                actions += self._copies.forget_arriving(part.__eq__)
            return f"{part.range} is arriving already, under number {part.number}"
        if len(arriving) >= ARRIVING_AT_ONCE:
            return f"{len(arriving)} ranges are arriving already"
        return self._in_the_way_of(offer)

    def _in_the_way_of(self, offer: Offer) -> str | None:
        """The state of a range that is here already, so that the offered state cannot be taken: two
        states in one place would mix, and forgetting one would take the other with it.
        """
        for lease in self._belief.leases:
            if lease.range.overlaps(offer.range):
                return f"{lease.range} is served here under number {lease.number}"
        for copy in self._copies.listed():
            if copy.range.overlaps(offer.range):
                return f"there is a copy of {copy.range} under number {copy.number}"
        if not self._belief.has_let_go(offer.range):
            return f"what was here of {offer.range} is not discarded yet"
        return None
