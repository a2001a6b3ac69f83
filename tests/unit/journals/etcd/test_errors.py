"""Each refusal of etcd, in the words of etcd 3.4 and 3.5, becomes the right error."""

import pytest

from tenure.errors import JournalDamaged, JournalError, JournalUnwritable
from tenure.journals.etcd.errors import (
    AuthenticationOff,
    EtcdRefused,
    EtcdUnanswered,
    RevisionCompacted,
    SetupRefused,
    TokenRefused,
    refusal,
)

AT = "http://h1:2379"


@pytest.mark.parametrize(
    ("status", "code", "said", "kind"),
    [
        (503, 14, "etcdserver: request timed out", EtcdUnanswered),
        (503, 14, "etcdserver: leader changed", EtcdUnanswered),
        (503, 14, "etcdserver: no leader", EtcdUnanswered),
        (504, 4, "context deadline exceeded", EtcdUnanswered),
        (500, 2, "something else", EtcdUnanswered),
        (429, 8, "etcdserver: too many requests", EtcdRefused),
        (429, 8, "etcdserver: mvcc: database space exceeded", JournalUnwritable),
        (400, 3, "etcdserver: request is too large", JournalUnwritable),
        (400, 3, "etcdserver: duplicate key given in txn request", EtcdRefused),
        (400, 3, "etcdserver: user name is empty", TokenRefused),
        (400, 3, "etcdserver: revision of auth store is old", TokenRefused),
        (401, 16, "etcdserver: invalid auth token", TokenRefused),
        (403, 7, "etcdserver: permission denied", SetupRefused),
        (400, 3, "etcdserver: authentication failed, invalid user ID or password", SetupRefused),
        (412, 9, "etcdserver: authentication is not enabled", AuthenticationOff),
        (400, 11, "etcdserver: mvcc: required revision has been compacted", RevisionCompacted),
        (400, 11, "etcdserver: mvcc: required revision is a future revision", EtcdRefused),
        (500, 15, "etcdserver: corrupt cluster", JournalDamaged),
        (501, 12, "unknown service", SetupRefused),
    ],
)
def test_each_is_told_by_its_code(
    status: int, code: int, said: str, kind: type[JournalError]
) -> None:
    payload = f'{{"error":"{said}","message":"{said}","code":{code}}}'.encode()
    assert type(refusal(AT, status, payload)) is kind
    assert AT in str(refusal(AT, status, payload))


@pytest.mark.parametrize(
    ("status", "said", "kind"),
    [
        (404, b"Not Found\n", SetupRefused),
        (400, b"Client sent an HTTP request to an HTTPS server.\n", SetupRefused),
        (301, b"", SetupRefused),
        (502, b"<html>Bad Gateway</html>", EtcdUnanswered),
        (500, b"\xff{", EtcdUnanswered),
    ],
)
def test_what_is_not_etcd_is_told_by_its_status(
    status: int, said: bytes, kind: type[JournalError]
) -> None:
    assert type(refusal(AT, status, said)) is kind
