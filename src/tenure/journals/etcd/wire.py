"""The part of etcd's v3 API that a journal uses, as its JSON gateway has it.

The gateway is the gRPC API in JSON: bytes are base64, 64-bit numbers are strings on the way back,
and what has its default value is left out. Both etcd 3.4 and 3.5 have it under `/v3`.
"""

from typing import Final, Literal

import msgspec

TXN: Final = "/v3/kv/txn"
RANGE: Final = "/v3/kv/range"
AUTHENTICATE: Final = "/v3/auth/authenticate"
STATUS: Final = "/v3/maintenance/status"
ALARM: Final = "/v3/maintenance/alarm"


class GatewayRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """The base of all requests."""


class Compare(GatewayRequest, frozen=True):
    """A condition of a transaction. With a `range_end`, it is on every key of the range."""

    key: bytes
    target: Literal["VALUE", "CREATE"]
    result: Literal["EQUAL", "GREATER", "NOT_EQUAL"]
    value: bytes | None = None
    create_revision: int | None = None
    range_end: bytes = b""


class Range(GatewayRequest, frozen=True):
    """Read a key, or the keys from it to before `range_end`, in their order."""

    key: bytes
    range_end: bytes = b""
    limit: int = 0
    revision: int = 0
    keys_only: bool = False


class Put(GatewayRequest, frozen=True):
    """Set a key."""

    key: bytes
    value: bytes


class DeleteRange(GatewayRequest, frozen=True):
    """Delete the keys from one to before `range_end`."""

    key: bytes
    range_end: bytes


class Op(GatewayRequest, frozen=True):
    """One of what a transaction may do."""

    request_range: Range | None = None
    request_put: Put | None = None
    request_delete_range: DeleteRange | None = None


class Txn(GatewayRequest, frozen=True):
    """A transaction: if all of `compare` holds, it does `success`, otherwise `failure`, as one
    step.
    """

    compare: list[Compare]
    success: list[Op]
    failure: list[Op]


class Login(GatewayRequest, frozen=True):
    """A request for a token."""

    name: str
    password: str


class StatusRequest(GatewayRequest, frozen=True):
    """How a member is."""


class AlarmRequest(GatewayRequest, frozen=True):
    """A question: which alarms are raised?"""

    action: str


# --- answers ------------------------------------------------------------------------------------


class Header(msgspec.Struct, frozen=True):
    """The head of an answer, with its revision."""

    revision: int = 0
    member_id: int = 0


class KeyValue(msgspec.Struct, frozen=True):
    """A key and what it holds."""

    key: bytes
    value: bytes = b""


class RangeAnswer(msgspec.Struct, frozen=True):
    """The keys of a range, or the first of them."""

    header: Header = Header()
    kvs: tuple[KeyValue, ...] = ()
    more: bool = False


class OpAnswer(msgspec.Struct, frozen=True):
    """The result of an operation; that of a write is empty."""

    response_range: RangeAnswer = RangeAnswer()


class TxnAnswer(msgspec.Struct, frozen=True):
    """The branch of a transaction that was taken, and its results."""

    header: Header = Header()
    succeeded: bool = False
    responses: tuple[OpAnswer, ...] = ()

    def found(self, index: int) -> RangeAnswer:
        """The answer to the operation of that index."""
        return self.responses[index].response_range


class Token(msgspec.Struct, frozen=True):
    """A token that proves, for a while, who asks."""

    token: str


class MemberStatus(msgspec.Struct, frozen=True):
    """How a member is."""

    header: Header = Header()
    version: str = ""
    db_size: int = msgspec.field(name="dbSize", default=0)
    leader: int = 0
    errors: tuple[str, ...] = ()


class RaisedAlarm(msgspec.Struct, frozen=True):
    """A state in which etcd refuses writes."""

    member_id: int = msgspec.field(name="memberID", default=0)
    alarm: str = ""


class AlarmAnswer(msgspec.Struct, frozen=True):
    """All alarms."""

    alarms: tuple[RaisedAlarm, ...] = ()


class GatewayError(msgspec.Struct, frozen=True):
    """An answer that is an error, by the codes of gRPC."""

    code: int = 0
    message: str = ""
    error: str = ""

    @property
    def why(self) -> str:
        """The reason in etcd's words."""
        return self.message or self.error


# --- how they are written -----------------------------------------------------------------------


def value_is(key: bytes, value: bytes) -> Compare:
    """The key holds just this."""
    return Compare(key, "VALUE", "EQUAL", value=value)


def value_is_not(key: bytes, value: bytes) -> Compare:
    """The key is there, and holds something else."""
    return Compare(key, "VALUE", "NOT_EQUAL", value=value)


def exists(key: bytes) -> Compare:
    """The key is there."""
    return Compare(key, "CREATE", "GREATER", create_revision=0)


def nothing_under(prefix: bytes) -> Compare:
    """The condition that no key begins with this."""
    end = after_prefix(prefix)
    return Compare(prefix, "CREATE", "EQUAL", create_revision=0, range_end=end)


def read(key: bytes, range_end: bytes = b"", limit: int = 0) -> Op:
    """Read, within a transaction."""
    return Op(request_range=Range(key, range_end, limit))


def put(key: bytes, value: bytes) -> Op:
    """Write, within a transaction."""
    return Op(request_put=Put(key, value))


def delete(key: bytes, range_end: bytes) -> Op:
    """Delete, within a transaction."""
    return Op(request_delete_range=DeleteRange(key, range_end))


def after_prefix(prefix: bytes) -> bytes:
    """The first key that comes after all that begin with `prefix`, whose last byte is no 255."""
    return prefix[:-1] + bytes([prefix[-1] + 1])
