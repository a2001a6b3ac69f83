"""The phases that balance nothing: pinned keys go to their owners, and every range gets one.

An owner that came a moment ago is given only ranges that have no owner, and one whose load has just
begun to change is left as it is.
"""

from functools import lru_cache

from tenure.base.instants import Instant
from tenure.protocol.balance.accounts import Account, Ranking
from tenure.protocol.balance.pieces import Piece, first_within
from tenure.protocol.balance.policy import NOBODY, Why
from tenure.protocol.balance.round import Round

TO_NOBODY = Why("house", "nobody has it, and all owners are cordoned")


@lru_cache(maxsize=256)
def housed(before: str, owner: str) -> Why:
    """The same object for the same words: a plan keeps it for each of its ranges."""
    return Why("house", f"{before}; its owner {owner}")


def pin(this: Round) -> None:
    """Move pinned keys to their owners, and keep them there."""
    in_order = list(this.pieces)
    for key, name in sorted(this.situation.pins, reverse=True):
        account = this.accounts.by_name.get(name)
        if account is None:
            continue
        # A piece that was cut has kept its place and the keys below the cut.
        piece = this.single_out(in_order[first_within(in_order, key)], key)
        piece.rests = True
        if piece.owner != account.incarnation:
            piece.owner = account.incarnation
            piece.why = Why("pin", f"pinned to {name}")
    this.pieces.sort(key=lambda piece: piece.start)


def house(this: Round) -> None:
    """Enter each range that has an owner; give the others to the owners with the least load."""
    homeless = []
    having = set()
    this.is_housed = True
    for piece in this.pieces:
        if piece.owner == NOBODY:
            homeless.append(piece)
        else:
            account = this.accounts.by_incarnation[piece.owner]
            account.pieces.append(piece)
            account.weight += piece.weight
            account.space += piece.space
            if piece.why is None:  # the pinned key is not what the new owner came for
                having.add(piece.owner)
    this.accounts.rank()
    there = this.accounts.by_incarnation
    this.arrivals = this.arrivals.seen(this.situation.now, there, having)
    this.set_aside([account for account in this.accounts.all if account.cordoned])
    parts = [part for piece in homeless for part in this.in_grains(piece)]
    newcomers = Ranking(_just_came(this))
    for part in sorted(parts, key=lambda piece: -piece.weight):
        _settle(this, part, newcomers)


def _settle(this: Round, part: Piece, newcomers: Ranking) -> None:
    """Give a range without an owner to an owner that came a moment ago, or carries least;
    preferably in the zone of its former owner.
    """
    leaver = this.leavers.get(this.situation.present[part.start].owner)
    zone = leaver.zone if leaver else None
    before = f"{leaver.name} goes" if leaver else "nobody had it"
    newcomer = newcomers.nearest(zone, this.slack)
    if newcomer is not None and newcomer.use < (2 - this.tuning.low) * this.share:
        # New owners take up to a fifth above a share: what others were given would move again
        # when they leave.
        this.accounts.put(part, newcomer)
        newcomers.add(newcomer)
        part.why = housed(before, "came a moment ago")
    elif (least := this.accounts.open.nearest(zone, this.slack)) is not None:
        this.accounts.put(part, least)
        part.why = housed(before, "carries least")
    else:
        part.why = TO_NOBODY


def _just_came(this: Round) -> dict[Account, Instant]:
    """The owners that came a moment ago, and until when they wait."""
    found = {}
    for account in this.accounts.all:
        ready_at = this.arrivals.ready_at(account.incarnation, this.tuning.settling_ns)
        if ready_at > this.situation.now and account.is_open:
            found[account] = ready_at
    return found


def wait(this: Round) -> None:
    """Leave the owners that came a moment ago what they were given, without filling them up
    yet.
    """
    waiting = _just_came(this)
    if all(account in waiting for account in this.accounts.all if account.is_open):
        return  # all owners are new, and everything was dealt to them
    for account, ready_at in waiting.items():
        account.waits = True
        this.again_at = min(this.again_at, ready_at)
        this.hold_back(f"an even share for {account.name}", "it came a moment ago")
    this.set_aside(list(waiting))
    this.accounts.rank()


def turn(this: Round) -> None:
    """Leave owners whose load has begun to change as they are, for this round."""
    for incarnation in this.turning:
        this.accounts.by_incarnation[incarnation].turns = True
    this.accounts.rank()
