"""A message before its connection exists is refused at once, or made to fit the connection."""

import pytest

from lab.contracts.transport import ATTESTED
from tenure.errors import LocalProtocolError
from tenure.protocol.lease.messages import Held, Hello, LeaseRequest
from tenure.transport.outgoing import Outgoing
from tenure.wire.lease import decode_to_manager, encode
from tenure.wire.limits import REQUEST_BYTES
from tenure.wire.versions import NEWEST, OLDEST


def test_its_bytes_are_those_of_the_connections_version() -> None:
    outgoing = Outgoing(Hello(pool="rooms", token=1), encode)
    for version in range(OLDEST, NEWEST + 1):
        data = outgoing.data(version)
        assert data
        assert decode_to_manager(data, version) == Hello(pool="rooms", token=1)


def test_what_is_too_large_is_refused_before_there_is_a_connection() -> None:
    held = (Held(start=bytes(REQUEST_BYTES), end=None, number=1),)
    with pytest.raises(LocalProtocolError, match="a LeaseRequest of"):
        Outgoing(
            LeaseRequest(
                pool="rooms",
                incarnation=1,
                owner_nonce=2,
                manager_nonce=3,
                sequence=4,
                journal=5,
                leadership=6,
                held=held,
            ),
            encode,
        )


def test_what_the_connections_version_does_not_know_is_not_sent_and_that_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert Outgoing(ATTESTED, encode).data(1) is None
    assert (
        "not sent: Attested is of protocol version 2, and the peer speaks version 1" in caplog.text
    )
