"""The manager machine: taking over, being deposed, compaction, and which clients it answers."""

from collections import deque
from random import Random

import pytest
from msgspec import structs

from tenure.base.instants import FAR_FUTURE, Instant, seconds
from tenure.base.keys import KEY_BYTES
from tenure.protocol.lease.answers import Impossible, NotLeading, PoolMade
from tenure.protocol.lease.leader.events import ClientLost, CreatePool, ListPools, StopRequested
from tenure.protocol.lease.leader.receipts import SECRET_BYTES
from tenure.protocol.lease.messages import (
    Hello,
    Introduction,
    Join,
    LeaseRequest,
    LeaseResponse,
    Refusal,
    Standby,
    Sync,
    SyncRefusal,
    ToManager,
)
from tenure.protocol.lease.records import PoolCreated, TookOver
from tenure.protocol.lease.timing import DEFAULT
from tenure.protocol.log.journal import (
    Append,
    Appended,
    Beat,
    Committed,
    Compact,
    Deposed,
    JournalFailed,
    Load,
    Loaded,
    Mandate,
    Resign,
    Seat,
    Unknown,
)
from tenure.sim.journal import waited_out
from tests.unit.protocol.lease.driven_manager import CLIENT, Driven, at


def standing_by() -> Driven:
    """Another manager leads, and beats."""
    journal = waited_out(Random(1))
    journal.seat = Seat(4, 1, "other", seconds(2))
    return Driven(journal=journal)


# --- standing by and taking over ------------------------------------------------------------------


def test_what_a_standby_was_asked_last_it_answers_when_it_leads() -> None:
    """P24: or clients, which pause between their questions, would hear of it a pause later."""
    driven = standing_by()
    driven.hear(Hello(pool="p", token=1))
    driven.hear(Hello(pool="p", token=2))
    driven.hear(Hello(pool="p", token=3), connection=CLIENT + 1)
    driven.take(ClientLost(CLIENT + 1))
    driven.said = []
    driven.run(at(9))
    assert driven.machine.leader
    assert [m.token for m in driven.said if isinstance(m, Introduction)] == [2]


def test_a_standby_says_who_leads() -> None:
    """P24."""
    assert standing_by().hear(Hello(pool="p", token=1)) == [Standby(leader="other")]
    assert standing_by().ask(ListPools()) == NotLeading("other")


def test_who_has_won_and_not_read_the_journal_names_nobody() -> None:
    """It would name itself, and be asked again at once."""
    driven = Driven(held=(Load,))
    assert driven.hear(Hello(pool="p", token=1)) == [Standby(leader=None)]
    assert driven.ask(ListPools()) == NotLeading(None)


def test_a_takeover_is_written_before_anybody_is_answered() -> None:
    """P19, P18."""
    driven = Driven(held=(Append,))
    [append] = driven.waiting
    assert isinstance(append, Append)
    promise_ns = DEFAULT.hold_ns + DEFAULT.on_any_clock(DEFAULT.leadership_ns)
    [takeover] = append.records
    assert isinstance(takeover, TookOver)
    assert (takeover.leadership, takeover.promise_ns, takeover.manager) == (1, promise_ns, "m")
    assert len(takeover.secret) == SECRET_BYTES
    assert driven.hear(Hello(pool="p", token=1)) == []
    driven.release()
    [answer] = driven.said
    assert isinstance(answer, Introduction)


def test_a_nonce_is_drawn_at_each_takeover() -> None:
    """P2."""
    driven = Driven()
    first = driven.nonce
    driven.journal.seat = Seat(2, 0, "other", 0)
    driven.run(at(1))
    assert driven.machine.leader is None or driven.nonce != first
    driven.run(at(3))
    assert driven.nonce != first


def secret_of(driven: Driven) -> bytes:
    assert driven.machine.leader is not None
    return driven.machine.leader.context.history.secret


def test_a_journal_has_a_secret_that_its_first_leader_draws_and_all_others_keep() -> None:
    """Receipts and the secrets of orders are made of it, so nobody may know it beforehand."""
    one, other = Driven(seed=1), Driven(seed=2)
    secret, leader = secret_of(one), one.machine.leader
    assert len(secret) == SECRET_BYTES
    assert secret != secret_of(other)
    one.journal.seat = Seat(2, 0, "other", 0)
    one.run(at(3))
    assert one.machine.leader is not leader
    assert secret_of(one) == secret


def test_a_journal_that_cannot_be_read_is_tried_again_at_a_beats_pace() -> None:
    driven = Driven(held=(Load,))
    for _ in range(10):
        assert len(driven.waiting) == 1, "one at a time"
        driven.take(JournalFailed(driven.waiting.popleft(), "a disk error"))
        driven.run(Instant(driven.now + DEFAULT.beat_ns))
    loads = sum(isinstance(call, Load) for call in driven.calls)
    assert 5 <= loads <= 12
    driven.release()
    assert driven.machine.leader is not None


def test_what_was_read_for_an_earlier_leadership_is_not_used() -> None:
    """P19: it may lack what was appended between."""
    driven = Driven(held=(Load,))
    [load] = driven.waiting
    stale = driven.journal.carry_out(load)
    driven.journal.seat = Seat(2, 0, "", 0)
    driven.run(at(1))
    assert stale is not None
    driven.take(stale)
    assert driven.machine.leader is None
    driven.release()
    assert driven.machine.leader is not None


def test_what_is_read_twice_makes_one_leader() -> None:
    driven = Driven()
    leader = driven.machine.leader
    loaded = driven.journal.carry_out(Load(1))
    assert isinstance(loaded, Loaded)
    driven.take(loaded)
    assert driven.machine.leader is leader


# --- leading --------------------------------------------------------------------------------------


def test_the_first_owner_creates_its_pool() -> None:
    driven = Driven()
    answer = driven.join()
    assert isinstance(answer, LeaseResponse)
    assert PoolCreated(pool="p", kind="hashed") in driven.journal.records


def refused(driven: Driven, **how: object) -> tuple[str, str]:
    answer = driven.join(**how)  # type: ignore[arg-type]
    assert isinstance(answer, Refusal)
    return answer.reason, answer.detail


def test_a_pool_is_not_created_where_that_is_not_allowed_or_its_kind_not_said() -> None:
    assert refused(Driven(create_pools=False))[0] == "no_pool"
    assert refused(Driven(), kind=None)[0] == "no_pool"


def test_a_pool_of_another_kind_is_refused_with_the_way_out() -> None:
    driven = Driven()
    driven.join()
    reason, detail = refused(driven, name="other", kind="ordered")
    assert (reason, "'hashed'" in detail) == ("pool_kind", True)


@pytest.mark.parametrize("pool", ["\u200b", "n\x00\n", "\ud800x", "p" * 201, "\U000e0001" * 200])
def test_what_can_be_no_pools_name_never_reaches_the_journal(pool: str) -> None:
    driven = Driven()
    before = list(driven.journal.records)
    reason, detail = refused(driven, pool=pool)
    assert (reason, "cannot be a pool's name" in detail) == ("no_pool", True)
    assert len(detail) < 1000
    answer = driven.ask(CreatePool(pool, "hashed"))
    assert isinstance(answer, Impossible)
    assert "cannot be a pool's name" in answer.why
    assert list(driven.journal.records) == before


def test_split_points_that_are_too_long_never_reach_the_journal() -> None:
    driven = Driven()
    before = list(driven.journal.records)
    answer = driven.ask(CreatePool("p", "ordered", (b"a", b"k" * (KEY_BYTES + 1))))
    assert answer == Impossible(
        "a split point of 1025 bytes; at most 1024 are allowed; choose shorter ones"
    )
    assert list(driven.journal.records) == before
    assert driven.ask(CreatePool("p", "ordered", (b"k" * KEY_BYTES,))) == PoolMade(
        "p", "ordered", created=True
    )


def test_a_request_for_a_pool_that_is_not_there_is_refused() -> None:
    driven = Driven()
    request = LeaseRequest(
        pool="q",
        incarnation=1,
        owner_nonce=1,
        manager_nonce=driven.nonce,
        sequence=1,
        journal=driven.journal.journal ^ 1,
        leadership=1,
        held=(),
    )
    [answer] = driven.hear(request)
    assert isinstance(answer, Refusal)
    assert answer.reason == "past"  # when it joins again it hears whether it may create the pool
    sync = Sync(pool="q", sequence=1, journal=0, leadership=0, lsn=0, nonce=7)
    [answer] = driven.hear(sync)
    assert isinstance(answer, SyncRefusal)


@pytest.mark.parametrize(
    "message",
    [
        Join(
            pool="p",
            kind="hashed",
            name="o",
            address="x",
            owner_nonce=11,
            manager_nonce=3,
            sequence=1,
        ),
        Hello(pool="p", token=4),
    ],
)
def test_without_its_nonce_it_only_introduces_itself(message: ToManager) -> None:
    """P9."""
    driven = Driven()
    lsn = driven.journal.lsn
    [answer] = driven.hear(message)
    assert isinstance(answer, Introduction)
    assert (answer.manager_nonce, driven.journal.lsn) == (driven.nonce, lsn)


def test_a_leader_that_cannot_prove_it_is_silent() -> None:
    """P19: not even what it said while it could leaves then."""
    driven = Driven(held=(Beat, Append))
    driven.release()
    driven.held = (Beat, Append)
    driven.hear(
        Join(
            pool="p",
            kind="hashed",
            name="o",
            address="http://o",
            owner_nonce=11,
            manager_nonce=driven.nonce,
            sequence=1,
        )
    )
    driven.run(at(2))
    assert driven.hear(Hello(pool="p", token=1)) == []
    assert "silent: leadership not proven" in driven.notes
    driven.waiting = deque(call for call in driven.waiting if isinstance(call, Append))
    driven.release()
    assert [m for m in driven.said if not isinstance(m, Standby)] == []


def test_who_is_deposed_tells_everybody_to_look_elsewhere() -> None:
    driven = Driven()
    driven.hear(Hello(pool="p", token=1), connection=1)
    driven.hear(Hello(pool="p", token=1), connection=2)
    driven.take(ClientLost(2))
    driven.said = []
    driven.journal.seat = Seat(2, 0, "other", seconds(9))
    driven.run(at(1))
    assert (driven.said, driven.machine.leader) == ([Standby(leader=None)], None)
    assert "deposed" in driven.notes


def test_an_append_that_is_refused_deposes() -> None:
    driven = Driven()
    driven.journal.seat = Seat(2, 0, "other", seconds(9))
    driven.hear(
        Join(
            pool="p",
            kind="hashed",
            name="o",
            address="http://o",
            owner_nonce=11,
            manager_nonce=driven.nonce,
            sequence=1,
        )
    )
    assert driven.machine.leader is None
    assert [m for m in driven.said if isinstance(m, LeaseResponse)] == []


@pytest.mark.parametrize("result", [Committed(99), Deposed(), Unknown("")])
@pytest.mark.parametrize(("leadership", "after_lsn"), [(1, 0), (2, 2), (0, 2), (1, 2)])
def test_an_answer_to_no_append_that_is_under_way_changes_nothing(
    result: Committed | Deposed | Unknown, leadership: int, after_lsn: int
) -> None:
    """The append is of an earlier leadership, or its answer comes twice."""
    driven = Driven()
    assert driven.machine.leader is not None
    assert driven.machine.leader.context.ledger.committed == 2
    driven.take(Appended(leadership, after_lsn, result))
    driven.run(at(1))
    assert driven.machine.leadership.phase == "leading"
    assert sum(isinstance(call, Append) for call in driven.calls) == 1


def test_an_append_of_unknown_fate_is_repeated_at_a_beats_pace() -> None:
    """P18: and not at once, for a full disk stays full."""
    driven = Driven(held=(Append,))
    for _ in range(10):
        [append] = driven.waiting
        assert isinstance(append, Append)
        driven.waiting.clear()
        driven.take(Appended(append.mandate.leadership, append.after_lsn, Unknown("full")))
        assert not driven.waiting
        driven.run(Instant(driven.now + DEFAULT.beat_ns))
    appends = [call for call in driven.calls if isinstance(call, Append)]
    assert (len(appends), len({append.records for append in appends})) == (11, 1)


def test_who_stops_resigns_and_answers_nobody() -> None:
    """P24."""
    driven = Driven()
    driven.hear(Hello(pool="p", token=1))
    driven.said = []
    driven.take(StopRequested())
    assert (driven.calls[-1], driven.said) == (
        Resign(Mandate(driven.journal.journal, 1)),
        [Standby(leader=None)],
    )
    assert driven.hear(Hello(pool="p", token=1)) == [Standby(leader=None)]
    assert driven.wake_at == FAR_FUTURE
    assert driven.journal.seat.manager == ""


def test_what_is_not_durable_when_it_stops_is_not_said() -> None:
    """P18."""
    driven = Driven()
    driven.held = (Append,)
    driven.hear(
        Join(
            pool="p",
            kind="hashed",
            name="o",
            address="http://o",
            owner_nonce=11,
            manager_nonce=driven.nonce,
            sequence=1,
        )
    )
    driven.take(StopRequested())
    driven.release()
    assert [m for m in driven.said if isinstance(m, LeaseResponse)] == []


# --- compacting -----------------------------------------------------------------------------------


def test_records_are_compacted_to_their_sum() -> None:
    driven = Driven(compact_after=5)
    for i in range(8):
        driven.join(name=f"o{i}")
    assert driven.machine.leader is not None
    history = driven.machine.leader.context.history
    assert 0 < driven.journal.state_lsn <= history.lsn
    assert len(driven.journal.records) < 5
    successor = Driven(journal=driven.journal)
    driven.journal.vacate()
    successor.run(at(5))
    assert successor.machine.leader is not None
    assert (
        successor.machine.leader.context.history.tables["p"].state() == history.tables["p"].state()
    )


def test_a_compaction_that_comes_after_a_takeover_takes_nothing_away() -> None:
    """The old leader was stopped before it. The new one's records are not in its state."""
    driven = Driven(held=(Compact,), compact_after=3)
    driven.join()
    [compact] = driven.waiting
    driven.journal.vacate()
    successor = Driven(journal=driven.journal)
    successor.run(at(5))
    lsn, records = driven.journal.lsn, tuple(driven.journal.records)
    driven.release()
    assert isinstance(compact, Compact)
    assert (driven.journal.lsn, tuple(driven.journal.records)) == (lsn, records)


def test_a_state_is_taken_when_all_of_it_is_committed() -> None:
    """Otherwise a later leader would know what was never durable."""
    driven = Driven(compact_after=1)
    driven.join()
    for call in driven.calls:
        if isinstance(call, Compact):
            assert call.lsn <= driven.journal.lsn
    driven.held = (Append,)
    compactions = sum(isinstance(call, Compact) for call in driven.calls)
    driven.hear(
        Join(
            pool="p",
            kind=None,
            name="other",
            address="http://o",
            owner_nonce=12,
            manager_nonce=driven.nonce,
            sequence=1,
        )
    )
    assert sum(isinstance(call, Compact) for call in driven.calls) == compactions
    driven.release()
    assert sum(isinstance(call, Compact) for call in driven.calls) == compactions + 1


def test_a_manager_that_always_has_something_to_write_compacts_all_the_same() -> None:
    """Otherwise whoever keeps it busy makes its journal grow without end."""
    driven = Driven(compact_after=10)
    driven.join()
    driven.held = (Append,)
    for number in range(100):
        driven.hear(joining(driven, f"o{number}"))
        driven.hear(joining(driven, f"p{number}"))
        driven.answer_first()
        assert driven.machine.leader is not None
        assert driven.machine.leader.context.ledger.unsettled, "one is always on its way"
    assert len(driven.journal.records) < 30
    driven.release()
    known = driven.machine.leader.context.history if driven.machine.leader else None
    assert known is not None
    successor = Driven(journal=driven.journal)
    driven.journal.vacate()
    successor.run(at(5))
    assert successor.machine.leader is not None
    assert successor.machine.leader.context.history.tables["p"].state() == known.tables["p"].state()


def test_few_records_are_compacted_too_where_they_are_long() -> None:
    """A join may have a hundred KiB of labels."""
    driven = Driven(compact_after_bytes=50_000)
    for number in range(30):
        long = {f"label-{each}": "x" * 190 for each in range(50)}
        driven.hear(structs.replace(joining(driven, f"o{number}"), labels=long))
    assert len(driven.journal.records) < 10
    records = len(driven.journal.records)
    driven.hear(joining(driven, "o99"))
    assert len(driven.journal.records) == records + 1


def joining(driven: Driven, name: str) -> Join:
    return Join(
        pool="p",
        kind="hashed",
        name=name,
        address="http://o",
        owner_nonce=1 + int(name[1:]),
        manager_nonce=driven.nonce,
        sequence=1,
    )
