"""What etcd's refusals mean for a journal, in one place.

The question that matters is whether the request may have been carried out all the same. `NotSent`
and the refusals of a leader say that it was not; `EtcdUnanswered` says that nobody knows. A request
that changes nothing when it is carried out twice may go to the next member after either; any other,
only after the first kind.
"""

import msgspec

from tenure.errors import MALFORMED, JournalDamaged, JournalError, JournalUnwritable
from tenure.journals.etcd.wire import GatewayError

_INVALID, _DEADLINE, _FORBIDDEN, _EXHAUSTED = 3, 4, 7, 8
_PRECONDITION, _OUT_OF_RANGE, _UNIMPLEMENTED, _DATA_LOSS, _UNAUTHENTICATED = 9, 11, 12, 15, 16
_NOT_CARRIED_OUT = {_INVALID, _FORBIDDEN, _PRECONDITION, _OUT_OF_RANGE, _EXHAUSTED}

_NOT_FOUND, _NOT_IMPLEMENTED = 404, 501

_TOKEN_TROUBLE = ("invalid auth token", "auth store is old", "user name is empty")

_refusals = msgspec.json.Decoder(GatewayError)


class NotSent(JournalError):
    """The request did not reach etcd: it was not carried out."""


class EtcdUnanswered(JournalError):
    """The request may have been carried out, and may still be."""


class TokenRefused(JournalError):
    """The token has expired or is missing: nothing was carried out."""


class SetupRefused(JournalUnwritable):
    """Etcd refuses what this manager was configured to do. At its start that ends the manager."""


class AuthenticationOff(JournalError):
    """Etcd asks nobody for a password."""


class RevisionCompacted(JournalError):
    """Etcd no longer keeps the values of that revision."""


class EtcdRefused(JournalError):
    """Etcd answered that it will not do this; nothing was carried out."""


def refusal(endpoint: str, status: int, payload: bytes) -> JournalError:
    """Our error for an answer that is one."""
    try:
        found = _refusals.decode(payload)
    except MALFORMED:
        return _not_etcd(endpoint, status, payload)
    why = f"etcd at {endpoint} says {found.why!r}"
    if found.code == _UNAUTHENTICATED or any(each in found.why for each in _TOKEN_TROUBLE):
        return TokenRefused(why)
    if found.code == _EXHAUSTED and "space exceeded" in found.why:
        return no_space(endpoint)
    if "request is too large" in found.why:
        return JournalUnwritable(
            f"{why}: it was started with a --max-request-bytes below its default of 1.5 MiB; "
            "leave that out, or set it to 1 MiB at least"
        )
    if found.code == _DATA_LOSS:
        return JournalDamaged(
            f"{why}: its members hold different data. Stop the managers, and restore etcd as its "
            "documentation says under disaster recovery"
        )
    if found.code == _OUT_OF_RANGE and "compacted" in found.why:
        return RevisionCompacted(why)
    if found.code == _PRECONDITION and "authentication is not enabled" in found.why:
        return AuthenticationOff(why)
    if found.code == _FORBIDDEN or "authentication failed" in found.why:
        return SetupRefused(
            f"{why}: see that the journal's user and password are right, and that a role of that "
            "user may read and write every key under the journal's prefix"
        )
    if found.code == _UNIMPLEMENTED or status == _NOT_FOUND:
        return _not_etcd(endpoint, status, payload)
    return (EtcdRefused if found.code in _NOT_CARRIED_OUT else EtcdUnanswered)(why)


def no_space(endpoint: str) -> JournalUnwritable:
    """The error for an etcd that has raised its alarm for space."""
    return JournalUnwritable(
        f"etcd at {endpoint} is out of space and refuses writes; nothing was written. Free some: "
        "`etcdctl compact` to a recent revision, `etcdctl defrag` on every member, then `etcdctl "
        "alarm disarm`; or raise --quota-backend-bytes. The manager goes on then. So that it does "
        "not come back, run etcd with --auto-compaction-retention=1h"
    )


def _not_etcd(endpoint: str, status: int, payload: bytes) -> SetupRefused | EtcdUnanswered:
    said = payload[:100].decode("utf-8", "replace").strip()
    if status >= 500 and status != _NOT_IMPLEMENTED:  # noqa: PLR2004 - a proxy did not reach it
        return EtcdUnanswered(f"{endpoint} answered {status} {said!r}")
    return SetupRefused(
        f"{endpoint} answered {status} {said!r}, which is not etcd's JSON gateway: see that it is "
        "the client URL of an etcd 3.4 or later, with http or https as it listens, and that it "
        "was not started with --enable-grpc-gateway=false"
    )
