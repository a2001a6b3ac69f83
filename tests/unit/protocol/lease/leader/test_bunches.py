"""Clients that ask at different times are told to ask again at common instants (P7)."""

import pytest

from tenure.base.instants import Instant
from tenure.protocol.lease.messages import LeaseResponse, Sync, SyncResponse
from tenure.protocol.lease.timing import DEFAULT
from tests.unit.protocol.lease.desk import HIGH, LOW, T0, ByName, Desk, at

A, B, LOOKUP, OTHER = 101, 102, 1, 2
BUNCH_NS = DEFAULT.bunch_ns


def renewed(desk: Desk, now: Instant, incarnation: int, nonce: int) -> Instant:
    """When an owner that asks now, and is answered at once, asks again."""
    answer = desk.ask(now, incarnation, nonce, desk.pool.table.held_by(incarnation))
    assert isinstance(answer, LeaseResponse)
    assert DEFAULT.renew_ns - BUNCH_NS < answer.renew_ns <= DEFAULT.renew_ns
    return Instant(now + answer.renew_ns)


def synced(desk: Desk, now: Instant, connection: int) -> Instant:
    """The same of a lookup."""
    asked = Sync(pool="p", sequence=1, journal=0, leadership=1, lsn=0, nonce=4)
    desk.pool.publisher.on_sync(now, connection, asked)
    desk.commit()
    [answer] = desk.told(connection, SyncResponse)
    assert DEFAULT.sync_ns - BUNCH_NS < answer.sync_ns <= DEFAULT.sync_ns
    return Instant(now + answer.sync_ns)


def two_owners() -> Desk:
    """Both have what they are to have."""
    desk = Desk(ByName((LOW, "a b"), (HIGH, "b a")))
    desk.owner(T0, "a", A)
    desk.owner(T0, "b", B)
    for _ in range(3):
        desk.settle(at(0.2), 1, A)
        desk.settle(at(0.2), 2, B)
    return desk


def test_owners_that_ask_at_different_times_ask_together_after_that() -> None:
    desk = two_owners()
    first = renewed(desk, at(1.012), 1, A)
    assert first == renewed(desk, at(1.087), 2, B)
    assert first % BUNCH_NS == 0


def test_lookups_ask_at_the_instants_at_which_owners_do() -> None:
    desk = two_owners()
    asks = [synced(desk, at(1.012), LOOKUP), synced(desk, at(1.087), OTHER)]
    assert asks[0] == asks[1]
    assert asks[0] % BUNCH_NS == renewed(desk, at(1.05), 1, A) % BUNCH_NS


def test_a_bunch_stays_together() -> None:
    """Each asks a little after the instant at which it is told to, and each another little."""
    desk = two_owners()
    asks = [(renewed(desk, at(1.01), 1, A), 1, A), (renewed(desk, at(1.09), 2, B), 2, B)]
    for _ in range(20):
        again = [
            renewed(desk, Instant(when + 300_000 * who), who, nonce) for when, who, nonce in asks
        ]
        assert again[0] == again[1] == asks[0][0] + DEFAULT.renew_ns
        asks = [(again[0], 1, A), (again[1], 2, B)]


@pytest.mark.parametrize("late_ns", [0, 1, BUNCH_NS - 1])
def test_nobody_is_told_to_ask_later_than_the_preset_says(late_ns: int) -> None:
    """Two lost requests must cost no lease, and one lost sync no contact."""
    desk = two_owners()
    now = Instant(at(2) // BUNCH_NS * BUNCH_NS + late_ns)
    assert renewed(desk, now, 1, A) - now == DEFAULT.renew_ns - late_ns
    assert synced(desk, now, LOOKUP) - now == DEFAULT.sync_ns - late_ns
