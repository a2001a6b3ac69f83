"""A leader chooses the witnesses that it asks whether a process is gone."""

import msgspec
import pytest

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
from tenure.protocol.lease.steering_events import Evict
from tenure.protocol.lease.timing import DEFAULT
from tests.unit.protocol.lease.driven_manager import Driven, at

SUSPECT, BESIDE, HEIR = 5, 6, 7  # connections, and pids


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
    """Return what the owner beside it says when it was asked, and has seen that the process is
    gone.
    """
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


def test_nobody_is_asked_about_itself() -> None:
    """An owner that is overdue may be connected, and is a witness of others."""
    driven = Driven()
    prove(driven, join(driven, SUSPECT))
    assert not asked(driven, until=5)


def same_name(driven: Driven, process: Process) -> Join:
    """A process joins under the suspect's name."""
    return Join(
        pool="p",
        kind="hashed",
        name=f"o{SUSPECT}",
        address="http://heir",
        owner_nonce=HEIR,
        manager_nonce=driven.nonce,
        sequence=1,
        process=process,
    )


def test_who_joins_under_the_name_is_believed_when_nobody_has_objected() -> None:
    """P14: it has not shown that it is an owner; and it is told that the name is free."""
    driven = Driven()
    suspect = join(driven, SUSPECT)
    prove(driven, suspect)
    driven.take(ClientLost(SUSPECT))
    said = driven.hear(same_name(driven, process_of(HEIR)), HEIR)
    assert {type(each) for each in said} == {Refusal, Attest}
    answer = attested(driven, suspect, witness=process_of(HEIR), owner_nonce=HEIR)
    driven.hear(answer, HEIR)
    driven.run(Instant(driven.now + OBJECTION_NS - 1))
    assert members(driven) == [suspect.incarnation]
    driven.said = []
    driven.run(Instant(driven.now + 1))
    assert members(driven) == []
    assert [type(each) for each in driven.said] == [Poke]


def test_who_joins_under_the_name_elsewhere_is_not_asked() -> None:
    """P14: it sees other processes than the suspect's neighbours do."""
    driven = Driven()
    prove(driven, join(driven, SUSPECT))
    elsewhere = msgspec.structs.replace(process_of(HEIR), boot_id="another")
    [refusal] = driven.hear(same_name(driven, elsewhere), HEIR)
    assert isinstance(refusal, Refusal)


def accused(driven: Driven, until: float) -> LeaseResponse:
    """A connected owner of which another has said that its process is gone."""
    suspect, beside = join(driven, SUSPECT), join(driven, BESIDE)
    prove(driven, suspect)
    prove(driven, beside)
    driven.run(at(until))
    driven.hear(attested(driven, suspect), BESIDE)
    return suspect


def test_who_accuses_once_more_does_not_give_the_dead_more_time() -> None:
    driven = Driven()
    suspect = accused(driven, until=5)
    driven.run(Instant(driven.now + OBJECTION_NS // 2))
    driven.hear(attested(driven, suspect), BESIDE)
    driven.run(Instant(driven.now + OBJECTION_NS // 2))
    assert suspect.incarnation not in members(driven)


@pytest.mark.parametrize("until", [8, 8.25, 8.5, 8.75])
def test_who_objects_is_heard_whenever_its_neighbours_are_asked_again(until: float) -> None:
    """They are asked less and less often, and perhaps not at all while it may object."""
    driven = Driven()
    suspect = accused(driven, until)
    prove(driven, suspect, sequence=3)
    driven.run(Instant(driven.now + OBJECTION_NS))
    assert suspect.incarnation in members(driven)


def test_an_accused_that_is_evicted_meanwhile_is_gone_once() -> None:
    driven = Driven()
    suspect = accused(driven, until=5)
    driven.ask(Evict(pool="p", incarnation=suspect.incarnation, confirmed_dead=True))
    driven.run(Instant(driven.now + OBJECTION_NS))
    assert suspect.incarnation not in members(driven)


def test_an_accused_that_is_connected_is_told_and_has_a_while_to_object() -> None:
    """P14: an owner that lies about a living neighbour costs it one request."""
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
