"""Every field of every message has a bound in its type: nothing larger is ever decoded, whoever
sent it, and whatever is checked afterwards.
"""

import tracemalloc
from typing import Annotated, Any, NamedTuple

import msgspec
import pytest

from tenure.errors import RemoteProtocolError
from tenure.manager.api import NewPool
from tenure.manager.cluster_api import NewCluster
from tenure.manager.sign_in_api import ShownToken
from tenure.protocol.entity import messages as entity_messages
from tenure.protocol.entity.messages import EntityMessage
from tenure.protocol.gossip.messages import GossipMessage
from tenure.protocol.lease.messages import FromLookup, FromOwner, Join, ToLookup, ToManager, ToOwner
from tenure.protocol.lease.owner.transfer import ToSource, ToTaker
from tenure.protocol.replication.copies import CopiedRows
from tenure.protocol.topology.messages import NodeRequest
from tenure.protocol.topology.records import Topology
from tenure.protocol.volume.messages import ToCache, ToVolumeServer
from tenure.protocol.volume.versions import KnownWrites
from tenure.wire import lease
from tenure.wire.columns import ToStore, ToStoreClient
from tenure.wire.limits import LOOKUP_BYTES
from tenure.wire.topology import ManagerToNode
from tenure.wire.versions import NEWEST
from tests.hostile.bounds import unbounded
from tests.repo.reading import SRC
from tests.unit.wire.samples import JOIN

WIRE: dict[str, Any] = {
    "an owner, to a manager": FromOwner,
    "a lookup, to a manager": FromLookup,
    "anybody, to a manager": ToManager,
    "a manager, to an owner": ToOwner,
    "a manager, to a lookup": ToLookup,
    "a source of a hand-off": ToTaker,
    "a taker of a hand-off": ToSource,
    "a cache, to a server": ToVolumeServer,
    "a server, to a cache": ToCache,
    "what is known of writes": KnownWrites,
    "a client or a node, to a node": ToStore,
    "a node, to a client": ToStoreClient,
    "rows that are copied": CopiedRows,
    "a node, to a manager": NodeRequest,
    "a manager, to a node": ManagerToNode,
    "a topology": Topology,
    "gossip": GossipMessage,
    "calls of entities": EntityMessage,
    "a socket of an entity": entity_messages.SocketOpened,
    "a frame of a client": entity_messages.SocketFrame,
    "the end of a socket": entity_messages.SocketGone,
    "an edge that resumes": entity_messages.SocketResume,
    "frames that follow": entity_messages.Resumed,
    "frames of an owner": entity_messages.PushedFrames,
    "frames that an edge has": entity_messages.Received,
}
EXCUSED = {
    "EntityCall.chain": "keys may be any integer of 64 bits, and msgspec bounds only signed ones",
    "EntityCall.key": "as in a chain",
    "PushedFrames.frames": "text or bytes, within the bytes of a call; `wire/entity.py` checks",
    "Resumed.frames": "as in PushedFrames",
    "SocketFrame.frame": "as in PushedFrames",
}


@pytest.mark.parametrize("which", WIRE)
def test_every_field_of_a_message_has_a_bound(which: str) -> None:
    assert [each for each in unbounded(WIRE[which]) if each not in EXCUSED] == []


@pytest.mark.parametrize("body", [NewPool, NewCluster, ShownToken])
def test_every_field_of_a_body_that_a_manager_decodes_has_a_bound(body: type) -> None:
    assert unbounded(body) == []


def test_what_is_excused_has_none() -> None:
    found = {each for kind in WIRE.values() for each in unbounded(kind)}
    assert found == EXCUSED.keys()


def test_every_decoder_of_the_wire_is_of_these_types() -> None:
    """What one of them reads is what is looked at here."""
    texts = [path.read_text("utf-8") for path in (SRC / "tenure/wire").glob("*.py")]
    decoders = sum(text.count("msgpack.Decoder(") for text in texts)
    journal = 2  # records and states, which this process wrote itself, with a checksum
    assert decoders == len(WIRE) - len({"rows that are copied"}) + journal


class Loose(NamedTuple):
    tally: int


class Sample(msgspec.Struct):
    """Fields without a bound, each of another kind."""

    text: str
    data: bytes
    items: Annotated[tuple[bytes, ...], msgspec.Meta(max_length=3)]
    many: tuple[bool, ...]
    names: Annotated[dict[str, bool], msgspec.Meta(max_length=3)]
    by_name: dict[Annotated[str, msgspec.Meta(max_length=3)], bool]
    inner: Loose | None
    some: frozenset[bool]
    whatever: Any
    short: Annotated[str, msgspec.Meta(max_length=3)]
    few: Annotated[int, msgspec.Meta(le=3)]


def test_a_field_without_a_bound_is_found() -> None:
    assert unbounded(Annotated[list[Sample], msgspec.Meta(max_length=2)]) == [
        "Loose.tally",
        *(f"Sample.{each}" for each in ("by_name", "data", "items", "many", "names", "some")),
        *(f"Sample.{each}" for each in ("text", "whatever")),
    ]


# --- what that is worth ---


def join_of_many_labels() -> bytes:
    """A join with as many labels as fit in a request, as a lying peer sends it."""
    whole = lease.encode(msgspec.structs.replace(JOIN, labels={}), NEWEST)
    at = whole.index(b"\x80")
    count = 2_300_000
    labels = b"".join(b"\xa3" + f"{number % 1000:03}".encode() + b"\xa0" for number in range(count))
    return whole[:at] + b"\xdf" + count.to_bytes(4) + labels + whole[at + 1 :]


def test_millions_of_labels_are_refused_before_one_is_decoded() -> None:
    data = join_of_many_labels()
    tracemalloc.start()
    try:
        with pytest.raises(RemoteProtocolError, match="`object` of length <= 64"):
            lease.decode_from_owner(data, NEWEST)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 100_000


def test_a_lookup_says_nothing_that_only_an_owner_says() -> None:
    with pytest.raises(RemoteProtocolError, match=f"at most {LOOKUP_BYTES} are allowed"):
        lease.decode_from_lookup(join_of_many_labels(), NEWEST)
    with pytest.raises(RemoteProtocolError, match="malformed"):
        lease.decode_from_lookup(lease.encode(JOIN, NEWEST), NEWEST)
    assert isinstance(lease.decode_from_owner(lease.encode(JOIN, NEWEST), NEWEST), Join)
