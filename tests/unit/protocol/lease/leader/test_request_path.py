"""How far a lease request goes through the leader: what a reader must follow.

Counted as for a read at a quorum, in `test_read_path.py`: files on the *way* lead on to others; the
rest are words that these use.
"""

import pytest

from tenure.base.instants import Instant, seconds
from tenure.protocol.lease.leader.events import ClientSaid
from tenure.protocol.lease.messages import Held, Leased, LeaseRequest, LeaseResponse
from tests.trail import Trail
from tests.unit.protocol.lease.driven_manager import CLIENT, Driven

MOST_FILES = 25
MOST_ON_THE_WAY = 10
MOST_PASSES = 93
"""These limits only ever go down."""


class Asking:
    """An owner that has joined, and asks."""

    def __init__(self) -> None:
        self.manager = Driven()
        joined = self.manager.join()
        assert isinstance(joined, LeaseResponse)
        self.incarnation = joined.incarnation
        self.sequence = 1
        self.leased: tuple[Leased, ...] = ()

    def request(self) -> LeaseRequest:
        self.manager.run(Instant(self.manager.now + seconds(1)))
        assert self.manager.machine.leader is not None
        seal = self.manager.machine.leader.context.seal
        self.sequence += 1
        return LeaseRequest(
            pool="p",
            incarnation=self.incarnation,
            owner_nonce=11,
            manager_nonce=seal.nonce,
            sequence=self.sequence,
            journal=seal.journal,
            leadership=seal.leadership,
            held=tuple(Held(start=it.start, end=it.end, number=it.number) for it in self.leased),
        )

    def ask(self) -> None:
        """Hold what the answer lists."""
        for said in self.manager.hear(self.request()):
            if isinstance(said, LeaseResponse):
                self.leased = said.leases


@pytest.mark.parametrize("asked", [0, 1, 2, 3])
def test_a_lease_request_does_not_wander(asked: int) -> None:
    """The first request speaks, the second is granted everything, and the others are renewals."""
    owner, path = Asking(), Trail()
    for _ in range(asked):
        owner.ask()
    request = owner.request()
    path.begin()
    owner.manager.machine.handle(owner.manager.now, ClientSaid(CLIENT, request))
    path.end()
    print(path.told())
    assert bool(request.held) == (asked > 1)
    assert "protocol/lease/leader/pool.py" in path.way
    assert len(path.way) <= MOST_ON_THE_WAY
    assert len(set(path.files)) <= MOST_FILES
    assert path.passes <= MOST_PASSES
