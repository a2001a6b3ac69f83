"""A message that is larger than one may be goes in parts, and incomplete ones are dropped."""

import msgspec
import pytest

from tenure.errors import RemoteProtocolError
from tenure.protocol.replication.messages import MessagePart, NodeMessage
from tenure.protocol.replication.operations import PieceRead
from tenure.protocol.replication.row.copies import CopyMark
from tenure.wire import message_parts
from tenure.wire.message_parts import MessageJoiner, continues, in_parts


def message(ticket: int = 7, size: int = 95_000, sender: int = 2) -> NodeMessage:
    body = PieceRead(ticket=ticket, rows=b"x" * size, mark=CopyMark(), is_all=True)
    return NodeMessage(cluster="chat", id=1, sender=sender, receiver=3, version=4, body=body)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_parts, "PART_BYTES", 20_000)
    monkeypatch.setattr(message_parts, "WHOLE_BYTES", 200_000)


def take(joiner: MessageJoiner, *parts: NodeMessage) -> list[NodeMessage]:
    found = []
    for each in parts:
        assert isinstance(each.body, MessagePart)
        whole = joiner.add(each, each.body)
        if whole is not None:
            found.append(whole)
    return found


def test_parts_are_put_together() -> None:
    parts = [*in_parts(message())]
    assert len(parts) == 5
    assert take(MessageJoiner(), *parts) == [message()]


def test_each_part_but_the_first_goes_on_with_a_message() -> None:
    assert [continues(each) for each in in_parts(message())] == [False, True, True, True, True]
    assert not continues(message())


def test_what_was_broken_off_is_forgotten() -> None:
    joiner = MessageJoiner()
    assert take(joiner, *[*in_parts(message(7))][:3]) == []
    assert take(joiner, *in_parts(message(8))) == [message(8)]
    assert take(joiner, *[*in_parts(message(9))][1:]) == []


def test_several_senders_do_not_mix_and_have_a_bound_together() -> None:
    joiner = MessageJoiner()
    one, other = [*in_parts(message(7))], [*in_parts(message(7, sender=5))]
    assert take(joiner, *one[:4], *other[:4], one[4], other[4]) == [message(), message(sender=5)]
    assert [*in_parts(message(size=300_000))] == []
    large = [*in_parts(message(size=150_000))]
    assert (
        take(joiner, *one[:4], *(msgspec.structs.replace(each, sender=9) for each in large)) == []
    )


def test_a_part_that_carries_less_than_it_can_is_not_kept() -> None:
    joiner = MessageJoiner()
    parts = [*in_parts(message())]
    body = parts[1].body
    assert isinstance(body, MessagePart)
    empty = msgspec.structs.replace(body, data=b"")
    assert take(joiner, parts[0], msgspec.structs.replace(parts[1], body=empty)) == []
    assert joiner._begun == {}


def test_what_is_no_message_is_refused() -> None:
    body = MessagePart(ticket=1, number=0, count=1, data=b"nothing")
    spoiled = msgspec.structs.replace(message(), body=body)
    with pytest.raises(RemoteProtocolError):
        take(MessageJoiner(), spoiled)
