"""A leader that meets clients who have seen more than its journal holds, or say so."""

from typing import Any

import msgspec
import pytest

from tenure.base.instants import seconds
from tenure.protocol.lease.answers import NotLeading
from tenure.protocol.lease.leader.events import ListPools
from tenure.protocol.lease.leader.receipts import Receipt, sealed
from tenure.protocol.lease.messages import (
    Held,
    Hello,
    Introduction,
    LeaseRequest,
    LeaseResponse,
    Refusal,
    Sync,
    SyncResponse,
)
from tenure.protocol.log.journal import Beat, Beaten, JournalFailed, Mandate, Seat
from tests.unit.protocol.lease.driven_manager import Driven, at


def receipt(driven: Driven, leadership: int, lsn: int, nonce: int = 5) -> bytes:
    """Return what a leader of this journal gave to a client: nobody else can make one."""
    assert driven.machine.leader is not None
    secret = driven.machine.leader.context.history.secret
    return sealed(Receipt(leadership, nonce, lsn), driven.journal.journal, secret)


def doubting(driven: Driven) -> None:
    """A lookup shows that it has seen a later leadership."""
    shown = receipt(driven, 2, 9)
    assert (
        driven.hear(
            Sync(
                pool="p",
                sequence=1,
                journal=driven.journal.journal,
                leadership=2,
                lsn=1,
                nonce=7,
                receipt=shown,
            )
        )
        == []
    )
    assert "doubted: a peer has seen a later leadership or LSN" in driven.notes


SEEN_MORE = pytest.mark.parametrize(
    ("leadership", "lsn"),
    [(2, 9), (1, 1), (0, 2)],
    ids=[
        "a later leadership",
        "another leader under this one",
        "an earlier one in its time",
    ],
)


@SEEN_MORE
def test_a_lookup_that_has_seen_more_casts_doubt(leadership: int, lsn: int) -> None:
    """P22."""
    driven = Driven()
    shown = receipt(driven, leadership, lsn)
    assert (
        driven.hear(
            Sync(
                pool="p",
                sequence=1,
                journal=driven.journal.journal,
                leadership=leadership,
                lsn=lsn,
                nonce=7,
                receipt=shown,
            )
        )
        == []
    )
    assert driven.notes[-1].startswith("doubted: ")


@SEEN_MORE
def test_an_owner_that_has_seen_more_casts_doubt(leadership: int, lsn: int) -> None:
    """P22: one such owner is enough, whatever else it says."""
    driven = Driven()
    driven.join()
    shown, journal = receipt(driven, leadership, lsn), driven.journal.journal
    request = LeaseRequest(
        pool="p",
        incarnation=1,
        owner_nonce=11,
        manager_nonce=driven.nonce,
        sequence=2,
        journal=journal,
        leadership=1,
        held=(),
        receipt=shown,
    )
    assert driven.hear(request) == []
    assert driven.notes[-1].startswith("doubted: ")
    driven.run(at(1))
    assert driven.gave_up


def test_what_this_history_holds_casts_no_doubt() -> None:
    """P22: an answer of this leader, and of its predecessor before it took over."""
    driven = Driven()
    answer = driven.join()
    assert isinstance(answer, LeaseResponse)
    for shown in (answer.receipt, receipt(driven, 0, 0)):
        request = LeaseRequest(
            pool="p",
            incarnation=1,
            owner_nonce=11,
            manager_nonce=driven.nonce,
            sequence=2,
            journal=driven.journal.journal,
            leadership=1,
            held=(),
            receipt=shown,
        )
        driven.hear(request)
        assert not any(note.startswith("doubted: ") for note in driven.notes)


LIES: dict[str, dict[str, Any]] = {
    "a pool": {"pool": "q"},
    "an incarnation": {"incarnation": 7},
    "whose number it is": {"owner_nonce": 12},
    "who leads under this number": {"manager_nonce": 5},
    "a later leadership": {"leadership": 9},
    "a lease number": {
        "held": (Held(start=b"", end=b"g", number=1), Held(start=b"g", end=None, number=99))
    },
    "a receipt that no leader made": {"receipt": bytes(40)},
    "a receipt of no length": {"leadership": 9, "receipt": b"x"},
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_what_one_owner_claims_ends_no_leader(lie: dict[str, Any]) -> None:
    """It counts against the owner that claims it: the leader goes on, and answers others."""
    driven = Driven()
    driven.join()
    honest = LeaseRequest(
        pool="p",
        incarnation=1,
        owner_nonce=11,
        manager_nonce=driven.nonce,
        sequence=2,
        journal=driven.journal.journal,
        leadership=1,
        held=(),
    )
    [answer] = driven.hear(msgspec.structs.replace(honest, **lie))
    assert isinstance(answer, Refusal | Introduction) or "receipt" in lie
    assert not isinstance(answer, Refusal) or answer.reason == "past"
    [answer] = driven.hear(msgspec.structs.replace(honest, sequence=3))
    assert isinstance(answer, LeaseResponse)
    driven.run(at(1))
    assert (driven.gave_up, driven.machine.leader is None) == (False, False)


@pytest.mark.parametrize(("leadership", "lsn"), [(2, 1), (1, 99), (0, 2)])
def test_what_one_lookup_claims_ends_no_leader(leadership: int, lsn: int) -> None:
    driven = Driven()
    driven.join()
    journal = driven.journal.journal
    assert (
        driven.hear(
            Sync(pool="p", sequence=1, journal=journal, leadership=leadership, lsn=lsn, nonce=7)
        )
        == []
    )
    assert driven.notes[-1] == "refused: a lookup claims what is not in the journal"
    [answer] = driven.hear(
        Sync(pool="p", sequence=1, journal=journal, leadership=1, lsn=1, nonce=8)
    )
    assert isinstance(answer, SyncResponse)
    driven.run(at(1))
    assert not driven.gave_up


@SEEN_MORE
def test_a_receipt_that_a_client_has_sealed_casts_no_doubt(leadership: int, lsn: int) -> None:
    driven = Driven()
    driven.join()
    journal = driven.journal.journal
    forged = sealed(Receipt(leadership, 5, lsn), journal, b"a client's own  ")
    sync = Sync(pool="p", sequence=1, journal=journal, leadership=1, lsn=1, nonce=7, receipt=forged)
    [answer] = driven.hear(sync)
    assert isinstance(answer, SyncResponse)
    driven.run(at(1))
    assert not driven.gave_up


def test_a_peer_of_another_journal_casts_no_doubt() -> None:
    driven = Driven()
    driven.join()
    [answer] = driven.hear(Sync(pool="p", sequence=1, journal=1, leadership=99, lsn=99, nonce=7))
    assert isinstance(answer, SyncResponse)
    assert answer.snapshot


def test_who_doubts_is_silent_until_the_next_beat_decides() -> None:
    driven = Driven()
    doubting(driven)
    assert (driven.hear(Hello(pool="p", token=1)), driven.ask(ListPools())) == (
        [],
        NotLeading(None),
    )
    driven.run(at(1))
    assert driven.gave_up


def test_who_doubts_and_was_overtaken_steps_down_and_goes_on() -> None:
    driven = Driven()
    doubting(driven)
    driven.journal.seat = Seat(2, 0, "other", seconds(1))
    driven.run(at(1))
    assert (driven.gave_up, driven.machine.leader) == (False, None)
    driven.run(at(5))
    assert driven.machine.leader is not None
    assert driven.hear(Hello(pool="p", token=1)) != []


def test_a_beat_that_was_sent_before_the_doubt_decides_nothing() -> None:
    driven = Driven(held=(Beat,))
    driven.run(at(0.4))
    doubting(driven)
    [beat] = driven.waiting
    assert isinstance(beat, Beat)
    driven.waiting.clear()
    driven.take(Beaten(beat.mandate.leadership, beat.beat, kept=True))
    assert not driven.gave_up


@pytest.mark.parametrize(("leadership", "beat"), [(0, 2), (1, 1), (1, 3), (2, 2)])
def test_an_answer_to_another_beat_decides_nothing(leadership: int, beat: int) -> None:
    """It may for example answer a beat of an earlier leadership: giving up would be a mistake."""
    driven = Driven()
    driven.run(at(0.4))
    doubting(driven)
    driven.held = (Beat,)
    driven.run(at(0.7))
    assert driven.waiting[-1] == Beat(Mandate(driven.journal.journal, 1), 2)
    driven.take(Beaten(leadership, beat, kept=True))
    assert not driven.gave_up


def test_a_beat_without_an_answer_leaves_it_in_doubt() -> None:
    driven = Driven()
    doubting(driven)
    driven.held = (Beat,)
    driven.run(at(0.4))
    driven.take(JournalFailed(driven.waiting.popleft(), "no answer"))
    assert (driven.gave_up, driven.hear(Hello(pool="p", token=1))) == (False, [])
