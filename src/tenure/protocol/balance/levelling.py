"""Owners that carry too much are relieved, and one that carries too little is filled.

Each step moves the piece that helps most for the least churn. Mostly that is a hot key alone.
"""

from operator import attrgetter

from tenure.protocol.balance.accounts import Account
from tenure.protocol.balance.pieces import Piece
from tenure.protocol.balance.policy import NOBODY, only
from tenure.protocol.balance.round import Round

FITTINGS = 5
"""How many pieces are tried on all owners, each half as large as the one before: after these, what
fits relieves nobody."""

_is_open = attrgetter("is_open")


def level(this: Round) -> None:
    """Move ranges from the owner with most to the one with least, while it is worth it."""
    too_little = _have_too_little(this)
    while (giver := this.accounts.most()) is not None:
        least = this.accounts.open.least()
        assert least is not None
        if giver is least or giver.use <= this.share + this.grain / 2 / giver.capacity:
            return
        is_needed = _is_too_much(this, giver) or least.incarnation in too_little
        if not (is_needed and _relieve(this, giver, least)):
            this.accounts.set_aside(giver)


def _have_too_little(this: Round) -> set[int]:
    """The owner to be filled: it has carried too little for a while."""
    now = this.situation.now
    this.low_since = {
        each.incarnation: this.low_since.get(each.incarnation, now)
        for each in this.accounts.all
        if each.is_open
        and each.fill < this.share * min(this.tuning.low, 1.0 - this.noise_of(each.capacity))
    }
    return {one for one, at in this.low_since.items() if now - at >= this.tuning.low_ns}


def _is_too_much(this: Round, giver: Account) -> bool:
    """Whether the owner carries more than it should, and more than chance explains."""
    if giver.use <= this.share * this.bearable:
        return False
    noise = 1.0 + this.noise_of(giver.capacity)
    if giver.use <= this.share * noise:
        why = f"so few requests may be chance, up to {noise:.2f}"
        this.hold_back(f"relieving {giver.name}, at {this.of_share(giver)}", why)
        return False
    return True


def _relieve(this: Round, giver: Account, least: Account) -> bool:
    """Move one piece off the giver. Returns whether a piece could be moved."""
    surplus, room = -this.room(giver), this.room(least)
    if _move_hot_key(this, giver, least):
        return True
    wanted = max(min(surplus, room), min(this.grain, surplus * 2))
    piece, taker = _piece_and_taker(this, giver, wanted)
    if piece is None:
        return _swap(this, giver, surplus)
    if taker is None:
        why = "whoever took some of it would carry as much"
        if this.accounts.beside:
            why += f", or be too full of {this.accounts.beside[0].metric}"
        this.hold_back(f"relieving {giver.name}, at {this.of_share(giver)}", why)
        return False
    if not this.may_move(piece, giver):
        return False
    this.move(piece, taker, "level", f"{giver.name} was at {this.of_share(giver)}")
    return True


def _piece_and_taker(
    this: Round, giver: Account, wanted: float
) -> tuple[Piece | None, Account | None]:
    """A piece to move off the giver, and who takes it. By several metrics a piece may fit nowhere,
    and another, or less of it, fit all the same.
    """
    piece, tries = this.detach(giver, wanted), FITTINGS if this.accounts.beside else 1
    for _ in range(tries):
        if piece is None:
            break
        if piece.space > this.left >= this.fragment:
            this.shorten(piece)
        taker = _taker_of(this, piece, giver)
        if taker is not None or tries == 1:
            return piece, taker
        piece.rests = True  # until the next round
        # What fits nowhere is mostly too much of another metric: less of it may fit.
        wanted /= 2
        piece = this.detach(giver, wanted) or piece
    return piece, None


def _taker_of(this: Round, piece: Piece, giver: Account) -> Account | None:
    """The taker: one in the giver's zone, if it is as good as any, and only if it then carries
    less than the giver.
    """
    near = this.accounts.open.nearest(giver.zone, this.slack)
    if near is giver or near is None or not _may_take(this, piece, near, giver):
        others = [
            each
            for each in this.accounts.all
            if each.is_open and each is not giver and this.fits(piece.range, each, giver)
        ]
        near = min(others, key=lambda each: each.use_with(piece.weight), default=None)
    return near if near is not None and _may_take(this, piece, near, giver) else None


def _may_take(this: Round, piece: Piece, taker: Account, giver: Account) -> bool:
    is_below = taker.use_with(piece.weight) < giver.use
    return is_below and this.fits(piece.range, taker, giver)


def _move_hot_key(this: Round, giver: Account, taker: Account) -> bool:
    """Move the hot key that leaves the two owners nearest to even, if there is one worth
    moving.

    Ranges then have to mend what the taker has too much, or the giver too little. The move is
    worth it if that is less than half of what ranges would have to do without it.
    """
    surplus = giver.use - this.share
    strength = max(giver.capacity, taker.capacity)
    stronger = [each for each in this.accounts.uneven if each.capacity > strength]
    takers = [taker, *sorted(filter(_is_open, stronger), key=lambda each: each.fill)[:1]]
    found = [
        (
            max(
                abs(giver.use_with(-rate) - this.share),
                each.use_with(rate) - this.share,
            ),
            key,
            each.incarnation,
            piece,
        )
        for rate, key, piece in this.lumps(giver)
        for each in takers
        if not piece.rests and this.fits(only(key), each, giver)
    ]
    left, key, number, piece = min(
        found, key=lambda each: each[:3], default=(surplus, b"", NOBODY, None)
    )
    if piece is None or left >= surplus / 2 or not this.may_cut(giver):
        return False
    taker = this.accounts.by_incarnation[number]
    reason = f"{giver.name} was at {this.of_share(giver)}, with a hot key"
    this.move(this.single_out(piece, key), taker, "level", reason)
    return True


def _swap(this: Round, giver: Account, surplus: float) -> bool:
    """Swap a hot key that nobody has room for with an owner that can make room. Returns whether
    one moved.
    """
    relieving = f"relieving {giver.name}, at {this.of_share(giver)}"
    lumps = this.lumps(giver)
    enough = [lump for lump in lumps if lump[0] >= surplus / 2 and not lump[2].rests]
    if not enough:
        this.hold_back(relieving, "its ranges cool down, are pinned or cannot be cut")
        return False
    rate, key, piece = min(enough, key=lambda lump: lump[:2])
    is_only_one = lumps == enough[:1]  # only a stronger owner has room for it
    found: tuple[float, int] | None = None
    for taker in this.accounts.all:
        if taker is giver or not taker.is_open or not this.fits(only(key), taker, giver):
            continue
        if is_only_one and taker.capacity <= giver.capacity:
            continue
        fixed = rate + sum(lump[0] for lump in this.lumps(taker))
        then = max(fixed, taker.weight + rate - this.left * this.weight)
        if then / taker.capacity < giver.use * 0.95:
            found = min(found or (then, taker.incarnation), (then, taker.incarnation))
    if found is None:
        this.hold_back(relieving, "nobody could make room for one of its hot keys now")
        return False
    if not this.may_cut(giver):
        return False
    taker = this.accounts.by_incarnation[found[1]]
    reason = f"{giver.name} was at {this.of_share(giver)}; {taker.name} makes room"
    this.move(this.single_out(piece, key), taker, "level", reason)
    return True
