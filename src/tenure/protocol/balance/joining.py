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


class Joining(Round):
    """The last phase of a round."""

    def join(self) -> None:
        """Give cold keys that stand alone back to their neighbours, and join ranges if there are
        too many.
        """
        self.pieces.sort(key=lambda piece: piece.start)
        cold = 0.0 if self.situation.loads is None else self.tuning.cold * self.share
        now, since = self.situation.now, dict[Key, Instant]()
        for i, piece in enumerate(self.pieces):
            if not piece.is_one_key or piece.weight >= cold:
                continue
            since[piece.start] = self.cold_since.get(piece.start, now)
            if now - since[piece.start] >= self.tuning.low_ns and not piece.rests:
                self._go_to_neighbour(i, "a key that stood alone is cold again")
        self.cold_since = since
        count, table = len(self.accounts.all), self.tuning.table
        self._join_small(self._ranges() - min(self.tuning.ranges_at_most * count, table))
        at_most = min(self.tuning.entries_at_most * count, table)
        if len(self.situation.present) > at_most:
            self._gather(at_most)

    def _join_small(self, too_many: int) -> None:
        """Give the smallest ranges to their neighbours if there are too many ranges."""
        if too_many <= 0:
            return
        small = sorted(
            (piece.space, i)
            for i, piece in enumerate(self.pieces)
            if not piece.rests and piece.weight < self.grain
        )
        for space, i in small:
            if too_many <= 0 or not self._may_join(space):
                return
            if self._go_to_neighbour(i, "a small range among too many"):
                self._spend(space)
                too_many -= 1

    def _gather(self, at_most: int) -> None:
        """Move ranges that one owner has in several entries, if there are too many entries.

        A range that is handed over with its state stays as old as it is, so its entries would not
        become one; such moves are not made. Ranges that moved a moment ago are left alone.
        """
        runs, entries = list[tuple[float, int, int, list[Piece]]](), 0
        for owner, group in groupby(self.pieces, key=attrgetter("owner")):
            run = list(group)
            within = self.situation.present.within(KeyRange(run[0].start, run[-1].end))
            count = sum(right.owner == owner for _, right in within)
            entries += max(count, 1)
            if count > 2 and not any(piece.rests for piece in run):  # noqa: PLR2004 - a key and two sides
                runs.append((sum(piece.space for piece in run) / count, len(runs), count, run))
        too_many = entries - at_most
        for space, _, count, run in sorted(runs, key=lambda each: each[:2]):
            if too_many <= 0 or not self._may_join(space * count):
                return
            if self._move_whole(run, f"{count} entries of the table become one"):
                self._spend(space * count)
                too_many -= count - 1

    def _move_whole(self, run: list[Piece], reason: str) -> bool:
        giver = self.accounts.by_incarnation[run[0].owner]
        taker = self.accounts.open.nearest(giver.zone, self.slack)
        if taker is None or taker is giver or not giver.is_open:
            return False
        if taker.hands_over and giver.hands_over:
            return False
        if taker.use_with(sum(piece.weight for piece in run)) > self.share * self.tuning.high:
            return False
        for piece in run:
            self.move(piece, taker, "join", reason)
        return True

    def _may_join(self, space: float) -> bool:
        if space <= min(self.joining, self.lasting):
            return True
        self.hold_back("joining ranges", "over the churn budget")
        return False

    def _spend(self, space: float) -> None:
        self.joining -= space
        self.lasting -= space

    def _ranges(self) -> int:
        owners = [piece.owner for piece in self.pieces]
        return 1 + sum(a != b for a, b in pairwise(owners))

    def _go_to_neighbour(self, i: int, reason: str) -> bool:
        """Give a piece to the owner of a neighbouring piece, preferably of one whose state is as
        old.
        """
        piece = self.pieces[i]
        beside = [self.pieces[j] for j in (i - 1, i + 1) if 0 <= j < len(self.pieces)]
        beside.sort(key=lambda other: self.since(other) != self.since(piece))
        giver = self.accounts.by_incarnation[piece.owner]
        if giver.cordoned or giver.turns or len(giver.pieces) == 1:  # without any, it would be new
            return False
        if not beside or any(other.owner == piece.owner for other in beside):
            return False
        for other in beside:
            taker = self.accounts.by_incarnation[other.owner]
            has_room = piece.is_one_key or taker.use <= self.share * self.tuning.high
            if taker.is_open and has_room:
                self.move(piece, taker, "join", reason)
                return True
        return False

    def since(self, piece: Piece) -> int:
        """The number since which the piece's state is unbroken: ranges become one only if they
        agree in it.
        """
        return self.situation.present[piece.start].since
