"""Whom a leader asks whether a process is gone."""

import msgspec

from tenure.protocol.lease.leader.events import ClientLost
from tenure.protocol.lease.messages import Attest, Join, LeaseRequest, LeaseResponse, Process
from tests.unit.protocol.lease.driven_manager import Driven, at

SUSPECT, BESIDE = 5, 6  # connections, and pids


def join(driven: Driven, connection: int) -> LeaseResponse:
    process = Process("boot", 1, 1, connection, 100)
    name = f"o{connection}"
    message = Join("p", "hashed", name, f"http://{name}", connection, driven.nonce, 1)
    message = msgspec.structs.replace(message, process=process)
    [answer] = driven.hear(message, connection)
    assert isinstance(answer, LeaseResponse)
    return answer


def prove(driven: Driven, joined: LeaseResponse) -> None:
    request = LeaseRequest(
        *("p", joined.incarnation, joined.owner_nonce, driven.nonce, 2),
        *(joined.journal, joined.leadership, ()),
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
