"""What the driver's errors mean to whoever uses a store."""

from cassandra import InvalidRequest, OperationTimedOut, Unauthorized, Unavailable
from cassandra.cluster import NoHostAvailable
from cassandra.protocol import SyntaxException

from tenure.columns.backends.cassandra.address import CassandraAddress
from tenure.errors import (
    NotEnoughReplicas,
    SchemaError,
    StoreError,
    TenureError,
    WriteUnknown,
)


def in_our_words(error: BaseException, address: CassandraAddress, *, is_write: bool) -> TenureError:
    """The error to raise. A write that may have reached a replica is unknown, whatever failed."""
    said = str(error) or type(error).__name__
    match error:
        case TenureError():
            return error
        case Unavailable():
            return NotEnoughReplicas(
                f"{error.alive_replicas} of the {error.required_replicas} replicas that the write "
                f"or read needs are there at {address}; nothing was sent to them"
            )
        case InvalidRequest() | SyntaxException():
            return SchemaError(f"{address} does not take the request: {said}")
        case Unauthorized():
            return StoreError(f"{address} does not let this user do it: {said}")
        case NoHostAvailable() if not error.errors or not is_write:
            return StoreError(f"nobody answers at {address}: {said}")
        case OperationTimedOut() if not is_write:
            return StoreError(f"{address} has not answered in time: {said}")
        case _ if is_write:
            return WriteUnknown(
                f"{address} may have the write or not: {said}. Repeat it, which is exact"
            )
        case _:
            return StoreError(f"{address} could not answer: {said}")
