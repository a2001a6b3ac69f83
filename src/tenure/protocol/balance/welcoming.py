"""New owners are given an even share, a little from many others."""

from tenure.protocol.balance.policy import Why
from tenure.protocol.balance.round import Round


def welcome(this: Round) -> None:
    """Give new owners an even share, whatever the budget: that is what they came for.

    An owner that took ranges of others that left may have nearly as much already: then only
    owners that carry too much give it the rest.
    """
    for newcomer in [this.accounts.by_incarnation[each] for each in this.arrivals.came_at]:
        if not newcomer.is_open:
            continue
        enough = this.share
        if newcomer.use >= this.tuning.low * this.share:
            enough *= this.tuning.high + this.noise
        why = Why("welcome", f"{newcomer.name} is new")
        while (wanted := this.room(newcomer)) > this.grain / 2:
            giver = this.accounts.most()
            if giver is None or giver is newcomer or giver.use <= enough:
                break
            least = max(this.grain, this.scale.finest * this.weight)
            piece = this.detach(giver, min(wanted, max(least, -this.room(giver))), grain=True)
            if piece is None and newcomer.pieces and this.is_ordered:
                break  # the giver may be cut for others: this one wants less than a position's load
            if piece is None:
                this.accounts.set_aside(giver)
                continue
            if not this.fits(piece.range, newcomer, giver):
                piece.rests = True
                continue
            this.accounts.move(piece, newcomer)
            piece.why = why
            # How much a cut takes along is known once the newcomer reports it: a piece that was
            # levelled before would be levelled back.
            piece.rests = this.is_ordered
        turning = (this.accounts.by_incarnation[each] for each in this.turning)
        is_owed = wanted > this.grain / 2 and any(each.use > enough for each in turning)
        if newcomer.pieces and not is_owed:  # otherwise there may be more for it in the next round
            this.arrivals = this.arrivals.without(newcomer.incarnation)
