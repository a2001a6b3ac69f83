"""Balance by what ranges weigh: the policy for hashed pools that has an eye on load.

Consistent hashing gives everybody an even part of the keys, and no even part of the load: with a
skew like that of names on the web, a few keys are asked for more than the rest of their owner's
together. This policy starts from who has what, and changes as little as evens the load out:

1. *pin*: pinned keys go to their owners.
2. *house*: what has no owner is given to those that came a moment ago, else to those that carry
   least.
3. *devote*: a key that fills an owner alone gets one that gives everything else away.
4. *welcome*: an owner that came is given an even share, a little from many; but not at once, for
   in a rolling restart there is soon something without an owner: see `arrivals`.
5. *level*: while an owner carries too much, or far too little, the piece that helps most for the
   least churn goes from the one with most to the one with least. Mostly that is a single hot key,
   which moves next to no state, and goes where another hot key has just cooled down.
6. *join*: keys that stood alone and are cold again go back to their neighbours; the smallest ranges
   too, where there are too many.

The idea of weighing benefit against churn, within a budget for each round, is Slicer's (OSDI 2016,
4.4.2). Here a round is seconds, not minutes, so the budget is one of time: it fills up again.
"""

from itertools import pairwise

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.protocol.balance.accounts import Account, Ranking
from tenure.protocol.balance.pieces import Piece, first_within
from tenure.protocol.balance.policy import NOBODY, Plan, Situation, Why, nothing_to_plan
from tenure.protocol.balance.round import Round
from tenure.protocol.balance.tuning import DEFAULT, Tuning

TO_NOBODY = Why("house", "nobody has it, and all owners are cordoned")


class Weighted:
    """The policy, with its literals."""

    def __init__(self, tuning: Tuning = DEFAULT) -> None:
        self.tuning = tuning

    def __call__(self, situation: Situation) -> Plan:
        """Plan for the situation, keeping within the budget."""
        if not situation.candidates:
            return nothing_to_plan()
        return _Phases(situation, self.tuning).run()


class _Phases(Round):
    """The phases of one round, in order."""

    def run(self) -> Plan:
        """All phases."""
        self.pin()
        self.house()
        if self.capacity == 0:
            self.hold_back("balance", "all owners are cordoned")
        elif not self.situation.frozen:
            self.wait()
            self.turn()
            self.devote()
            self.welcome()
            if self.situation.loads is not None:  # else all would be levelled by space alone
                self.level()
            self.join()
        return self.plan()

    def pin(self) -> None:
        """Pinned keys go to their owners, and stay."""
        in_order = list(self.pieces)
        for key, name in sorted(self.situation.pins, reverse=True):
            account = self.accounts.by_name.get(name)
            if account is None:
                continue
            # A piece that was cut has kept its place, and what is below the last key.
            piece = self.single_out(in_order[first_within(in_order, key)], key)
            piece.rests = True
            if piece.owner != account.incarnation:
                piece.owner = account.incarnation
                piece.why = Why("pin", f"pinned to {name}")
        self.pieces.sort(key=lambda piece: piece.start)

    def house(self) -> None:
        """What has an owner is entered, and what has none is given to those that carry least."""
        homeless = []
        having = set()
        self.is_housed = True
        for piece in self.pieces:
            if piece.owner == NOBODY:
                homeless.append(piece)
            else:
                account = self.accounts.by_incarnation[piece.owner]
                account.pieces.append(piece)
                account.weight += piece.weight
                account.space += piece.space
                if piece.why is None:  # a pin is not what it came for
                    having.add(piece.owner)
        self.accounts.rank()
        there = self.accounts.by_incarnation
        self.arrivals = self.arrivals.seen(self.situation.now, there, having)
        self._set_aside([account for account in self.accounts.all if account.cordoned])
        parts = [part for piece in homeless for part in self.in_grains(piece)]
        newcomers = Ranking(self.waiting())
        for part in sorted(parts, key=lambda piece: -piece.weight):
            self._settle(part, newcomers)

    def _settle(self, part: Piece, newcomers: Ranking) -> None:
        """Give what nobody has to who came a moment ago, or carries least; near to who had it."""
        leaver = self.leavers.get(self.situation.present[part.start].owner)
        zone = leaver.zone if leaver else None
        before = f"{leaver.name} goes" if leaver else "nobody had it"
        newcomer = newcomers.nearest(zone, self.slack)
        if newcomer is not None and newcomer.use < (2 - self.tuning.low) * self.share:
            # To a fifth above its share: what goes to others moves again when they leave.
            self.accounts.put(part, newcomer)
            newcomers.add(newcomer)
            part.why = Why("house", f"{before}; its owner came a moment ago")
        elif (least := self.accounts.open.nearest(zone, self.slack)) is not None:
            self.accounts.put(part, least)
            part.why = Why("house", f"{before}; its owner carries least")
        else:
            part.why = TO_NOBODY

    def _set_aside(self, accounts: list[Account]) -> None:
        """What they have, they keep: the others share the rest."""
        if accounts:
            self.weight -= sum(account.weight for account in accounts)
            self.capacity -= sum(account.capacity for account in accounts)
            self.share = self.weight / (self.capacity or 1.0)

    def waiting(self) -> dict[Account, Instant]:
        """Those that came a moment ago, and until when they wait."""
        found = {}
        for account in self.accounts.all:
            ready_at = self.arrivals.ready_at(account.incarnation, self.tuning.settling_ns)
            if ready_at > self.situation.now and account.is_open:
                found[account] = ready_at
        return found

    def wait(self) -> None:
        """Those that came a moment ago have what they were given, and are not filled up yet."""
        waiting = self.waiting()
        if all(account in waiting for account in self.accounts.all if account.is_open):
            return  # all of them came, and all that there is was dealt to them
        for account, ready_at in waiting.items():
            account.waits = True
            self.again_at = min(self.again_at, ready_at)
            self.hold_back(f"an even share for {account.name}", "it came a moment ago")
        self._set_aside(list(waiting))
        self.accounts.rank()

    def turn(self) -> None:
        """Those whose load has begun to change are left as they are, for this round."""
        for incarnation in self.turning:
            self.accounts.by_incarnation[incarnation].turns = True
        self.accounts.rank()

    def devote(self) -> None:
        """Keys that fill an owner alone get one each, which gives everything else away."""
        hot = [
            (point[1], point[0], self.accounts.by_incarnation[piece.owner])
            for piece in self.pieces
            for point in piece.points
            if point[1] > self.tuning.alone * self.share  # less is even, once hotter ones are out
        ]
        hosts = []
        weight, capacity = self.weight, self.capacity
        for rate, key, home in sorted(hot, key=lambda each: (-each[0], each[1])):
            piece = self.piece_at(home, key)
            host = self.host_of(piece, rate)
            if host is None:
                continue
            if rate * capacity < weight * host.capacity:
                break
            if capacity <= host.capacity:
                break  # the last one has all the rest
            weight -= rate
            capacity -= host.capacity
            alone = self.single_out(piece, key)
            if alone.owner != host.incarnation:
                self.move(alone, host, "devote", f"a key with {rate:.0f}/s fills an owner alone")
            host.devoted_to = alone
            hosts.append(host)
        self.share = weight / capacity
        self.accounts.rank()
        for account in hosts:
            self._strip(account)

    def host_of(self, piece: Piece, rate: float) -> Account | None:
        """Who should have the hot key in `piece` alone: its owner, or one with much less space."""
        home = self.accounts.by_incarnation[piece.owner]
        if home.cordoned or home.turns or home.waits:
            return None
        if piece.rests:
            return None if home.devoted_to else home
        found, space = (None, 2.0) if home.devoted_to else (home, home.space / 2)
        for account in self.accounts.all:
            if not account.is_open or account is home or account.capacity < home.capacity:
                continue
            if account.space >= space or 2 * account.weight > rate:
                continue
            beside = sum(each.weight for each in account.pieces if each.rests)
            if beside <= (self.tuning.high - 1.0) * rate:  # it stays
                found, space = account, account.space
        return found

    def _strip(self, account: Account) -> None:
        """Everything but its key goes to others: other hot keys first, since they move no state."""
        for _, key, _ in self._lumps(account):
            self.single_out(self.piece_at(account, key), key)
        rest = [piece for piece in account.pieces if piece is not account.devoted_to]
        for piece in sorted(rest, key=lambda piece: not piece.is_one_key):
            for part in self.in_grains(piece):
                if part is not piece:
                    account.pieces.append(part)
                taker = self.accounts.open.nearest(account.zone, self.slack)
                if taker is not None and self.may_move(part, account):
                    self.move(part, taker, "devote", f"{account.name} is for a hot key alone")

    def welcome(self) -> None:
        """Who came is given an even share, whatever the budget: that is what it came for.

        If it took what others left, that may be nearly as much: then only who carries too much
        gives it the rest.
        """
        for newcomer in [self.accounts.by_incarnation[each] for each in self.arrivals.came_at]:
            if not newcomer.is_open:
                continue
            enough = self.share
            if newcomer.use >= self.tuning.low * self.share:
                enough *= self.tuning.high + self.noise
            while (wanted := self.room(newcomer)) > self.grain / 2:
                giver = self.accounts.most()
                if giver is None or giver is newcomer or giver.use <= enough:
                    break
                piece = self.detach(
                    giver, min(wanted, max(self.grain, -self.room(giver))), grain=True
                )
                if piece is None:
                    self.accounts.set_aside(giver)
                    continue
                why = Why("welcome", f"{newcomer.name} is new")
                self.accounts.move(piece, newcomer)
                piece.why = why
            turning = (self.accounts.by_incarnation[each] for each in self.turning)
            is_owed = wanted > self.grain / 2 and any(each.use > enough for each in turning)
            if newcomer.pieces and not is_owed:  # else there may be more for it in the next round
                self.arrivals = self.arrivals.without(newcomer.incarnation)

    def level(self) -> None:
        """From the one with most to the one with least, while it is worth it."""
        high = self.share * max(self.tuning.high, 1.0 + self.noise)
        low = self.share * min(self.tuning.low, 1.0 - self.noise)
        while (giver := self.accounts.most()) is not None:
            least = self.accounts.open.least()
            assert least is not None
            enough = self.share + self.grain / 2 / giver.capacity
            if giver is least:
                return
            if giver.use <= high and (least.use >= low or giver.use <= enough):
                return
            if not self._relieve(giver, least):
                self.accounts.set_aside(giver)

    def _relieve(self, giver: Account, least: Account) -> bool:
        """Move one piece off the giver; whether there was one that could be moved."""
        surplus, room = -self.room(giver), self.room(least)
        if self._move_hot_key(giver, least):
            return True
        wanted = max(min(surplus, room), min(self.grain, surplus * 2))
        piece = self.detach(giver, wanted)
        if piece is None:
            return self._swap(giver, surplus)
        if piece.space > self.budget >= self.fragment:
            self._shorten(piece)
        taker = self.accounts.open.nearest(giver.zone, self.slack)
        if taker is None or taker is giver:
            taker = least
        if taker.weight + piece.weight >= giver.weight and taker.use >= least.use:
            return False
        if not self.may_move(piece, giver):
            return False
        self.move(piece, taker, "level", f"{giver.name} was at {self.of_share(giver)}")
        return True

    def _move_hot_key(self, giver: Account, taker: Account) -> bool:
        """Move the hot key that leaves the two nearest to even, if there is one worth it.

        What the taker has too much then, or the giver too little, ranges have to mend. It is worth
        it where that is less than half of what ranges would have to do without.
        """
        surplus, room = -self.room(giver), self.room(taker)
        found = [
            (max(abs(rate - surplus), rate - room), key, piece)
            for rate, key, piece in self._lumps(giver)
            if not piece.rests
        ]
        left, key, piece = min(found, key=lambda each: each[:2], default=(surplus, b"", None))
        if piece is None or left >= surplus / 2:
            return False
        reason = f"{giver.name} was at {self.of_share(giver)}, with a hot key"
        self.move(self.single_out(piece, key), taker, "level", reason)
        return True

    def _swap(self, giver: Account, surplus: float) -> bool:
        """Move a hot key that nobody has room for to someone who can make room; whether one was."""
        relieving = f"relieving {giver.name}, at {self.of_share(giver)}"
        lumps = self._lumps(giver)
        enough = [lump for lump in lumps if lump[0] >= surplus / 2 and not lump[2].rests]
        if lumps == enough[:1] or not enough:
            self.hold_back(relieving, "its ranges cool down, are pinned or cannot be cut")
            return False
        rate, key, piece = min(enough, key=lambda lump: lump[:2])
        found: tuple[float, int] | None = None
        for taker in self.accounts.all:
            if taker is giver or not taker.is_open:
                continue
            fixed = rate + sum(lump[0] for lump in self._lumps(taker))
            then = max(fixed, taker.weight + rate - self.budget * self.weight)
            if then / taker.capacity < giver.use * 0.95:
                found = min(found or (then, taker.incarnation), (then, taker.incarnation))
        if found is None:
            self.hold_back(relieving, "nobody could make room for one of its hot keys now")
            return False
        taker = self.accounts.by_incarnation[found[1]]
        reason = f"{giver.name} was at {self.of_share(giver)}; {taker.name} makes room"
        self.move(self.single_out(piece, key), taker, "level", reason)
        return True

    def _lumps(self, account: Account) -> list[tuple[float, Key, Piece]]:
        """Its keys that weigh too much to go just anywhere."""
        alone = self.tuning.alone * self.share * account.capacity
        return [
            (rate, key, piece)
            for piece in account.pieces
            for key, rate in piece.points
            if rate >= alone
        ]

    def join(self) -> None:
        """Cold keys that stand alone go back; the smallest ranges too, where there are too many."""
        self.pieces.sort(key=lambda piece: piece.start)
        cold = 0.0 if self.situation.loads is None else self.tuning.cold * self.share
        for i, piece in enumerate(self.pieces):
            if piece.is_one_key and piece.weight < cold and not piece.rests:
                self._go_to_neighbour(i, "a key that stood alone is cold again")
        too_many = self._ranges() - self.tuning.ranges_at_most * len(self.accounts.all)
        if too_many <= 0:
            return
        small = sorted(
            (piece.space, i)
            for i, piece in enumerate(self.pieces)
            if not piece.rests and piece.weight < self.grain
        )
        for space, i in small:
            if too_many <= 0:
                return
            if space > self.joining:
                self.hold_back("joining small ranges", "over the churn budget")
                return
            if self._go_to_neighbour(i, "a small range among too many"):
                self.joining -= space
                too_many -= 1

    def _ranges(self) -> int:
        owners = [piece.owner for piece in self.pieces]
        return 1 + sum(a != b for a, b in pairwise(owners))

    def _go_to_neighbour(self, i: int, reason: str) -> bool:
        """Give a piece to the owner beside it, of two to the one whose state is as old."""
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
        """Since which number its state is unbroken: ranges become one only where this agrees."""
        return self.situation.present[piece.start].since
