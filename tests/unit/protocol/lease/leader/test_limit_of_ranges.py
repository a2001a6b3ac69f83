"""A pool at the limit of its table: what is asked beyond it is not cut, and everything goes on."""

from random import Random

import pytest

from tenure.base.instants import Instant
from tenure.protocol.balance import planning
from tenure.protocol.lease.answers import PlanRead
from tenure.protocol.lease.leader import room
from tenure.protocol.lease.leader.context import Seal
from tenure.protocol.lease.leader.events import CreatePool
from tenure.protocol.lease.limits import RANGES_PER_PLAN, RANGES_PER_TABLE
from tenure.protocol.lease.messages import (
    Held,
    Join,
    LeaseRequest,
    LeaseResponse,
    Sync,
    SyncResponse,
)
from tenure.protocol.lease.steering_events import ChoosePolicy, ReadPlan
from tenure.protocol.lease.table import NOBODY
from tenure.protocol.lease.timing import DEFAULT
from tenure.wire.lease import decode_to_lookup, encode
from tenure.wire.versions import NEWEST
from tests.unit.protocol.lease.driven_manager import Driven

MOST = 1_024
"""Ranges of a table here: a ring has 64 for each owner, and seventeen would have 1,088."""


class Ring(Driven):
    """A pool that is planned as a ring, and its owners as the manager knows them by their nonce."""

    def __init__(self) -> None:
        super().__init__(plans_at_once=2 * MOST)  # and not beside the machine, a round later
        self.incarnations: dict[int, int] = {}
        self.has: dict[int, tuple[Held, ...]] = {}
        self.sequences: dict[int, int] = {}
        self.ask(CreatePool("p", "hashed"))
        self.ask(ChoosePolicy(pool="p", policy="ring"))

    def enter(self, nonce: int) -> None:
        message = Join(
            pool="p",
            kind="hashed",
            name=f"o{nonce}",
            address=f"http://o{nonce}",
            owner_nonce=nonce,
            manager_nonce=self.nonce,
            sequence=1,
        )
        [answer] = [each for each in self.hear(message, nonce) if isinstance(each, LeaseResponse)]
        self.incarnations[nonce], self.has[nonce], self.sequences[nonce] = answer.incarnation, (), 1
        self.renew(nonce)

    def renew(self, nonce: int, *, leaving: bool = False) -> None:
        """It lets go at once of what is recalled."""
        seal = self.seal
        self.sequences[nonce] += 1
        message = LeaseRequest(
            pool="p",
            incarnation=self.incarnations[nonce],
            owner_nonce=nonce,
            manager_nonce=seal.nonce,
            sequence=self.sequences[nonce],
            journal=seal.journal,
            leadership=seal.leadership,
            held=() if leaving else self.has[nonce],
            leaving=leaving,
        )
        for answer in self.hear(message, nonce):
            if isinstance(answer, LeaseResponse):
                self.has[nonce] = tuple(
                    Held(start=each.start, end=each.end, number=each.number)
                    for each in answer.leases
                    if each.mark != "recalled"
                )

    def round(self) -> None:
        """Everybody renews, and what policies are asked is done."""
        self.run(Instant(self.now + DEFAULT.gather_ns))
        self.plan()
        for nonce in self.has:
            self.renew(nonce)

    def rounds(self, count: int) -> None:
        for _ in range(count):
            self.round()

    def judge(self) -> int:
        """Every range has an owner, and the table is as large as it may be: how many have any."""
        snapshot = self.snapshot()
        assert MOST // 2 < len(snapshot.entries) <= MOST
        assert NOBODY not in {entry.owner for entry in snapshot.entries}
        return len({entry.owner for entry in snapshot.entries})

    def leave(self, nonce: int) -> None:
        self.renew(nonce, leaving=True)
        del self.has[nonce]

    @property
    def seal(self) -> Seal:
        leader = self.machine.leader
        assert leader is not None
        return leader.context.seal

    def snapshot(self) -> SyncResponse:
        """The whole table, as a lookup reads it from the wire."""
        message = Sync(pool="p", sequence=1, journal=0, leadership=0, lsn=0, nonce=9)
        [answer] = [each for each in self.hear(message, 5) if isinstance(each, SyncResponse)]
        read = decode_to_lookup(encode(answer, NEWEST), NEWEST)
        assert isinstance(read, SyncResponse)
        return read


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> Ring:
    """A table that takes 1,024 ranges, in the place of 131,072."""
    monkeypatch.setattr(room, "RANGES_PER_TABLE", MOST)
    monkeypatch.setattr(planning, "RANGES_PER_TABLE", MOST)
    monkeypatch.setattr(planning, "RANGES_PER_PLAN", MOST * RANGES_PER_PLAN // RANGES_PER_TABLE)
    return Ring()


def test_more_owners_than_a_ring_has_room_for_all_have_something(ring: Ring) -> None:
    """There are 2,049 owners of 64 ranges each, where at most 131,072 are allowed. Nobody is
    refused: the plan tells whoever asks for it which ranges are not cut.
    """
    for nonce in range(11, 28):
        ring.enter(nonce)
    ring.rounds(4)
    assert ring.judge() == 17
    answer = ring.ask(ReadPlan("p"))
    assert isinstance(answer, PlanRead)
    [held_back] = [each for each in answer.held_back if "cuts of ranges" in each.what]
    assert held_back.why == f"the table has no room for more than {MOST} ranges"


def test_at_the_limit_owners_come_and_go_and_the_pool_goes_on(ring: Ring) -> None:
    dice, following = Random(1), 30
    for nonce in range(11, following):
        ring.enter(nonce)
    ring.rounds(4)
    for _ in range(5):
        ring.leave(dice.choice(sorted(ring.has)))
        ring.enter(following)
        following += 1
        ring.rounds(3)
        assert ring.judge() == 19
