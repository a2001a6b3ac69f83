"""Whom a leader asks whether a process is gone."""

import msgspec

from tenure.base.instants import Instant
from tenure.protocol.lease.leader.events import ClientLost
from tenure.protocol.lease.leader.witnesses import OBJECTION_NS
from tenure.protocol.lease.messages import (
    Attest,
    Attested,
    Join,
    LeaseRequest,
    LeaseResponse,
    Poke,
    Process,
    Refusal,
)
from tenure.protocol.lease.timing import DEFAULT
from tests.unit.protocol.lease.driven_manager import Driven, at

SUSPECT, BESIDE = 5, 6  # connections, and pids


def process_of(connection: int) -> Process:
    return Process(
        boot_id="boot", pid_namespace=1, time_namespace=1, pid=connection, start_time=100
    )


def join(driven: Driven, connection: int) -> LeaseResponse:
    process = process_of(connection)
    name = f"o{connection}"
    message = Join(
        pool="p",
        kind="hashed",
        name=name,
        address=f"http://{name}",
        owner_nonce=connection,
        manager_nonce=driven.nonce,
        sequence=1,
    )
    message = msgspec.structs.replace(message, process=process)
    [answer] = driven.hear(message, connection)
    assert isinstance(answer, LeaseResponse)
    return answer


def prove(driven: Driven, joined: LeaseResponse, sequence: int = 2) -> None:
    request = LeaseRequest(
        pool="p",
        incarnation=joined.incarnation,
        owner_nonce=joined.owner_nonce,
        manager_nonce=driven.nonce,
        sequence=sequence,
        journal=joined.journal,
        leadership=joined.leadership,
        held=(),
    )
    driven.hear(request, joined.owner_nonce)


def asked(driven: Driven, until: float) -> bool:
    driven.said = []
    driven.run(at(until))
    return any(isinstance(message, Attest) for message in driven.said)


def test_who_has_only_joined_is_no_witness() -> None:
    """P14: a join alone does not show an owner that lives; it may be a straggler, or a liar."""
    driven = Driven()
    prove(driven, join(driven, SUSPECT))
    beside = join(driven, BESIDE)
    driven.take(ClientLost(SUSPECT))
    assert not asked(driven, until=1)
    prove(driven, beside)
    assert asked(driven, until=2)


def attested(driven: Driven, of: LeaseResponse, **said: object) -> Attested:
    """What the owner beside it says when it was asked, and has seen that the process is gone."""
    honest = Attested(
        pool="p",
        incarnation=of.incarnation,
        process=process_of(SUSPECT),
        witness=process_of(BESIDE),
        owner_nonce=BESIDE,
        manager_nonce=driven.nonce,
    )
    return msgspec.structs.replace(honest, **said)


def members(driven: Driven) -> list[int]:
    assert driven.machine.leader
    return sorted(driven.machine.leader.pools["p"].table.members)


def test_only_who_was_asked_attests_and_only_as_itself() -> None:
    """P14: an owner that shows its own nonce and process, at the connection where it was asked."""
    driven = Driven()
    suspect, beside = join(driven, SUSPECT), join(driven, BESIDE)
    prove(driven, suspect)
    prove(driven, beside)
    driven.take(ClientLost(SUSPECT))
    assert asked(driven, until=0.5)
    both = [suspect.incarnation, beside.incarnation]
    driven.hear(attested(driven, suspect, owner_nonce=77), BESIDE)
    driven.hear(attested(driven, suspect, witness=process_of(77)), BESIDE)
    driven.hear(attested(driven, suspect, process=process_of(77)), BESIDE)
    driven.hear(attested(driven, suspect, manager_nonce=77), BESIDE)
    driven.hear(attested(driven, suspect), 77)
    assert members(driven) == both
    driven.hear(attested(driven, suspect), BESIDE)
    assert members(driven) == [beside.incarnation]


def test_an_accused_that_is_connected_is_told_and_has_a_while_to_object() -> None:
    """P14: whoever lies about a living neighbour costs it one request."""
    for objects in (True, False):
        driven = Driven()
        suspect, beside = join(driven, SUSPECT), join(driven, BESIDE)
        prove(driven, suspect)
        prove(driven, beside)
        overdue = DEFAULT.renew_ns * 3 // 2 / 1e9 + 0.5
        assert asked(driven, until=overdue), "who has missed a renewal is suspected"
        [poke] = driven.hear(attested(driven, suspect), BESIDE)
        assert isinstance(poke, Poke)
        assert suspect.incarnation in members(driven)
        if objects:
            prove(driven, suspect, sequence=3)
        driven.said = []
        driven.run(Instant(driven.now + OBJECTION_NS))
        assert (suspect.incarnation in members(driven)) is objects
        past = [each for each in driven.said if isinstance(each, Refusal)]
        assert [each.reason for each in past] == ([] if objects else ["past"]), "told at once"
