"""Joining ranges again: the pieces that the weighted policy has cut become fewer later.

A key that moved alone goes back to its neighbours when it has been cold for a while. If there are
too many ranges, the smallest are joined to their neighbours. Either makes one range in the plan. In
the table it makes one entry only if both parts have the same `since`; then the leader renumbers
them. A range that was given away without its state comes back younger than its neighbours. So if
there are too many entries, adjacent ranges of one owner move as a whole, and become one entry when
they are granted.
"""

from itertools import groupby, pairwise
from operator import attrgetter

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.base.ranges import KeyRange
from tenure.protocol.balance.pieces import Piece
from tenure.protocol.balance.round import Round


def join(this: Round) -> None:
    """Give cold keys that stand alone back to their neighbours, and join ranges if there are
    too many.
    """
    this.pieces.sort(key=lambda piece: piece.start)
    cold = 0.0 if this.situation.loads is None else this.tuning.cold * this.share
    now, since = this.situation.now, dict[Key, Instant]()
    for i, piece in enumerate(this.pieces):
        if not piece.is_one_key or piece.weight >= cold:
            continue
        since[piece.start] = this.cold_since.get(piece.start, now)
        if now - since[piece.start] >= this.tuning.low_ns and not piece.rests:
            _go_to_neighbour(this, i, "a key that stood alone is cold again")
    this.cold_since = since
    count, table = len(this.accounts.all), this.tuning.table
    _join_small(this, _ranges(this) - min(this.tuning.ranges_at_most * count, table))
    at_most = min(this.tuning.entries_at_most * count, table)
    if len(this.situation.present) > at_most:
        _gather(this, at_most)


def _join_small(this: Round, too_many: int) -> None:
    """Give the smallest ranges to their neighbours if there are too many ranges."""
    if too_many <= 0:
        return
    small = sorted(
        (piece.space, i)
        for i, piece in enumerate(this.pieces)
        if not piece.rests and piece.weight < this.grain
    )
    for space, i in small:
        if too_many <= 0 or not _may_join(this, space):
            return
        if _go_to_neighbour(this, i, "a small range among too many"):
            _spend(this, space)
            too_many -= 1


def _gather(this: Round, at_most: int) -> None:
    """Move ranges that one owner has in several entries, if there are too many entries.

    A range that is handed over with its state stays as old as it is, so its entries would not
    become one; such moves are not made. Ranges that moved a moment ago are left alone.
    """
    runs, entries = list[tuple[float, int, int, list[Piece]]](), 0
    for owner, group in groupby(this.pieces, key=attrgetter("owner")):
        run = list(group)
        within = this.situation.present.within(KeyRange(run[0].start, run[-1].end))
        count = sum(right.owner == owner for _, right in within)
        entries += max(count, 1)
        if count > 2 and not any(piece.rests for piece in run):  # noqa: PLR2004 - a key and two sides
            runs.append((sum(piece.space for piece in run) / count, len(runs), count, run))
    too_many = entries - at_most
    for space, _, count, run in sorted(runs, key=lambda each: each[:2]):
        if too_many <= 0 or not _may_join(this, space * count):
            return
        if _move_whole(this, run, f"{count} entries of the table become one"):
            _spend(this, space * count)
            too_many -= count - 1


def _move_whole(this: Round, run: list[Piece], reason: str) -> bool:
    giver = this.accounts.by_incarnation[run[0].owner]
    taker = this.accounts.open.nearest(giver.zone, this.slack)
    if taker is None or taker is giver or not giver.is_open:
        return False
    if taker.hands_over and giver.hands_over:
        return False
    if taker.use_with(sum(piece.weight for piece in run)) > this.share * this.tuning.high:
        return False
    if not this.fits(KeyRange(run[0].start, run[-1].end), taker):
        return False
    for piece in run:
        this.move(piece, taker, "join", reason)
    return True


def _may_join(this: Round, space: float) -> bool:
    if space <= min(this.joining, this.lasting):
        return True
    this.hold_back("joining ranges", "over the churn budget")
    return False


def _spend(this: Round, space: float) -> None:
    this.joining -= space
    this.lasting -= space


def _ranges(this: Round) -> int:
    owners = [piece.owner for piece in this.pieces]
    return 1 + sum(a != b for a, b in pairwise(owners))


def _go_to_neighbour(this: Round, i: int, reason: str) -> bool:
    """Give a piece to the owner of a neighbouring piece, preferably of one whose state is as
    old.
    """
    piece = this.pieces[i]
    beside = [this.pieces[j] for j in (i - 1, i + 1) if 0 <= j < len(this.pieces)]
    beside.sort(key=lambda other: _since(this, other) != _since(this, piece))
    giver = this.accounts.by_incarnation[piece.owner]
    if giver.cordoned or giver.turns or len(giver.pieces) == 1:  # without any, it would be new
        return False
    if not beside or any(other.owner == piece.owner for other in beside):
        return False
    for other in beside:
        taker = this.accounts.by_incarnation[other.owner]
        has_room = piece.is_one_key or taker.use <= this.share * this.tuning.high
        if taker.is_open and has_room and this.fits(piece.range, taker):
            this.move(piece, taker, "join", reason)
            return True
    return False


def _since(this: Round, piece: Piece) -> int:
    """The number since which the piece's state is unbroken: ranges become one only if they
    agree in it.
    """
    return this.situation.present[piece.start].since
