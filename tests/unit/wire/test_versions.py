"""Both ends agree on a version, and every message has one."""

from collections.abc import Iterator
from typing import Any, get_args

import pytest

from tenure.errors import RemoteProtocolError
from tenure.protocol.lease.messages import Message
from tenure.wire.lease import SINCE, Written
from tenure.wire.versions import NEWEST, OLDEST, SUBPROTOCOLS, agreed


def members(union: Any) -> Iterator[Any]:  # noqa: ANN401 - a union has no type of its own
    parts = get_args(union)
    yield from (each for part in parts for each in members(part)) if parts else iter([union])


def test_every_message_has_the_version_that_brought_it_and_the_newest_brought_some() -> None:
    messages = set(members(Written))
    assert set(SINCE) == messages == set(Message.__subclasses__())
    assert min(SINCE.values()) == 1
    assert max(SINCE.values()) == NEWEST


def test_a_client_offers_what_it_speaks_highest_first() -> None:
    assert SUBPROTOCOLS == ("tenure.3", "tenure.2", "tenure.1")


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ([], 1),
        ([""], 1),
        (["chat", "tenure.0", "tenure.02", "tenure.1000", "tenure.x"], 1),
        (["tenure.1"], 1),
        (["tenure.1", "tenure.2"], 2),
        (SUBPROTOCOLS, NEWEST),
        ([f"tenure.{NEWEST + 1}", *SUBPROTOCOLS], NEWEST),
    ],
)
def test_the_highest_in_common_is_agreed_and_without_a_word_the_first(
    said: list[str], version: int
) -> None:
    assert agreed(said) == version


def test_where_there_is_none_in_common_the_older_side_is_named_first() -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        agreed(["tenure.255", "tenure.254"])
    assert str(caught.value) == (
        f"no protocol version in common: one side speaks {OLDEST} to {NEWEST}, the other "
        "254 to 255; upgrade tenure on the first"
    )
    assert len(str(caught.value)) <= 123  # a close frame has no room for more
