"""Every field of every message has a bound in its type: nothing larger is ever decoded, whoever
sent it, and whatever is checked afterwards.
"""

import tracemalloc
from typing import Annotated, Any, NamedTuple, get_args, get_origin

import msgspec
import pytest

from tenure.errors import RemoteProtocolError
from tenure.manager.api import NewPool
from tenure.protocol.lease.messages import Join
from tenure.protocol.topology.records import Topology
from tenure.services.queues.entries import EntryPut
from tenure.services.queues.queue import SocketSays
from tenure.wire import lease
from tenure.wire.columns import ToStore
from tenure.wire.limits import LOOKUP_BYTES
from tenure.wire.versions import NEWEST
from tests.hostile.bounds import unbounded
from tests.hostile.decoded_types import all_decoded, decoded_in
from tests.repo.reading import sample
from tests.unit.wire.samples import JOIN

DECODED = all_decoded()
EXCUSED = {
    "EntityCall.chain": "keys may be any integer of 64 bits, and msgspec bounds only signed ones",
    "EntityCall.key": "as in a chain",
    "PinKeyBody.number": "as in a chain, and JSON's numbers have 4,300 digits at most",
    "UnpinKeyBody.number": "as in the body that pins",
    "FoundKeys.keys": "as in a chain",
    "ItemsToken.key": "as in a chain",
    "OwnPlace.key": "as in a chain",
    "ShowEntity.key": "as in a chain",
    "AgainLine.key": "as in a chain",
    "CopyEntity.key": "as in a chain",
    "EntityLine.key": "as in a chain",
    "GivenEntity.key": "as in a chain",
    "PutEntity.key": "as in a chain",
    "FillingPart.bytes": "a record on a node's own disk",
    "FillingRecord.began": "as in a part",
    "FillingRecord.parts": "as in a part",
    "Publishing.data": "JSON of any shape, within the bytes and levels of a body",
    "itself": "the event of a feed, as in `Publishing.data`",
    "PushedFrames.frames": "text or bytes, within the bytes of a call; `wire/entity.py` checks",
    "Resumed.frames": "as in PushedFrames",
    "SocketFrame.frame": "as in PushedFrames",
    "PassedSocket.key": "as in a chain",
    "TakenSocket.key": "as in a chain",
    "TakenSocket.attachment": "of the application's type, within the bytes of a header",
}


@pytest.mark.parametrize("where", DECODED)
def test_every_field_of_what_is_decoded_has_a_bound(where: str) -> None:
    assert [each for each in unbounded(DECODED[where]) if each not in EXCUSED] == []


def test_what_is_excused_has_none() -> None:
    found = {each for kind in DECODED.values() for each in unbounded(kind)}
    assert found == EXCUSED.keys()


@pytest.mark.parametrize(
    "kind", [lease.SaidByOwner, ToStore, Topology, NewPool, SocketSays, EntryPut]
)
def test_types_are_found_where_they_are_decoded(kind: object) -> None:
    """Of a connection, a store, a disk, a manager's body, a socket, and a list in a body."""
    lists = [get_args(each)[0] for each in DECODED.values() if get_origin(each) is Annotated]
    in_lists = [part for each in lists for part in get_args(each)]
    assert kind in [*DECODED.values(), *in_lists]


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


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("found = msgspec.json.decode(b'{}')", "decodes without a type"),
        ("def read(data, kind):\n    return msgspec.json.decode(data, type=kind)", "passed"),
        ("async def read():\n    return json.loads(await body())", "decodes without a type"),
    ],
)
def test_a_decoder_whose_type_nobody_knows_is_found(text: str, complaint: str) -> None:
    with pytest.raises(LookupError, match=complaint):
        list(decoded_in(sample("tenure.manager.api", text)))


def test_a_type_without_a_bound_is_found_where_it_is_decoded() -> None:
    """`StatusAnswer` is decoded only by those who trust its sender."""
    text = "class Api:\n    read = msgspec.json.Decoder(StatusAnswer).decode"
    [(place, kind)] = decoded_in(sample("tenure.manager.other_managers", text))
    assert place == "manager/other_managers.py: StatusAnswer"
    assert "StatusAnswer.troubles" in unbounded(kind)


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
