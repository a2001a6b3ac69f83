"""Messages between clients and nodes of a store survive their bytes, and those bytes stay as they
are.

The bytes below are written down, because nodes of two releases talk while a cluster is upgraded. A
field may come at the end of a message, with a default; then an older message can still be read, as
the one here that is cut short.
"""

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.base.ranges import KeyRange
from tenure.errors import LocalProtocolError, RemoteProtocolError
from tenure.protocol.gossip.messages import (
    GossipAck,
    GossipEnd,
    GossipMessage,
    GossipSyn,
    NodeDelta,
    NodeDigest,
    StateEntry,
)
from tenure.protocol.replication import messages as m
from tenure.protocol.replication import operations
from tenure.protocol.replication.openings import OpenStore, StoreOpened, TableMissing
from tenure.protocol.replication.row.admission import Attempt, Late, Outranked
from tenure.protocol.replication.row.copies import CopyMark, RangeHorizon
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.pages import CellPage, FoundCell, Slice, SuperPage
from tenure.protocol.replication.row.sections import SectionPart, SectionQuestion
from tenure.protocol.replication.row.states import RowState
from tenure.protocol.replication.row.versions import Version
from tenure.protocol.topology.records import Placement, Topology
from tenure.protocol.topology.tables import FamilyRecord, TableRecord
from tenure.wire.columns import (
    FIRST_VERSION,
    STORE_BYTES,
    ToStore,
    ToStoreClient,
    decode_from_client,
    decode_head,
    decode_to_store,
    decode_to_store_client,
    encode_store,
    is_of_node,
)
from tenure.wire.gossip import decode_gossip, encode_gossip

TABLE = TableRecord("ordered", "str", "", {"f": FamilyRecord("str")})
TOPOLOGY = Topology(
    cluster="c", id=1, version=2, placement=Placement(), first_nodes=3, tables={"t": TABLE}
)
ASKED: dict[str, Any] = {"request": 1, "table": "t"}
PAGE = CellPage((FoundCell(b"n", Version(0, 5), b"v"),), b"n")
TICKET: dict[str, Any] = {"ticket": 7}
ROW: dict[str, Any] = {"ticket": 7, "table": "t", "key": b"k"}
RANGE = KeyRange(b"a", b"m")
STATE = RowState(entries=(("f", b"\2n", b"cell"),), fence=3, is_whole=True)

TO_STORE: tuple[ToStore, ...] = (
    OpenStore(request=1, tables={"t": TABLE}),
    m.WriteRow(
        **ASKED, key=b"k", edits=(Edit("f", None, b"n", b"v"),), attempt=Attempt(Version(1, 2))
    ),
    m.DrawVersion(**ASKED, key=b"k", floor=7),
    m.ReadColumn(**ASKED, key=b"k", family="f", super=b"s", name=b"n"),
    m.ReadPage(**ASKED, key=b"k", family="f", part=Slice(5, b"a", b"b", True, b"c")),
    m.ReadSupers(**ASKED, key=b"k", family="f", part=Slice(5), within=3),
    m.ReadRow(**ASKED, key=b"k", within=3),
    m.ReadRows(**ASKED, part=Slice(5), within=3),
    m.AdoptRow(**ASKED, key=b"k", number=4, journal=5, attempt=6),
)
TO_CLIENT: tuple[ToStoreClient, ...] = (
    StoreOpened(request=1, cluster="c", id=2, addresses=("http://n1",), tables={"t": TABLE}),
    TableMissing(request=1, table="t", detail="no manager"),
    m.RowWritten(request=1),
    m.VersionDrawn(request=1, version=Version(0, 2), newest=1),
    m.NotWritten(request=1, refused=Late(9)),
    m.Failed(request=1, why="unknown", detail="late"),
    m.PageFound(request=1, page=PAGE),
    m.SupersFound(request=1, page=SuperPage(((b"s", PAGE),), None)),
    m.RowFound(request=1, row=m.WholeRow(key=b"k", simple={"f": PAGE})),
    m.RowsFound(request=1, rows=(m.WholeRow(key=b"k"),), next=b"k"),
    m.Adopted(request=1, refused=Outranked(4, 5)),
)
BODIES: tuple[m.NodeBody, ...] = (
    operations.ApplyRow(**ROW, edits=(Edit("f"),), attempt=Attempt(Version(1, 2), "repeat", 3, 4)),
    operations.RowApplied(**TICKET, refused=Late(3)),
    operations.ReadParts(
        **ROW, questions=(SectionQuestion(family="f", names=(b"n",)),), digest_only=True
    ),
    operations.PartsRead(**TICKET, digest=b"d", parts=(SectionPart(last=b"x"),), sealed=1),
    operations.ReadState(**ROW),
    operations.StateRead(**TICKET, state=STATE, refused=Outranked(1, 2)),
    operations.MergeState(**ROW, state=STATE),
    operations.StateMerged(**TICKET, wants_whole=True),
    operations.PromiseFence(**ROW, number=1, journal=2, attempt=3),
    operations.ListRows(**TICKET, table="t", range=RANGE, after=b"b"),
    operations.RowsListed(
        **TICKET, rows=((b"a", b"d"),), is_all=False, horizons=(RangeHorizon(RANGE, 5, 4),)
    ),
    operations.ReadPiece(**TICKET, range=RANGE, mark=CopyMark("t", b"a"), most_bytes=9),
    operations.PieceRead(**TICKET, rows=b"r", mark=CopyMark("t", b"b"), is_all=True),
    operations.ListKeys(**TICKET, table="t", lower=b"a", upper=b"b", reverse=True),
    operations.KeysListed(**TICKET, positions=(b"a",), is_all=False),
    operations.PromiseHorizon(**TICKET, range=RANGE, time=4),
    operations.HorizonPromised(**TICKET, time=4),
    operations.ReadSums(**TICKET, table="t", range=RANGE, place=5, digest=b"d"),
    operations.SumsRead(**TICKET, sums=b"s", is_known=False),
    operations.ListPlaces(**TICKET, table="t", range=RANGE, places=(1, 2)),
    operations.FindDoomed(**TICKET, range=RANGE),
    operations.DoomedFound(**TICKET, time=4),
    operations.SealHorizon(**TICKET, range=RANGE, time=4),
    m.Outdated(**TICKET, topology=TOPOLOGY),
    m.AskTopology(**TICKET),
    m.TopologySaid(**TICKET, topology=TOPOLOGY),
    m.MessagePart(**TICKET, number=0, count=2, data=b"half"),
)


def between(body: m.NodeBody) -> m.NodeMessage:
    return m.NodeMessage(cluster="c", id=1, sender=2, receiver=3, version=4, body=body)


GOLDEN = {
    "OpenStore": (
        "0293a94f70656e53746f72650181a17495a76f726465726564a3737472a081a16694a3737472a0a4"
        "6e616d65a56279746573a76f726465726564"
    ),
    "WriteRow": (
        "0297a85772697465526f7701a174a671756f72756dc4016b9194a166c0c4016ec4017694920102a5"
        "6d657267650000"
    ),
    "DrawVersion": "0296ab4472617756657273696f6e01a174a671756f72756dc4016b07",
    "ReadColumn": "0298aa52656164436f6c756d6e01a174a671756f72756dc4016ba166c40173c4016e",
    "ReadPage": "0299a8526561645061676501a174a671756f72756dc4016ba166c09505c40161c40162c3c40163c2",
    "ReadSupers": "0299aa5265616453757065727301a174a671756f72756dc4016ba1669505c0c0c2c003c2",
    "ReadRow": "0296a752656164526f7701a174a671756f72756dc4016b03",
    "ReadRows": "0296a852656164526f777301a174a671756f72756d9505c0c0c2c003",
    "AdoptRow": "0298a841646f7074526f7701a174a671756f72756dc4016b040506",
    "StoreOpened": (
        "0296ab53746f72654f70656e656401a1630291a9687474703a2f2f6e3181a17495a76f7264657265"
        "64a3737472a081a16694a3737472a0a46e616d65a56279746573a76f726465726564"
    ),
    "TableMissing": "0294ac5461626c654d697373696e6701a174aa6e6f206d616e61676572",
    "RowWritten": "0292aa526f775772697474656e01",
    "VersionDrawn": "0294ac56657273696f6e447261776e0192000201",
    "NotWritten": "0293aa4e6f745772697474656e0192a44c61746509",
    "Failed": "0294a64661696c656401a7756e6b6e6f776ea46c617465",
    "PageFound": "0293a950616765466f756e6401929193c4016e920005c40176c4016e",
    "SupersFound": "0293ab537570657273466f756e6401929192c40173929193c4016e920005c40176c4016ec0",
    "RowFound": "0293a8526f77466f756e640193c4016b81a166929193c4016e920005c40176c4016e80",
    "RowsFound": "0294a9526f7773466f756e64019193c4016b8080c4016b",
    "Adopted": "0294a741646f707465640194a94f757472616e6b65640405c2920000",
    "ApplyRow": (
        "0297ab4e6f64654d657373616765a1630102030496a84170706c79526f7707a174c4016b9194a166"
        "c0c0c094920102a67265706561740304"
    ),
    "RowApplied": (
        "0297ab4e6f64654d657373616765a1630102030493aa526f774170706c6965640792a44c61746503"
    ),
    "AskParts": (
        "0297ab4e6f64654d657373616765a1630102030496a841736b506172747307a174c4016b9195a166"
        "c091c4016ec0c2c3"
    ),
    "PartsTold": (
        "0297ab4e6f64654d657373616765a1630102030499a95061727473546f6c6407c40164919393c410"
        "00000000000000000000000000000000c41000000000000000000000000000000000c41000000000"
        "00000000000000000000000090c40178010000c40000"
    ),
    "AskState": "0297ab4e6f64654d657373616765a1630102030494a841736b537461746507a174c4016b",
    "StateTold": (
        "0297ab4e6f64654d657373616765a1630102030494a95374617465546f6c6407999193a166c40202"
        "6ec40463656c6cc41000000000000000000000000000000000c41000000000000000000000000000"
        "0000000300000000c394a94f757472616e6b65640102c2"
    ),
    "MergeState": (
        "0297ab4e6f64654d657373616765a1630102030495aa4d65726765537461746507a174c4016b9991"
        "93a166c402026ec40463656c6cc41000000000000000000000000000000000c41000000000000000"
        "0000000000000000000300000000c3"
    ),
    "StateMerged": "0297ab4e6f64654d657373616765a1630102030493ab53746174654d657267656407c3",
    "PromiseFence": (
        "0297ab4e6f64654d657373616765a1630102030497ac50726f6d69736546656e636507a174c4016b010203"
    ),
    "AskRows": (
        "0297ab4e6f64654d657373616765a1630102030495a741736b526f777307a17492c40161c4016dc40162"
    ),
    "RowsTold": (
        "0297ab4e6f64654d657373616765a1630102030495a8526f7773546f6c64079192c40161c40164c2"
        "919392c40161c4016d0504"
    ),
    "AskPiece": (
        "0297ab4e6f64654d657373616765a1630102030495a841736b50696563650792c40161c4016d92a174c4016109"
    ),
    "PieceTold": (
        "0297ab4e6f64654d657373616765a1630102030496a95069656365546f6c6407c4017292a174c40162c390"
    ),
    "AskKeys": "0297ab4e6f64654d657373616765a1630102030496a741736b4b65797307a174c40161c40162c3",
    "KeysTold": "0297ab4e6f64654d657373616765a1630102030494a84b657973546f6c640791c40161c2",
    "PromiseHorizon": (
        "0297ab4e6f64654d657373616765a1630102030494ae50726f6d697365486f72697a6f6e0792c40161c4016d04"
    ),
    "HorizonPromised": (
        "0297ab4e6f64654d657373616765a1630102030493af486f72697a6f6e50726f6d697365640704"
    ),
    "AskSums": (
        "0297ab4e6f64654d657373616765a1630102030496a741736b53756d7307a17492c40161c4016d05c40164"
    ),
    "SumsTold": "0297ab4e6f64654d657373616765a1630102030494a853756d73546f6c6407c40173c2",
    "AskPlaces": (
        "0297ab4e6f64654d657373616765a1630102030495a941736b506c6163657307a17492c40161c4016d920102"
    ),
    "AskDoomed": "0297ab4e6f64654d657373616765a1630102030493a941736b446f6f6d65640792c40161c4016d",
    "DoomedTold": "0297ab4e6f64654d657373616765a1630102030493aa446f6f6d6564546f6c640704",
    "SealHorizon": (
        "0297ab4e6f64654d657373616765a1630102030494ab5365616c486f72697a6f6e0792c40161c4016d04"
    ),
    "Outdated": (
        "0297ab4e6f64654d657373616765a1630102030493a84f75746461746564079ca163010293ac7261"
        "636b5f756e61776172650390039090909081a17495a76f726465726564a3737472a081a16694a373"
        "7472a0a46e616d65a56279746573a76f726465726564c000"
    ),
    "AskTopology": "0297ab4e6f64654d657373616765a1630102030492ab41736b546f706f6c6f677907",
    "TopologySaid": (
        "0297ab4e6f64654d657373616765a1630102030493ac546f706f6c6f677953616964079ca1630102"
        "93ac7261636b5f756e61776172650390039090909081a17495a76f726465726564a3737472a081a1"
        "6694a3737472a0a46e616d65a56279746573a76f726465726564c000"
    ),
    "MessagePart": (
        "0297ab4e6f64654d657373616765a1630102030495ab4d65737361676550617274070002c40468616c66"
    ),
}


NOTHING = msgspec.msgpack.encode(None)
NO_SEAL = msgspec.msgpack.encode(b"")


@pytest.mark.parametrize("message", [*TO_STORE, *map(between, BODIES)], ids=repr)
def test_what_a_node_hears_survives_its_bytes(message: ToStore) -> None:
    assert decode_to_store(encode_store(message, FIRST_VERSION), FIRST_VERSION) == message


@pytest.mark.parametrize("message", TO_CLIENT, ids=repr)
def test_what_a_client_hears_survives_its_bytes(message: ToStoreClient) -> None:
    assert decode_to_store_client(encode_store(message, FIRST_VERSION), FIRST_VERSION) == message


def test_every_kind_of_message_is_tried() -> None:
    assert {type(each) for each in TO_STORE} | {m.NodeMessage} == set(get_args(ToStore))
    assert {type(each) for each in TO_CLIENT} == set(get_args(ToStoreClient))
    assert {type(each) for each in BODIES} == set(get_args(m.NodeBody))


def name_of(message: msgspec.Struct) -> str:
    said = message.body if isinstance(message, m.NodeMessage) else message
    return str(said.__struct_config__.tag)


QUESTIONS = (b"\x95\xa1f\xc0\x91\xc4\x01n\xc0\xc2", b"\x96\xa1f\xc0\x91\xc4\x01n\xc0\xc2\xc0")
"""A question about a column, without its last field and with it."""
BOUNDS: dict[str, tuple[int, bytes]] = {
    "AskParts": (6, b"\x00"),
    "PartsTold": (9, b"\xc2"),
    "AskState": (4, b"\x00"),
    "StateTold": (4, b"\xc2"),
    "PromiseFence": (7, b"\x00"),
}
"""How many parts these had before an answer had a bound of bytes, and the field that came then."""


def with_bound(data: bytes, name: str, field: bytes) -> bytes:
    """The message of a node in the form that came with the bound, which has this field."""
    count, begins = BOUNDS[name][0], msgspec.msgpack.encode(name)
    return data.replace(bytes([0x90 + count]) + begins, bytes([0x91 + count]) + begins) + field


def written_down(message: msgspec.Struct) -> bytes:
    data = bytes.fromhex(GOLDEN[name_of(message)])
    if isinstance(message, m.NodeMessage) and isinstance(message.body, operations.ReadParts):
        data = data.replace(*QUESTIONS)  # the form before whole rows were asked for
    if name_of(message) == "AskPlaces":  # the form before a list could go on behind a row
        data = data.replace(b"\x95\xa9AskPlaces", b"\x96\xa9AskPlaces") + b"\xc4\x00"
    if name_of(message) in BOUNDS:
        data = with_bound(data, name_of(message), BOUNDS[name_of(message)][1])
    if isinstance(message, StoreOpened):  # the form before it had a topology
        return data.replace(b"\x96", b"\x97", 1) + NOTHING
    if isinstance(message, m.NodeMessage):  # the form before there were seals
        return data.replace(b"\x97", b"\x98", 1) + NO_SEAL
    return data


def test_bytes_are_those_that_are_written_down() -> None:
    every = (*TO_STORE, *TO_CLIENT, *map(between, BODIES))
    now = {name_of(each): encode_store(each, FIRST_VERSION) for each in every}
    assert now == {name_of(each): written_down(each) for each in every}
    assert now.keys() == GOLDEN.keys()


@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_of_answers_are_written_as_they_are_written_down(name: str) -> None:
    """An older node passes over them, and answers in full."""
    body = next(each for each in BODIES if name_of(between(each)) == name)
    is_asked = "most_bytes" in body.__struct_fields__
    new = {"most_bytes": 9} if is_asked else {"is_larger": True}
    message = between(msgspec.structs.replace(body, **new))
    data = written_down(between(body))
    field = b"\x09" if is_asked else b"\xc3"
    end = len(NO_SEAL) + 1
    assert encode_store(message, FIRST_VERSION) == data[:-end] + field + NO_SEAL
    assert decode_to_store(data[:-end] + field + NO_SEAL, FIRST_VERSION) == message


@pytest.mark.parametrize("message", [*map(between, BODIES)], ids=name_of)
def test_a_message_of_a_node_of_before_there_were_seals_is_read(message: m.NodeMessage) -> None:
    assert decode_to_store(bytes.fromhex(GOLDEN[name_of(message)]), FIRST_VERSION) == message


def test_a_message_without_its_last_fields_is_read() -> None:
    data = encode_store(m.ReadColumn(**ASKED, key=b"k", family="f", name=b"n"), FIRST_VERSION)
    listed = msgspec.msgpack.decode(data[1:])
    for each in TO_STORE:
        if isinstance(each, m.ReadPage | m.ReadSupers):  # the form before it could warm
            before = bytes.fromhex(GOLDEN[name_of(each)])[:-1].replace(b"\x99", b"\x98", 1)
            assert decode_to_store(before, FIRST_VERSION) == each
    opening = encode_store(OpenStore(request=1), FIRST_VERSION)
    short = msgspec.msgpack.encode(msgspec.msgpack.decode(opening[1:])[:2])
    assert decode_to_store(opening[:1] + short, FIRST_VERSION) == OpenStore(request=1)
    assert listed[0] == "ReadColumn"


def test_a_node_of_before_clients_were_told_topologies_is_read() -> None:
    said = next(each for each in TO_CLIENT if isinstance(each, StoreOpened))
    assert decode_to_store_client(bytes.fromhex(GOLDEN["StoreOpened"]), FIRST_VERSION) == said


@given(st.binary(max_size=300))
def test_noise_is_refused_and_nothing_else(noise: bytes) -> None:
    for decode in (decode_to_store, decode_to_store_client):
        with pytest.raises(RemoteProtocolError):
            decode(bytes([FIRST_VERSION]) + noise, FIRST_VERSION)


LONG = bytes(65_536)


@pytest.mark.parametrize(
    "message",
    [
        m.ReadColumn(**ASKED, key=LONG, family="f", name=b"n"),
        m.ReadColumn(**ASKED, key=b"k", family="f", name=LONG),
        m.ReadPage(**ASKED, key=b"k", family="f", part=Slice(0)),
        m.ReadPage(**ASKED, key=b"k", family="f", part=Slice(10_001)),
        m.ReadSupers(**ASKED, key=b"k", family="f", part=Slice(1), within=10_001),
        m.ReadRow(**ASKED, key=b"k", within=0),
        m.ReadRows(**ASKED, part=Slice(5, LONG), within=3),
        m.WriteRow(**ASKED, key=b"k", edits=(), attempt=Attempt(Version(1, 2))),
        m.WriteRow(
            **ASKED,
            key=b"k",
            edits=(Edit("f", None, b"n", bytes((16 << 20) + 1)),),
            attempt=Attempt(Version(1, 2)),
        ),
        between(
            operations.ReadParts(**ROW, questions=(SectionQuestion(family="f", names=(LONG,)),))
        ),
    ],
    ids=name_of,
)
def test_what_is_over_a_limit_is_refused(message: ToStore) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_to_store(encode_store(message, FIRST_VERSION), FIRST_VERSION)


def test_a_message_that_is_too_large_is_not_sent() -> None:
    state = RowState(entries=tuple(("f", b"%d" % i, bytes(16 << 20)) for i in range(4)))
    with pytest.raises(LocalProtocolError, match=str(STORE_BYTES)):
        encode_store(between(operations.MergeState(**ROW, state=state)), FIRST_VERSION)


def test_an_older_version_knows_no_stores() -> None:
    with pytest.raises(LocalProtocolError, match="upgrade"):
        encode_store(OpenStore(request=1), 1)
    data = encode_store(OpenStore(request=1), FIRST_VERSION)
    with pytest.raises(RemoteProtocolError, match="version 2"):
        decode_to_store(b"\1" + data[1:], 1)


HEAD = NodeDigest(1, 2, 3, 4, 5)
GOSSIP = (
    (GossipSyn(7, "n7:75", True, (HEAD,)), "0195a17307a56e373a3735c391950102030405"),
    (
        GossipAck(7, (NodeDelta(HEAD, 3, (StateEntry("load", b"x", 4),)),), (HEAD,)),
        "0194a161079193950102030405039193a46c6f6164c401780491950102030405",
    ),
    (GossipEnd(7, ()), "0193a1650790"),
)


@pytest.mark.parametrize(("message", "data"), GOSSIP)
def test_bytes_of_gossip_are_those_that_are_written_down(message: GossipMessage, data: str) -> None:
    assert encode_gossip(message).hex() == data
    assert decode_gossip(bytes.fromhex(data)) == message


@given(st.binary(max_size=300))
def test_noise_among_gossip_is_refused(noise: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_gossip(noise)


@pytest.mark.parametrize("message", TO_STORE, ids=repr)
def test_what_a_client_says_is_read_as_that(message: ToStore) -> None:
    data = encode_store(message, FIRST_VERSION)
    assert not is_of_node(data)
    assert decode_from_client(data, FIRST_VERSION) == message


@pytest.mark.parametrize("message", [*map(between, BODIES)], ids=repr)
def test_what_a_node_says_is_known_by_its_first_bytes(message: m.NodeMessage) -> None:
    data = encode_store(message, FIRST_VERSION)
    assert is_of_node(data)
    head = decode_head(data, FIRST_VERSION)
    assert (head.cluster, head.id, head.sender) == (message.cluster, message.id, message.sender)
    with pytest.raises(RemoteProtocolError):
        decode_from_client(data, FIRST_VERSION)
