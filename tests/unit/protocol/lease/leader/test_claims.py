"""The claims of one owner are evidence against that owner alone."""

from typing import Any

import msgspec
import pytest

from tenure.base.ranges import WHOLE
from tenure.protocol.lease.leader.claims import NEVER
from tenure.protocol.lease.messages import Held, LeaseRequest, LeaseResponse, Refusal, ShortRequest
from tests.unit.protocol.lease.desk import HIGH, LOW, SEAL, ByName, Desk, at, listed


@pytest.mark.parametrize(
    "lie",
    [
        {"leadership": SEAL.leadership + 1},
        {"incarnation": 99},
        {"incarnation": 2},
        {"owner_nonce": 999},
        {"held": (Held(start=b"", end=None, number=10**6),)},
        {"held": (Held(start=b"", end=None, number=3),)},
    ],
)
def test_who_claims_what_this_journal_never_gave_is_past_and_nobody_else(
    lie: dict[str, Any],
) -> None:
    desk = Desk(ByName((WHOLE, "o")))
    owner = desk.owner(at(0), "o", 101)
    held = desk.settle(at(1), owner, 101)
    table = desk.pool.table
    assert (table.next_incarnation, table.next_number) == (2, 3), "which nobody has"
    honest = LeaseRequest(
        pool="p",
        incarnation=owner,
        owner_nonce=101,
        manager_nonce=SEAL.nonce,
        sequence=1_000,
        journal=SEAL.journal,
        leadership=SEAL.leadership,
        held=held,
    )
    desk.pool.on_request(at(2), 666, msgspec.structs.replace(honest, **lie))
    desk.commit()
    [refusal] = desk.told(666, Refusal)
    assert (refusal.reason, refusal.detail) == ("past", NEVER)
    incarnation = lie.get("incarnation", owner)
    assert desk.lines[-1] == f"refused: past: incarnation {incarnation}: {NEVER}", "by name"
    answer = desk.ask(at(3), owner, 101, held)
    assert isinstance(answer, LeaseResponse)
    assert listed(answer) == held != ()


@pytest.mark.parametrize(
    ("other", "is_taken"),
    [
        ({}, True),
        ({"leadership": SEAL.leadership - 1}, True),
        ({"leadership": SEAL.leadership + 1}, False),
        ({"incarnation": 2}, False),
        ({"owner_nonce": 102}, False),
        ({"fingerprint": b"another"}, False),
    ],
)
def test_a_short_request_that_claims_too_much_is_asked_again_in_full(
    other: dict[str, Any], is_taken: bool
) -> None:
    """A request in full is then refused for it."""
    desk = Desk(ByName((WHOLE, "a")))
    desk.owner(at(0), "a", 101)
    assert desk.settle(at(1), 1, 101)
    session = desk.pool.sessions[1]
    session.take_fingerprint(desk.pool.table.held_by(1), SEAL.nonce)
    request = ShortRequest(
        pool="p",
        incarnation=1,
        owner_nonce=101,
        manager_nonce=SEAL.nonce,
        sequence=1_000,
        journal=SEAL.journal,
        leadership=SEAL.leadership,
        fingerprint=session.fingerprint,
    )
    asked = msgspec.structs.replace(request, **other)
    assert desk.pool.on_short_request(at(2), 101, asked) == is_taken
    assert (session.sequence == 1_000) == is_taken, "otherwise nothing was done"


def test_a_fingerprint_is_of_what_the_table_gives_now() -> None:
    desk = Desk(ByName((LOW, "a"), (HIGH, "b a")))
    desk.owner(at(0), "a", 101)
    desk.settle(at(1), 1, 101)
    session = desk.pool.sessions[1]
    session.take_fingerprint(desk.pool.table.held_by(1), SEAL.nonce)
    of_both = session.fingerprint
    desk.ask(at(2), 1, 101, desk.pool.table.held_by(1)[:0])
    request = ShortRequest(
        pool="p",
        incarnation=1,
        owner_nonce=101,
        manager_nonce=SEAL.nonce,
        sequence=1_000,
        journal=SEAL.journal,
        leadership=SEAL.leadership,
        fingerprint=of_both,
    )
    assert not desk.pool.on_short_request(at(3), 101, request)
