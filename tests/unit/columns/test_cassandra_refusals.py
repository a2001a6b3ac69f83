"""The driver's errors become plain words, and errors of the right kind."""

import pytest
from cassandra import AlreadyExists, InvalidRequest, OperationTimedOut, WriteTimeout
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionShutdown
from cassandra.protocol import OverloadedErrorMessage

from tenure.columns.backends.cassandra.address import parse_address
from tenure.columns.backends.cassandra.refusals import in_our_words
from tenure.errors import SchemaError, StoreError, WriteUnknown

ADDRESS = parse_address("cassandra:db/k")
REFUSED = ConnectionRefusedError(
    111, "Tried connecting to [('10.0.0.1', 9042)]. Last error: Connection refused"
)
AWAY = NoHostAvailable("Unable to connect", {"10.0.0.1:9042": REFUSED})
LATE = WriteTimeout(
    'Error from server: code=1100 [timeout] message="Operation timed out - received only 0 '
    "responses.\" info={'consistency': 'QUORUM'}",
    write_type=0,
)


@pytest.mark.parametrize(
    ("error", "is_write", "kind", "says"),
    [
        (AWAY, False, StoreError, "no node answers at {}: 10.0.0.1:9042: connection refused"),
        (NoHostAvailable("x", {}), True, StoreError, "no node answers at {}: none of its nodes"),
        (AWAY, True, WriteUnknown, "10.0.0.1:9042: connection refused. Repeat it"),
        (LATE, True, WriteUnknown, "not: Operation timed out - received only 0 responses. Repeat"),
        (OperationTimedOut({"10.0.0.1": "x"}, "10.0.0.1"), False, StoreError, "no answer came"),
        (ConnectionShutdown("Connection was closed"), True, WriteUnknown, "Connection was closed"),
        (
            InvalidRequest('Error from server: code=2200 [Invalid] message="unknown table x"'),
            False,
            SchemaError,
            "does not take the request: unknown table x",
        ),
        (AlreadyExists("k", "t"), False, SchemaError, "Table 'k.t' already exists at {}"),
        (OverloadedErrorMessage(0x1001, "busy", None), True, WriteUnknown, "write or not: busy."),
    ],
)
def test_what_is_said_has_no_tuples_of_the_driver(
    error: Exception, is_write: bool, kind: type[Exception], says: str
) -> None:
    said = in_our_words(error, ADDRESS, is_write=is_write)
    assert type(said) is kind
    assert says.format(ADDRESS) in str(said)
    assert not any(mark in str(said) for mark in ("{", "(", "Error from server", "Errno"))
