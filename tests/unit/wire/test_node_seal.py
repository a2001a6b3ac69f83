"""The seal of messages between nodes counts with the same secret, name and bytes, and only then."""

import msgspec
import pytest

from tenure.errors import LocalProtocolError
from tenure.protocol.replication.messages import AskTopology, MessagePart, NodeMessage
from tenure.protocol.replication.openings import OpenStore
from tenure.wire.columns import STORE_BYTES, decode_to_store, encode_store
from tenure.wire.node_seal import NodeSeal
from tenure.wire.versions import NEWEST

SECRET = b"sixteen bytes or more"
SEAL = NodeSeal(SECRET, "mail of the house")
MESSAGE = NodeMessage(
    cluster="mail of the house", id=9, sender=1, receiver=2, version=3, body=AskTopology(ticket=4)
)


def test_what_is_sealed_is_read_and_known_as_sealed() -> None:
    data = SEAL.encode(MESSAGE, NEWEST)
    message = decode_to_store(data, NEWEST)
    assert isinstance(message, NodeMessage)
    assert message.body == MESSAGE.body
    assert message.seal == data[-16:]
    assert SEAL.is_on(data)


@pytest.mark.parametrize(
    "other",
    [NodeSeal(SECRET[::-1], "mail of the house"), NodeSeal(SECRET, "mail of the cat")],
    ids=["another secret", "another name that begins alike"],
)
def test_the_seal_of_others_does_not_count(other: NodeSeal) -> None:
    assert not SEAL.is_on(other.encode(MESSAGE, NEWEST))


def test_any_byte_that_differs_breaks_the_seal() -> None:
    data = SEAL.encode(MESSAGE, NEWEST)
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1
        assert not SEAL.is_on(bytes(changed)), place


@pytest.mark.parametrize("data", [b"", b"\3", encode_store(MESSAGE, NEWEST)])
def test_what_nobody_sealed_is_not_sealed(data: bytes) -> None:
    assert not SEAL.is_on(data)


def test_what_clients_send_has_no_seal() -> None:
    opening = OpenStore(request=1)
    assert SEAL.encode(opening, NEWEST) == encode_store(opening, NEWEST)


def test_a_sealed_message_is_no_larger_than_others() -> None:
    part = MessagePart(ticket=1, number=0, count=2, data=bytes(STORE_BYTES - 60))
    with pytest.raises(LocalProtocolError, match=str(STORE_BYTES)):
        SEAL.encode(msgspec.structs.replace(MESSAGE, body=part), NEWEST)
