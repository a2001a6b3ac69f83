"""What one owner claims is evidence against that owner alone."""

from typing import Any

import msgspec
import pytest

from tenure.base.ranges import WHOLE
from tenure.protocol.lease.leader.claims import NEVER
from tenure.protocol.lease.messages import Held, LeaseRequest, LeaseResponse, Refusal
from tests.unit.protocol.lease.desk import SEAL, ByName, Desk, at, listed


@pytest.mark.parametrize(
    "lie",
    [
        {"leadership": SEAL.leadership + 1},
        {"incarnation": 99},
        {"owner_nonce": 999},
        {"held": (Held(start=b"", end=None, number=10**6),)},
    ],
)
def test_who_claims_what_this_journal_never_gave_is_past_and_nobody_else(
    lie: dict[str, Any],
) -> None:
    desk = Desk(ByName((WHOLE, "o")))
    owner = desk.owner(at(0), "o", 101)
    held = desk.settle(at(1), owner, 101)
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
    answer = desk.ask(at(3), owner, 101, held)
    assert isinstance(answer, LeaseResponse)
    assert listed(answer) == held != ()
