"""The loads of the owners, ranked from most to least."""

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush

from tenure.protocol.balance.metrics import Gauge
from tenure.protocol.balance.pieces import Piece
from tenure.protocol.balance.policy import Candidate

LEAST_CAPACITY, MOST_CAPACITY = 1e-6, 1e6
"""The limits of a capacity, of which 1 is the usual one. Owners may state any number above 0;
beyond these, sums would lose the smaller terms.
"""


class Account:
    """One owner in one round: its pieces and what they weigh."""

    __slots__ = (
        "capacity",
        "cordoned",
        "devoted_to",
        "hands_over",
        "incarnation",
        "margin",
        "name",
        "pieces",
        "space",
        "turns",
        "waits",
        "weight",
        "zone",
    )

    def __init__(self, candidate: Candidate) -> None:
        self.incarnation = candidate.incarnation
        self.name = candidate.name
        self.capacity = min(max(candidate.capacity, LEAST_CAPACITY), MOST_CAPACITY)
        self.hands_over = candidate.hands_over
        self.cordoned = candidate.cordoned
        self.zone = candidate.labels.get("zone", "")
        self.pieces: list[Piece] = []
        self.weight = 0.0
        self.space = 0.0
        self.margin = 0.0
        """Half of what is given at a time: without this, an owner that is too small for anything
        looks idle.
        """
        self.devoted_to: Piece | None = None
        """A key so hot that the owner should have nothing else."""
        self.waits = False
        """Whether the owner came a moment ago and waits to be filled: see `arrivals`."""
        self.turns = False
        """Whether its load has begun to change: for now it neither gives nor takes."""

    @property
    def is_open(self) -> bool:
        """Whether it may give and take: not devoted to a key, nor cordoned, waiting or turning."""
        return not (self.devoted_to or self.cordoned or self.waits or self.turns)

    @property
    def use(self) -> float:
        """The load for each unit of its capacity."""
        return self.weight / self.capacity

    @property
    def fill(self) -> float:
        """The load for each unit of capacity, with the margin added: takers are ranked by this."""
        return (self.weight + self.margin) / self.capacity

    def use_with(self, more: float) -> float:
        """The load for each unit of its capacity, if it were given `more` load."""
        return (self.weight + more) / self.capacity


class Ranking:
    """Some owners by what they carry, the least first: of all zones, and of each."""

    def __init__(self, accounts: Iterable[Account]) -> None:
        self._heaps: dict[str | None, list[tuple[float, int, Account]]] = {}
        for each in accounts:
            self.add(each)

    def add(self, account: Account) -> None:
        """Rank one more account, by its present load."""
        for zone in (None, account.zone):
            heap = self._heaps.setdefault(zone, [])
            heappush(heap, (account.fill, account.incarnation, account))

    def least(self, zone: str | None = None) -> Account | None:
        """The owner that carries least and is open to more, of all owners or of one zone."""
        heap = self._heaps.get(zone, [])
        while heap:
            fill, _, account = heap[0]
            if account.fill == fill and account.is_open:
                return account
            heappop(heap)
        return None

    def nearest(self, zone: str | None, slack: float) -> Account | None:
        """The account with the least load; one of `zone` if it has at most `slack` more."""
        least, near = self.least(), self.least(zone)
        if least is None or near is None or near.fill > least.fill + slack:
            return least
        return near


class Accounts:
    """All owners, ranked by use."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        in_order = sorted(candidates, key=lambda candidate: candidate.incarnation)
        self.by_incarnation = {each.incarnation: Account(each) for each in in_order}
        self.by_name = {each.name: each for each in self.by_incarnation.values()}
        self.all = list(self.by_incarnation.values())
        self.capacity = sum(each.capacity for each in self.all)
        self.least_capacity = min((each.capacity for each in self.all), default=0.0)
        is_even = all(each.capacity == self.least_capacity for each in self.all)
        self.uneven = [] if is_even else self.all
        """All accounts, if some owners are stronger than others; otherwise empty."""
        self.open = Ranking(())
        """The accounts that may give and take."""
        self.beside: Sequence[Gauge] = ()
        """What they carry by other metrics than the one that is balanced."""
        self._most: list[tuple[float, int]] = []
        self.rank()

    def rank(self) -> None:
        """Rank those that may give and take."""
        free = [each for each in self.all if each.is_open]
        self.open = Ranking(free)
        self._most = [(-each.use, each.incarnation) for each in free]
        heapify(self._most)

    def put(self, piece: Piece, taker: Account) -> None:
        """Give to `taker` a piece that nobody has."""
        self._tell(piece, taker)
        piece.owner = taker.incarnation
        taker.pieces.append(piece)
        taker.space += piece.space
        self._change(taker, piece.weight)

    def move(self, piece: Piece, taker: Account) -> None:
        """Give to `taker` a piece that its owner has."""
        giver = self.by_incarnation[piece.owner]
        self._tell(piece, taker)
        giver.pieces.remove(piece)
        self._change(giver, -piece.weight)
        piece.owner = taker.incarnation
        taker.pieces.append(piece)
        giver.space -= piece.space
        taker.space += piece.space
        self._change(taker, piece.weight)

    def _tell(self, piece: Piece, taker: Account) -> None:
        for gauge in self.beside:
            gauge.move(piece, piece.owner, taker.incarnation)

    def _change(self, account: Account, weight: float) -> None:
        account.weight += weight
        if account.is_open:
            self.open.add(account)
            heappush(self._most, (-account.use, account.incarnation))

    def most(self) -> Account | None:
        """The owner that carries most, among those that were not set aside."""
        while self._most:
            use, incarnation = self._most[0]
            account = self.by_incarnation[incarnation]
            if account.use == -use and account.is_open:
                return account
            heappop(self._most)
        return None

    def set_aside(self, account: Account) -> None:
        """Pass over an account that can give nothing more, until its load changes."""
        while self._most and self._most[0] == (-account.use, account.incarnation):
            heappop(self._most)
