"""Receipts are true whoever shows them, because only a leader of the journal can seal one."""

from hashlib import blake2b

import pytest

from tenure.protocol.lease.leader.receipts import Receipt, opened, sealed

JOURNAL, SECRET = 9, b"s" * 16
RECEIPT = Receipt(7, 5, 3)


def test_what_a_leader_of_the_journal_has_sealed_is_opened_by_the_next() -> None:
    assert opened(sealed(RECEIPT, JOURNAL, SECRET), JOURNAL, SECRET) == RECEIPT


FORGED = {
    "with another secret": sealed(RECEIPT, JOURNAL, b"t" * 16),
    "in another journal": sealed(RECEIPT, JOURNAL + 1, SECRET),
    "for another leadership": b"\x01" + sealed(RECEIPT, JOURNAL, SECRET)[1:],
    "with a seal that is cut": sealed(RECEIPT, JOURNAL, SECRET)[:-1],
    "with a seal of its own": sealed(RECEIPT, JOURNAL, SECRET)[:24] + bytes(16),
    "and nothing of it": b"",
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_what_anybody_else_has_sealed_says_nothing(forged: bytes) -> None:
    assert opened(forged, JOURNAL, SECRET) is None


def test_without_a_secret_nothing_is_sealed_and_nothing_opened() -> None:
    """A journal of an older release has none, and a seal without a key can be made by anybody."""
    assert sealed(RECEIPT, JOURNAL, b"") == b""
    body = b"".join(number.to_bytes(8, "big") for number in RECEIPT)
    anybodys = blake2b(JOURNAL.to_bytes(8, "big") + body, digest_size=16).digest()
    assert opened(body + anybodys, JOURNAL, b"") is None
