"""The secret of an order depends on every part of it, on the range's owner, and on the journal's
own.
"""

import msgspec
import pytest

from tenure.protocol.lease.leader.order_secrets import NO_SECRET, order_secret
from tenure.protocol.lease.messages import HandOff

ORDER = HandOff(start=b"a", end=b"b", number=5, taker=2, address="http://taker")


def test_the_same_order_has_the_same_secret_wherever_its_taker_listens() -> None:
    secret = order_secret(ORDER, 1, 7, b"key")
    assert secret == order_secret(ORDER, 1, 7, b"key") != NO_SECRET
    moved = msgspec.structs.replace(ORDER, address="http://elsewhere", secret=secret)
    assert order_secret(moved, 1, 7, b"key") == secret


@pytest.mark.parametrize(
    "other", [{"start": b""}, {"end": None}, {"number": 6}, {"taker": 3}, {"end": b"b\0"}]
)
def test_another_order_has_another_secret(other: dict[str, object]) -> None:
    another = msgspec.structs.replace(ORDER, **other)
    assert order_secret(another, 1, 7, b"key") != order_secret(ORDER, 1, 7, b"key")


def test_another_source_journal_or_key_makes_another_secret() -> None:
    made = {order_secret(ORDER, *of) for of in ((1, 7, b"key"), (2, 7, b"key"), (1, 8, b"key"))}
    assert len(made | {order_secret(ORDER, 1, 7, b"other")}) == 4


def test_a_journal_without_a_secret_makes_none() -> None:
    assert order_secret(ORDER, 1, 7, b"") == NO_SECRET
