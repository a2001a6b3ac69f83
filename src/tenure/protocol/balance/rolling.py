"""Fronts roll: the place at which ever higher keys appear goes from owner to owner.

Where keys are named by time, all that is new belongs to the last range. However that is cut, the
next key lies above the cut. So its owner has the load of all that is new, and it also keeps the
state of all that is new, more and more of it. Nobody can spread the load of one moment, but the
state of a minute can be spread: the range above the front, in which there is nothing yet, goes to
an owner that can bear it. What came before stays where it is. No state moves, and the front has
moved on before its range is large. After that, the range cools down like any that has moved, so a
front rolls about twice a minute.
"""

from tenure.protocol.balance.accounts import Account
from tenure.protocol.balance.pieces import first_within
from tenure.protocol.balance.round import Round


def roll(this: Round) -> None:
    """Give the range above each front to the owner that has least of those that can bear it."""
    assert this.situation.loads is not None
    for key, rate in this.situation.loads.fronts:
        this.pieces.sort(key=lambda piece: piece.start)
        piece = this.pieces[first_within(this.pieces, key)]
        giver = this.accounts.by_incarnation.get(piece.owner)
        if giver is None or not giver.is_open or piece.rests:
            continue
        if rate < this.tuning.alone * this.share * giver.capacity or this.is_full:
            continue  # so little does not fill anybody, or the table has no room
        taker = _taker_of(this, giver, rate)
        if taker is None:
            this.hold_back(f"rolling on from {giver.name}", "nobody could bear what is new there")
            continue
        ahead = this.above(piece, key)
        reason = f"ever higher keys appear at {giver.name}, {this.amount_of(rate)}"
        this.move(ahead, taker, "roll", reason)


def _taker_of(this: Round, giver: Account, rate: float) -> Account | None:
    """The owner with the least state for its capacity, of those that can bear the front."""
    strongest = max(each.capacity for each in this.accounts.all)
    bearable = max(this.tuning.rolling * max(this.share, rate / strongest), giver.use)
    found = [
        each
        for each in this.accounts.all
        if each.is_open and each is not giver and each.use_with(rate) <= bearable
    ]
    return min(found, key=lambda each: (each.space / each.capacity, each.name), default=None)
