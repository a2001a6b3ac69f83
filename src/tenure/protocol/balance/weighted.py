"""Balance by the weight of ranges: the policy for hashed pools that follows the load.

Consistent hashing gives every owner an even part of the keys, but not of the load: with a skew like
that of names on the web, a few keys get more requests than all other keys of their owner together.
This policy starts from the present owners, and evens out the load with as few changes as possible:

1. *pin*: pinned keys go to their owners.
2. *house*: ranges without an owner go to owners that came a moment ago, or to those that carry
   least.
3. *devote*: a key that fills an owner alone gets an owner to itself, which gives everything else
away.
4. *welcome*: a new owner is given an even share, a little from many others; but not at once, since
   in a rolling restart some ranges soon lose their owner: see `arrivals`.
5. *level*: while an owner carries too much, or far too little, the piece that helps most for the
   least churn goes from the one with most to the one with least. Mostly that is a single hot key,
   which takes next to no state with it, and goes where another hot key has just cooled down.
6. *join*: keys that stood alone and are cold again go back to their neighbours; so do the smallest
   ranges, if there are too many.

The idea of weighing benefit against churn, within a budget for each round, is Slicer's (OSDI 2016,
4.4.2). Here a round takes seconds, not minutes, so the budget refills with time.
"""

from functools import lru_cache
from operator import attrgetter

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.protocol.balance.accounts import Account, Ranking
from tenure.protocol.balance.joining import Joining
from tenure.protocol.balance.pieces import Piece, first_within
from tenure.protocol.balance.policy import NOBODY, Plan, Situation, Why, nothing_to_plan
from tenure.protocol.balance.tuning import DEFAULT, Tuning

TO_NOBODY = Why("house", "nobody has it, and all owners are cordoned")


@lru_cache(maxsize=256)
def housed(before: str, owner: str) -> Why:
    """The same object for the same words: a plan keeps it for each of its ranges."""
    return Why("house", f"{before}; its owner {owner}")


class Weighted:
    """The policy, with its literals."""

    def __init__(self, tuning: Tuning = DEFAULT) -> None:
        self.tuning = tuning

    def __call__(self, situation: Situation) -> Plan:
        """Plan for the situation, keeping within the budget."""
        if not situation.candidates:
            return nothing_to_plan()
        return _Phases(situation, self.tuning).run()


_is_open = attrgetter("is_open")


class _Phases(Joining):
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
            if self.situation.loads is not None:  # otherwise only space would count
                self.level()
            self.join()
        return self.plan()

    def pin(self) -> None:
        """Move pinned keys to their owners, and keep them there."""
        in_order = list(self.pieces)
        for key, name in sorted(self.situation.pins, reverse=True):
            account = self.accounts.by_name.get(name)
            if account is None:
                continue
            # A piece that was cut has kept its place and the keys below the cut.
            piece = self.single_out(in_order[first_within(in_order, key)], key)
            piece.rests = True
            if piece.owner != account.incarnation:
                piece.owner = account.incarnation
                piece.why = Why("pin", f"pinned to {name}")
        self.pieces.sort(key=lambda piece: piece.start)

    def house(self) -> None:
        """Enter each range that has an owner; give the others to the owners with the least load."""
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
                if piece.why is None:  # the pinned key is not what the new owner came for
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
        """Give a range without an owner to an owner that came a moment ago, or carries least;
        preferably in the zone of its former owner.
        """
        leaver = self.leavers.get(self.situation.present[part.start].owner)
        zone = leaver.zone if leaver else None
        before = f"{leaver.name} goes" if leaver else "nobody had it"
        newcomer = newcomers.nearest(zone, self.slack)
        if newcomer is not None and newcomer.use < (2 - self.tuning.low) * self.share:
            # New owners take up to a fifth above a share: what others were given would move again
            # when they leave.
            self.accounts.put(part, newcomer)
            newcomers.add(newcomer)
            part.why = housed(before, "came a moment ago")
        elif (least := self.accounts.open.nearest(zone, self.slack)) is not None:
            self.accounts.put(part, least)
            part.why = housed(before, "carries least")
        else:
            part.why = TO_NOBODY

    def _set_aside(self, accounts: list[Account]) -> None:
        """Let these owners keep what they have; the others share the rest."""
        if accounts:
            self.weight -= sum(account.weight for account in accounts)
            self.capacity -= sum(account.capacity for account in accounts)
            self.share = self.weight / (self.capacity or 1.0)

    def waiting(self) -> dict[Account, Instant]:
        """The owners that came a moment ago, and until when they wait."""
        found = {}
        for account in self.accounts.all:
            ready_at = self.arrivals.ready_at(account.incarnation, self.tuning.settling_ns)
            if ready_at > self.situation.now and account.is_open:
                found[account] = ready_at
        return found

    def wait(self) -> None:
        """Leave the owners that came a moment ago what they were given, without filling them up
        yet.
        """
        waiting = self.waiting()
        if all(account in waiting for account in self.accounts.all if account.is_open):
            return  # all owners are new, and everything was dealt to them
        for account, ready_at in waiting.items():
            account.waits = True
            self.again_at = min(self.again_at, ready_at)
            self.hold_back(f"an even share for {account.name}", "it came a moment ago")
        self._set_aside(list(waiting))
        self.accounts.rank()

    def turn(self) -> None:
        """Leave owners whose load has begun to change as they are, for this round."""
        for incarnation in self.turning:
            self.accounts.by_incarnation[incarnation].turns = True
        self.accounts.rank()

    def devote(self) -> None:
        """Give each key that fills an owner alone an owner to itself, which gives everything else
        away.
        """
        hot = [
            (point[1], point[0], self.accounts.by_incarnation[piece.owner])
            for piece in self.pieces
            for point in piece.points
            if point[1] > self.tuning.alone * self.share  # less is even, once hotter keys are out
        ]
        hosts = []
        weight, capacity = self.weight, self.capacity
        for rate, key, home in sorted(hot, key=lambda each: (-each[0], each[1])):
            piece = self.piece_at(home, key)
            if rate * capacity < weight * self.accounts.least_capacity:
                break
            host = self.host_of(piece, rate)
            if host is None or rate * capacity < weight * host.capacity:
                continue
            if capacity <= host.capacity:
                break  # the last owner has all the rest
            weight -= rate
            capacity -= host.capacity
            if home is not host and not self.may_cut(home):
                break
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
        """The owner that should have the hot key in `piece` alone: its present one, or one with
        much less space.

        If the key is too much for its owner, that is a stronger owner, whatever that one has.
        """
        home = self.accounts.by_incarnation[piece.owner]
        if home.cordoned or home.turns or home.waits:
            return None
        if piece.rests:
            return None if home.devoted_to else home
        is_too_much = rate > self.tuning.high * self.share * home.capacity
        found = None if home.devoted_to else home
        best = (home.capacity, 2.0 if found is None else home.space / 2)
        for account in self.accounts.all:
            if not account.is_open or account is home or account.capacity < best[0]:
                continue
            is_stronger = is_too_much and account.capacity > best[0]
            if not is_stronger and (account.space >= best[1] or 2 * account.weight > rate):
                continue
            beside = sum(each.weight for each in account.pieces if each.rests)
            if beside <= (self.tuning.high - 1.0) * rate:  # pieces that rest stay there
                found, best = account, (account.capacity, account.space)
        return found

    def _strip(self, account: Account) -> None:
        """Move everything but its key to others: other hot keys first, since they move no state."""
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
        """Give new owners an even share, whatever the budget: that is what they came for.

        An owner that took ranges of others that left may have nearly as much already: then only
        owners that carry too much give it the rest.
        """
        for newcomer in [self.accounts.by_incarnation[each] for each in self.arrivals.came_at]:
            if not newcomer.is_open:
                continue
            enough = self.share
            if newcomer.use >= self.tuning.low * self.share:
                enough *= self.tuning.high + self.noise
            why = Why("welcome", f"{newcomer.name} is new")
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
                self.accounts.move(piece, newcomer)
                piece.why = why
            turning = (self.accounts.by_incarnation[each] for each in self.turning)
            is_owed = wanted > self.grain / 2 and any(each.use > enough for each in turning)
            if (
                newcomer.pieces and not is_owed
            ):  # otherwise there may be more for it in the next round
                self.arrivals = self.arrivals.without(newcomer.incarnation)

    def level(self) -> None:
        """Move ranges from the owner with most to the one with least, while it is worth it."""
        too_little = self._have_too_little()
        while (giver := self.accounts.most()) is not None:
            least = self.accounts.open.least()
            assert least is not None
            if giver is least or giver.use <= self.share + self.grain / 2 / giver.capacity:
                return
            is_needed = self._is_too_much(giver) or least.incarnation in too_little
            if not (is_needed and self._relieve(giver, least)):
                self.accounts.set_aside(giver)

    def _have_too_little(self) -> set[int]:
        """The owner to be filled: it has carried too little for a while."""
        now = self.situation.now
        self.low_since = {
            each.incarnation: self.low_since.get(each.incarnation, now)
            for each in self.accounts.all
            if each.is_open
            and each.fill < self.share * min(self.tuning.low, 1.0 - self.noise_of(each.capacity))
        }
        return {one for one, at in self.low_since.items() if now - at >= self.tuning.low_ns}

    def _is_too_much(self, giver: Account) -> bool:
        """Whether the owner carries more than it should, and more than chance explains."""
        if giver.use <= self.share * self.bearable:
            return False
        noise = 1.0 + self.noise_of(giver.capacity)
        if giver.use <= self.share * noise:
            why = f"so few requests may be chance, up to {noise:.2f}"
            self.hold_back(f"relieving {giver.name}, at {self.of_share(giver)}", why)
            return False
        return True

    def _relieve(self, giver: Account, least: Account) -> bool:
        """Move one piece off the giver. Returns whether a piece could be moved."""
        surplus, room = -self.room(giver), self.room(least)
        if self._move_hot_key(giver, least):
            return True
        wanted = max(min(surplus, room), min(self.grain, surplus * 2))
        piece = self.detach(giver, wanted)
        if piece is None:
            return self._swap(giver, surplus)
        if piece.space > self.left >= self.fragment:
            self._shorten(piece)
        taker = self._taker_of(piece, giver)
        if taker is None:
            why = "whoever took some of it would carry as much"
            self.hold_back(f"relieving {giver.name}, at {self.of_share(giver)}", why)
            return False
        if not self.may_move(piece, giver):
            return False
        self.move(piece, taker, "level", f"{giver.name} was at {self.of_share(giver)}")
        return True

    def _taker_of(self, piece: Piece, giver: Account) -> Account | None:
        """The taker: one in the giver's zone, if it is as good as any, and only if it then carries
        less than the giver.
        """
        near = self.accounts.open.nearest(giver.zone, self.slack)
        if near is None or near is giver or near.use_with(piece.weight) >= giver.use:
            others = [each for each in self.accounts.all if each.is_open and each is not giver]
            near = min(others, key=lambda each: each.use_with(piece.weight), default=None)
        is_below = near is not None and near.use_with(piece.weight) < giver.use
        return near if is_below else None

    def _move_hot_key(self, giver: Account, taker: Account) -> bool:
        """Move the hot key that leaves the two owners nearest to even, if there is one worth
        moving.

        Ranges then have to mend what the taker has too much, or the giver too little. The move is
        worth it if that is less than half of what ranges would have to do without it.
        """
        surplus = giver.use - self.share
        strength = max(giver.capacity, taker.capacity)
        stronger = [each for each in self.accounts.uneven if each.capacity > strength]
        takers = [taker, *sorted(filter(_is_open, stronger), key=lambda each: each.fill)[:1]]
        found = [
            (
                max(
                    abs(giver.use_with(-rate) - self.share),
                    each.use_with(rate) - self.share,
                ),
                key,
                each.incarnation,
                piece,
            )
            for rate, key, piece in self._lumps(giver)
            for each in takers
            if not piece.rests
        ]
        left, key, number, piece = min(
            found, key=lambda each: each[:3], default=(surplus, b"", NOBODY, None)
        )
        if piece is None or left >= surplus / 2 or not self.may_cut(giver):
            return False
        taker = self.accounts.by_incarnation[number]
        reason = f"{giver.name} was at {self.of_share(giver)}, with a hot key"
        self.move(self.single_out(piece, key), taker, "level", reason)
        return True

    def _swap(self, giver: Account, surplus: float) -> bool:
        """Swap a hot key that nobody has room for with an owner that can make room. Returns whether
        one moved.
        """
        relieving = f"relieving {giver.name}, at {self.of_share(giver)}"
        lumps = self._lumps(giver)
        enough = [lump for lump in lumps if lump[0] >= surplus / 2 and not lump[2].rests]
        if not enough:
            self.hold_back(relieving, "its ranges cool down, are pinned or cannot be cut")
            return False
        rate, key, piece = min(enough, key=lambda lump: lump[:2])
        is_only_one = lumps == enough[:1]  # only a stronger owner has room for it
        found: tuple[float, int] | None = None
        for taker in self.accounts.all:
            if taker is giver or not taker.is_open:
                continue
            if is_only_one and taker.capacity <= giver.capacity:
                continue
            fixed = rate + sum(lump[0] for lump in self._lumps(taker))
            then = max(fixed, taker.weight + rate - self.left * self.weight)
            if then / taker.capacity < giver.use * 0.95:
                found = min(found or (then, taker.incarnation), (then, taker.incarnation))
        if found is None:
            self.hold_back(relieving, "nobody could make room for one of its hot keys now")
            return False
        if not self.may_cut(giver):
            return False
        taker = self.accounts.by_incarnation[found[1]]
        reason = f"{giver.name} was at {self.of_share(giver)}; {taker.name} makes room"
        self.move(self.single_out(piece, key), taker, "level", reason)
        return True

    def _lumps(self, account: Account) -> list[tuple[float, Key, Piece]]:
        """The account's keys that weigh too much to go just anywhere."""
        alone = self.tuning.alone * self.share * account.capacity
        return [
            (rate, key, piece)
            for piece in account.pieces
            for key, rate in piece.points
            if rate >= alone
        ]
