"""A message before its connection: refused at once, or made to fit its connection."""

import pytest

from tenure.errors import LocalProtocolError
from tenure.protocol.lease.messages import Held, Hello, LeaseRequest
from tenure.testing.contracts.transport import ATTESTED
from tenure.transport.outgoing import Outgoing
from tenure.wire.lease import decode_to_manager
from tenure.wire.limits import REQUEST_BYTES
from tenure.wire.versions import NEWEST, OLDEST


def test_its_bytes_are_those_of_the_connections_version() -> None:
    outgoing = Outgoing(Hello("rooms", 1))
    for version in range(OLDEST, NEWEST + 1):
        data = outgoing.data(version)
        assert data
        assert decode_to_manager(data, version) == Hello("rooms", 1)


def test_what_is_too_large_is_refused_before_there_is_a_connection() -> None:
    held = (Held(bytes(REQUEST_BYTES), None, 1),)
    with pytest.raises(LocalProtocolError, match="a LeaseRequest of"):
        Outgoing(LeaseRequest("rooms", 1, 2, 3, 4, 5, 6, held))


def test_what_the_connections_version_does_not_know_is_not_sent_and_that_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert Outgoing(ATTESTED).data(1) is None
    assert (
        "not sent: Attested is of protocol version 2, and the peer speaks version 1" in caplog.text
    )
