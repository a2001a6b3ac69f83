"""Whom a leader asks whether a process is gone."""

import msgspec

from tenure.protocol.lease.leader.events import ClientLost
from tenure.protocol.lease.messages import Attest, Join, LeaseRequest, LeaseResponse, Process
from tests.unit.protocol.lease.driven_manager import Driven, at

SUSPECT, BESIDE = 5, 6  # connections, and pids


def join(driven: Driven, connection: int) -> LeaseResponse:
    process = Process(
        boot_id="boot", pid_namespace=1, time_namespace=1, pid=connection, start_time=100
    )
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


def prove(driven: Driven, joined: LeaseResponse) -> None:
    request = LeaseRequest(
        pool="p",
        incarnation=joined.incarnation,
        owner_nonce=joined.owner_nonce,
        manager_nonce=driven.nonce,
        sequence=2,
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
