"""Translates the driver's errors for users of a store."""

import re

from cassandra import AlreadyExists, InvalidRequest, OperationTimedOut, Unauthorized, Unavailable
from cassandra.cluster import NoHostAvailable
from cassandra.protocol import SyntaxException

from tenure.columns.backends.cassandra.address import CassandraAddress
from tenure.errors import NotEnoughReplicas, SchemaError, StoreError, TenureError, WriteUnknown

_FROM_SERVER = re.compile(r'message="(.*?)"(?: info=|>?$)', re.DOTALL)
_FROM_SYSTEM = re.compile(r"Last error: (.+)")


def plainly(error: object) -> str:
    """The text of an error, without the tuples and class names that the driver puts around it."""
    if isinstance(error, NoHostAvailable) and error.errors:
        several = error.errors.items() if isinstance(error.errors, dict) else ()
        return "; ".join(f"{node}: {plainly(each)}" for node, each in several)
    if isinstance(error, NoHostAvailable):
        return "none of its nodes can be reached"
    if isinstance(error, OperationTimedOut):
        return "no answer came in time"
    said = str(error)
    if found := _FROM_SERVER.search(said):
        return found[1].removesuffix(".")
    if isinstance(error, OSError):
        found = _FROM_SYSTEM.search(said)
        return (found[1] if found else error.strerror or said).lower()
    return said or type(error).__name__


def in_our_words(error: BaseException, address: CassandraAddress, *, is_write: bool) -> TenureError:
    """The error to raise. A write that may have reached a replica is unknown, whatever failed."""
    said = plainly(error)
    match error:
        case TenureError():
            return error
        case Unavailable():
            return NotEnoughReplicas(
                f"{error.alive_replicas} of the {error.required_replicas} replicas that the write "
                f"or read needs are there at {address}; nothing was sent to them"
            )
        case AlreadyExists():
            return SchemaError(f"{said} at {address}")
        case InvalidRequest() | SyntaxException():
            return SchemaError(f"{address} does not take the request: {said}")
        case Unauthorized():
            return StoreError(f"{address} does not let this user do it: {said}")
        case NoHostAvailable() if not error.errors or not is_write:
            return StoreError(f"no node answers at {address}: {said}")
        case OperationTimedOut() if not is_write:
            return StoreError(f"{address} has not answered in time: {said}")
        case _ if is_write:
            return WriteUnknown(
                f"{address} may have the write or not: {said}. Repeat it, which is exact"
            )
        case _:
            return StoreError(f"{address} could not answer: {said}")
