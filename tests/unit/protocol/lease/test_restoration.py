"""An old copy of a journal becomes one from which managers can go on, at the right time."""

import msgspec
import pytest

from tenure.base.instants import Instant, seconds
from tenure.base.keys import PoolKind
from tenure.protocol.lease.history import LeaseHistory
from tenure.protocol.lease.leader.receipts import SECRET_BYTES
from tenure.protocol.lease.messages import Entry
from tenure.protocol.lease.records import (
    Changed,
    Joined,
    PoolCreated,
    State,
    Steering,
    TookOver,
    WaitedOut,
)
from tenure.protocol.lease.restoration import Vigil, restored
from tenure.protocol.lease.timing import DEFAULT, PAPER, PRESETS, TEST, Timing
from tenure.protocol.log.journal import Seat

SEAT = Seat(4, 17, "http://a", TEST.on_any_clock(TEST.leadership_ns))
SECRET = bytes(range(SECRET_BYTES))
LONGEST = PAPER.on_any_clock(PAPER.leadership_ns)


def copied(kind: PoolKind = "ordered") -> LeaseHistory:
    """An owner `a` has half of a pool under number 2, and a leader has waited long enough."""
    history = LeaseHistory(State(), 0)
    for record in (
        TookOver(leadership=3, promise_ns=seconds(15), manager="http://a"),
        WaitedOut(),
        PoolCreated(pool="docs", kind=kind, split_points=(b"g",) if kind == "ordered" else ()),
        Joined(pool="docs", incarnation=1, name="a", nonce=77, address="http://10.0.0.7"),
        Changed(pool="docs", entries=(Entry(start=b"", end=b"g", owner=1, number=2, since=1),)),
        PoolCreated(pool="empty", kind="hashed"),
    ):
        history.apply(record)
    return history


def test_pools_are_kept_and_owners_and_leases_are_not() -> None:
    seat, state = restored(copied(), SEAT, SECRET)
    again = LeaseHistory(state, 6)
    again.invariants()
    assert state.promise_ns == seconds(15), "of the lost history's managers"
    assert (seat.manager, seat.beat, state.waited_out) == ("", 0, False)
    docs, empty = again.tables["docs"], again.tables["empty"]
    assert (docs.kind, docs.split_points, empty.kind) == ("ordered", (b"g",), "hashed")
    assert docs.members == {}
    assert [entry.owner for entry in docs.entries()] == [0]


def test_numbers_go_on_far_beyond_any_that_can_have_been_given_out() -> None:
    """So does `since`: whatever was known of the copy is lost."""
    history = copied()
    seat, state = restored(history, SEAT, SECRET)
    for pool in state.pools:
        table = history.tables[pool.pool]
        (entry,) = pool.entries
        assert pool.next_number > entry.number == entry.since >= table.next_number + 10**12
        assert pool.next_incarnation >= table.next_incarnation + 10**9
    assert seat.leadership == state.leadership >= SEAT.leadership + 10**9
    assert restored(history, Seat(1), SECRET)[0].leadership >= history.leadership + 10**9


def test_numbers_go_on_beyond_what_a_lost_journal_is_said_to_have_given() -> None:
    """Also those of pools that are created later; and a smaller number than the copy's is none."""
    history = copied()
    for above in (1, 500, 8 * 10**15):
        seat, state = restored(history, SEAT, SECRET, above)
        again = LeaseHistory(state, 6)
        again.apply(PoolCreated(pool="later", kind="hashed"))
        again.invariants()
        for name, table in again.tables.items():
            known = history.tables[name].next_number if name in history.tables else 1
            (entry,) = table.entries()
            assert table.next_number > entry.number >= max(known, above) + 10**12
        assert seat == restored(history, SEAT, SECRET)[0]


def test_the_last_nonce_of_every_name_is_kept() -> None:
    """P9, P21: a join that was made before and arrives now is told that it is past."""
    _, state = restored(copied(), SEAT, SECRET)
    assert state.pools[0].numbered == (("a", 1, 77),)


def test_what_an_operator_wants_is_kept_but_for_evictions() -> None:
    history = copied()
    wanted = Steering(
        cordoned=("a",),
        drained=("b",),
        evicted=(1,),
        pins=((b"k", "a"),),
        frozen=True,
        policy="deal",
    )
    history.apply(Changed(pool="docs", entries=(), steering=wanted))
    _, state = restored(history, SEAT, SECRET)
    assert state.pools[0].steering == msgspec.structs.replace(wanted, evicted=())
    LeaseHistory(state, 7).invariants()


def test_a_pool_that_was_deleted_stays_so_and_the_numbers_of_the_forgotten_are_passed() -> None:
    history = copied()
    entry = Entry(start=b"", end=None, owner=0, number=3, since=3)
    history.apply(Changed(pool="empty", entries=(entry,), deleted=True))
    _, state = restored(history, SEAT, SECRET)
    again = LeaseHistory(state, 7)
    assert [name for name, table in again.tables.items() if table.is_deleted] == ["empty"]
    assert again.first.number >= history.first.number + 10**12
    assert again.first.incarnation >= history.first.incarnation + 10**9


def test_it_has_a_secret_of_its_own_before_anybody_leads_on_it() -> None:
    """P22: any manager that leads on a copy from before can open receipts of its first leader."""
    _, state = restored(copied(), SEAT, SECRET)
    assert state.secret == SECRET


def test_thousands_of_restorations_leave_numbers_exact_in_every_language() -> None:
    history, seat = copied(), SEAT
    for _ in range(5_000):
        seat, state = restored(history, seat, SECRET)
        history = LeaseHistory(state, history.lsn)
    assert history.tables["docs"].next_number < 1 << 53


@pytest.mark.parametrize("timing", PRESETS.values(), ids=PRESETS)
def test_it_is_watched_for_as_long_as_a_standby_of_any_preset_would(timing: Timing) -> None:
    watched = timing.on_any_clock(timing.leadership_ns)
    vigil = Vigil(Instant(5), Seat(4, 17, "http://a", watched))
    assert not vigil.is_over(Instant(5 + watched - 1))
    assert not vigil.is_over(Instant(5 + LONGEST - 1))
    assert vigil.is_over(Instant(5 + LONGEST))
    patient = Vigil(Instant(5), Seat(4, 17, "http://a", LONGEST + 1))
    assert not patient.is_over(Instant(5 + LONGEST))


def test_every_change_of_the_seat_is_somebody() -> None:
    vigil = Vigil(Instant(0), SEAT)
    assert not vigil.is_disturbed(SEAT)
    for seat in (
        Seat(4, 18, "http://a", SEAT.watch_ns),
        Seat(5, 17, "http://a", SEAT.watch_ns),
        Seat(4, 17, "", SEAT.watch_ns),
        Seat(4, 17, "http://a", DEFAULT.leadership_ns),
    ):
        assert vigil.is_disturbed(seat)
