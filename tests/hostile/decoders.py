"""Every decoder of what a stranger, a peer, a disk or an operator gives us, with samples to change.

A decoder returns a value, or raises one of its refusals, whatever the bytes are. Hypothesis tries
each with drawn bytes (`test_decoders.py`), a fuzzer with bytes that reach new code (`make fuzz`),
and `test_every_decoder.py` fails where a module of the library decodes something that is not here.

What carries a checksum or a seal gets the right one: otherwise no drawn bytes ever got past it.
"""

import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any, cast

import msgspec

from tenure.cache.memory_file import MAGIC, MemoryFile
from tenure.client.lease_header import LeaseParts, decoded, encoded
from tenure.client.managers_file import ManagersFile
from tenure.columns.engines.directory import MARK, StoreMark, read_mark
from tenure.columns.engines.log_watch import NOTE as LOG_NOTE
from tenure.columns.engines.log_watch import NOTE_BYTES, LogNote, check_log
from tenure.columns.engines.manifest import MARK as MANIFEST_MARK
from tenure.columns.engines.manifest import ManifestMark, check_manifest
from tenure.columns.node.node_directory import IDENTITY, KNOWN, NodeDirectory, NodeIdentity
from tenure.entities.collection import read_token
from tenure.entities.socket_offer import read_told
from tenure.errors import MALFORMED, ServiceRefusal, TenureError
from tenure.gateway.passed_connection import read_passed
from tenure.gateway.take_over import read_names
from tenure.journals.etcd.errors import _refusals
from tenure.journals.etcd.gateway import _decoded as decoded_answer
from tenure.journals.etcd.store import _ranges, _txns
from tenure.journals.etcd.values import identity_in, opened, sealed, unpacked
from tenure.manager.access.audit import _shown
from tenure.manager.access.tokens import _parsed as tokens_in
from tenure.manager.api import NewPool
from tenure.manager.cluster_api import NewCluster
from tenure.manager.command_bodies import read_command
from tenure.manager.config_file import read as read_config
from tenure.manager.http_errors import HttpRefusal, decoded_body
from tenure.manager.operator_verbs import POOL_VERBS, RING_VERBS, Verb
from tenure.manager.other_managers import _decoded as status_of
from tenure.manager.sign_in_api import ShownToken
from tenure.member.asgi import Relayed
from tenure.protocol.entity.messages import EntityFailure
from tenure.protocol.gossip.messages import NodeDigest
from tenure.protocol.lease.leader.receipts import Receipt
from tenure.protocol.lease.leader.receipts import opened as opened_receipt
from tenure.protocol.lease.leader.receipts import sealed as sealed_receipt
from tenure.protocol.lease.records import State
from tenure.protocol.replication.row.copies import record_of_filling, rows_of
from tenure.protocol.replication.row.records import record_of
from tenure.protocol.replication.upkeep.hints import _DECODER as HINTS
from tenure.protocol.topology.records import Placement
from tenure.services.documents.service import Documents
from tenure.services.feeds.parsing import items_in
from tenure.services.feeds.service import Feeds
from tenure.services.operations import decoded_body as decoded_service_body
from tenure.services.operations import decoded_query, operations_in
from tenure.services.pubsub.service import PubSub
from tenure.services.queues.queue import _said
from tenure.services.queues.service import Queues
from tenure.testing.contracts.records import A_STATE, A_TOPOLOGY, EVERY_RECORD
from tenure.transport.datagram import VERSION, DatagramSeal
from tenure.transport.failures import error_of
from tenure.wire import columns, entity, gossip, hand_off, lease, topology, volume
from tenure.wire.journal_codec import checksum
from tenure.wire.lease_records import LEASE_RECORDS
from tenure.wire.versions import NEWEST
from tests.hostile.hostile_decoder import Decode, HostileDecoder
from tests.hostile.inspections import INSPECTIONS
from tests.unit.gateway.samples import A_PASSED, A_SOCKET, AN_ANSWER, AN_OFFER, NAMES
from tests.unit.wire import samples
from tests.unit.wire import test_columns as of_columns
from tests.unit.wire import test_hand_off as of_hand_off
from tests.unit.wire import test_topology as of_topology
from tests.unit.wire import test_volume as of_volume

SECRET = bytes(range(32))
MOST_SAID = 2_000
"""Characters of an error: it names what is wrong, and does not repeat what was sent."""
A_NODE = NodeIdentity(cluster="c", node=1, token=b"t")
PLACE = Path(mkdtemp(prefix="tenure-hostile-"))
"""The directory for files with hostile contents; it is removed when the program ends."""


def wired(decode: Callable[[bytes, int], object]) -> Decode:
    return lambda data: decode(data, NEWEST)


def message(decode: Decode, encode: Callable[[Any], bytes]) -> Decode:
    """A decoder of messages: what it takes is written as it was meant."""

    def both(data: bytes) -> object:
        found = decode(data)
        assert decode(encode(found)) == found
        return found

    return both


def summed(data: bytes) -> bytes:
    """Return the data with the right checksum behind its first byte."""
    return data[:1] + zlib.crc32(data[1:]).to_bytes(4, "big") + data[1:]


def unsealed(whole: bytes) -> bytes:
    """Return the bytes without that checksum, which `summed` puts in again."""
    return whole[:1] + whole[5:]


def in_file(name: str, read: Callable[[Path], object]) -> Decode:
    """A decoder of what a file holds."""
    path = PLACE / name
    path.parent.mkdir(parents=True, exist_ok=True)

    def decode(data: bytes) -> object:
        path.write_bytes(data)
        return read(path)

    return decode


def volume_memory(data: bytes) -> object:
    sealed_body = MAGIC + b"1\n" + zlib.crc32(data).to_bytes(4, "big") + data
    return in_file("memory", lambda path: MemoryFile(path)._read())(sealed_body)


def journal(decode: Callable[[bytes, str], object]) -> Decode:
    return lambda data: decode(data[:1] + checksum((data or b"0")[0], data[1:]) + data[1:], "it")


def etcd_record(data: bytes) -> object:
    whole = zlib.crc32(data).to_bytes(4, "big") + data
    return opened(b"/key", whole, cast("Any", State))


def datagram(data: bytes) -> object:
    seal = DatagramSeal(SECRET, "c", 2, 3, lambda: 0)
    seal.open(data)
    known = bytes([VERSION]) + data[1:]
    return seal.open(known + seal._mac(known))


BODIES = "manager/command_bodies.py"


def orders_of(verbs: Mapping[str, Verb]) -> Decode:
    def decode(data: bytes) -> object:
        for each in verbs.values():
            try:
                read_command(each, "rooms", data, lambda _: "hashed")
            except HttpRefusal:
                continue
        return None

    return decode


def service_bodies(service: type[Any]) -> Decode:
    def decode(data: bytes) -> object:
        for each in operations_in(service):
            for read, said in (
                (decoded_service_body, data),
                (decoded_query, {data[:8].decode("latin-1"): data[8:].decode("latin-1")}),
            ):
                try:
                    cast("Any", read)(each, said)
                except ServiceRefusal:
                    continue
        return None

    return decode


def sockets(data: bytes) -> object:
    for read in (
        entity.read_opened,
        entity.read_frame,
        entity.read_moved,
        entity.read_gone,
        entity.read_resume,
        entity.read_resumed,
        entity.read_pushed,
        entity.read_received,
    ):
        try:
            read(data)
        except (ValueError, RecursionError):
            continue
    return None


def failure(data: bytes) -> object:
    return error_of(
        msgspec.structs.replace(FAILURE, arguments=data, name=data[:8].decode("latin-1"))
    )


def body(data: bytes) -> object:
    for wanted in (NewPool, NewCluster, ShownToken):
        try:
            decoded_body(data, cast("Any", wanted), "")
        except HttpRefusal:
            continue
    return None


def etcd_answers(data: bytes) -> object:
    for each in (_ranges, _txns, _refusals):
        try:
            decoded_answer(cast("Any", each), data, "http://etcd")
        except TenureError:
            continue
    return None


def packed(*messages: object, by: Callable[[Any, int], bytes]) -> tuple[bytes, ...]:
    return tuple(by(each, NEWEST) for each in messages)


TEXT = (ValueError,)
MSGPACK = (ValueError, RecursionError)
"""Errors that a fully trusted peer may cause: an error in its bytes ends its call."""
FAILURE = EntityFailure(seq=1, module="builtins", name="ValueError", text="it is odd")
JSON_BODIES = (
    b'{"name": "rooms", "kind": "ordered", "split_points": ["a", {"hex": "ff"}]}',
    b'{"name": "c", "placement": "rack_unaware 3"}',
    b'{"token": "abc"}',
    b'{"owner": "ann", "key": "k", "dry_run": true, "seconds": 1e400}',
    b'{"node": 1, "token": "ff00", "by": "\\ud800"}',
    b'{"a": ' + b"[" * 40_000,
    b'{"a": "\xff"}',
)
SAID = b'{"at": "http://a", "items": [], "acknowledge": 1, "data": {"a": [1, null]}, "ttl": 3.5}'
FEED = b'<rss version="2.0"><channel><item><title>a</title><guid>1</guid></item></channel></rss>'
ETCD = b'{"header": {"revision": "7"}, "kvs": [{"key": "YQ==", "value": "Yg=="}], "count": "1"}'
A_TOKEN = b'{"id": "a", "sha256": "b", "role": "owner", "created": "c", "pool": "p"}\n'
A_DATAGRAM = DatagramSeal(SECRET, "c", 9, 3, lambda: 0).seal(b"hello")
A_MEMORY = msgspec.msgpack.encode({"number": 1, "longest_ns": 2})
PART = LeaseParts(b"k", 7, 9, "rooms")

DECODERS: dict[str, HostileDecoder] = {
    **INSPECTIONS,
    "requests to a manager": HostileDecoder(
        "wire/lease.py",
        message(wired(lease.decode_to_manager), lambda each: lease.encode(each, NEWEST)),
        packed(*samples.TO_MANAGER, by=lease.encode),
    ),
    "what an owner says": HostileDecoder(
        "wire/lease.py",
        wired(lease.decode_from_owner),
        packed(*samples.TO_MANAGER, *samples.FROM_OWNER, by=lease.encode),
    ),
    "what a lookup says": HostileDecoder(
        "wire/lease.py",
        wired(lease.decode_from_lookup),
        packed(*samples.TO_MANAGER, by=lease.encode),
    ),
    "answers to an owner": HostileDecoder(
        "wire/lease.py",
        message(wired(lease.decode_to_owner), lambda each: lease.encode(each, NEWEST)),
        packed(*samples.TO_OWNER, *samples.INSPECT, by=lease.encode),
    ),
    "answers to a lookup": HostileDecoder(
        "wire/lease.py protocol/lease/table_columns.py",
        message(wired(lease.decode_to_lookup), lambda each: lease.encode(each, NEWEST)),
        packed(*samples.TO_LOOKUP, by=lease.encode),
    ),
    "state handed over, at its taker": HostileDecoder(
        "wire/hand_off.py", hand_off.decode_to_taker, tuple(of_hand_off.SAMPLES)
    ),
    "state handed over, at its source": HostileDecoder(
        "wire/hand_off.py", hand_off.decode_to_source, tuple(of_hand_off.SAMPLES)
    ),
    "requests to a volume": HostileDecoder(
        "wire/volume.py",
        wired(volume.decode_to_volume_server),
        packed(*of_volume.MESSAGES, by=volume.encode_volume),
    ),
    "answers to a cache": HostileDecoder(
        "wire/volume.py",
        wired(volume.decode_to_cache),
        packed(*of_volume.MESSAGES, by=volume.encode_volume),
    ),
    "known writes": HostileDecoder(
        "wire/volume.py", volume.decode_known, volume.encode_known(of_volume.KNOWN)
    ),
    "requests to a node of the store": HostileDecoder(
        "wire/columns.py",
        wired(columns.decode_to_store),
        packed(*of_columns.TO_STORE, by=columns.encode_store),
    ),
    "answers of a node of the store": HostileDecoder(
        "wire/columns.py",
        wired(columns.decode_to_store_client),
        packed(*of_columns.TO_CLIENT, by=columns.encode_store),
    ),
    "a node, to the manager": HostileDecoder(
        "wire/topology.py",
        wired(topology.decode_node_request),
        packed(of_topology.REQUEST, by=topology.encode_topology),
    ),
    "the manager, to a node": HostileDecoder(
        "wire/topology.py",
        wired(topology.decode_to_node),
        packed(*of_topology.TOLD, by=topology.encode_topology),
    ),
    "a topology that is kept": HostileDecoder(
        "wire/topology.py",
        lambda data: topology.read_topology(summed(data), "it"),
        (unsealed(topology.packed_topology(A_TOPOLOGY)),),
    ),
    "gossip": HostileDecoder(
        "wire/gossip.py",
        message(gossip.decode_gossip, gossip.encode_gossip),
        tuple(gossip.encode_gossip(each) for each, _ in of_columns.GOSSIP),
    ),
    "datagrams": HostileDecoder("transport/datagram.py", datagram, (A_DATAGRAM[:-16],)),
    "calls between entities": HostileDecoder(
        "wire/entity.py", entity.decode, (entity.encode(FAILURE),)
    ),
    "what a call failed with": HostileDecoder(
        "transport/failures.py", failure, (msgspec.msgpack.encode(["odd"]),)
    ),
    "WebSockets of entities": HostileDecoder("wire/entity.py", sockets, (b"\x93\x01\x02\x03",)),
    "records of the journal": HostileDecoder(
        "wire/journal_codec.py wire/lease_records.py",
        journal(LEASE_RECORDS.decode_record),
        tuple(unsealed(LEASE_RECORDS.encode_record(each)) for each in EVERY_RECORD),
    ),
    "snapshots of the journal": HostileDecoder(
        "wire/journal_codec.py wire/lease_records.py",
        journal(LEASE_RECORDS.decode_state),
        (unsealed(LEASE_RECORDS.encode_state(A_STATE)),),
    ),
    "values of etcd": HostileDecoder(
        "journals/etcd/values.py", etcd_record, (sealed(A_STATE)[4:],)
    ),
    "records of etcd": HostileDecoder(
        "journals/etcd/values.py",
        lambda data: unpacked(b"/key", data, 2),
        (msgspec.msgpack.encode([b"a", b"b"]),),
    ),
    "the identity in etcd": HostileDecoder(
        "journals/etcd/values.py",
        lambda data: identity_in(b"/key", data),
        (b'{"format": 1, "journal": 7}',),
    ),
    "answers of etcd": HostileDecoder(
        "journals/etcd/gateway.py journals/etcd/store.py journals/etcd/errors.py",
        etcd_answers,
        (ETCD,),
    ),
    "receipts": HostileDecoder(
        "protocol/lease/leader/receipts.py",
        lambda data: opened_receipt(data, 1, SECRET),
        (sealed_receipt(Receipt(1, 2, 3), 1, SECRET),),
    ),
    "bodies of the manager": HostileDecoder(
        "manager/http_errors.py errors.py",
        body,
        JSON_BODIES,
    ),
    "steering": HostileDecoder(BODIES, orders_of(POOL_VERBS), JSON_BODIES),
    "changes of the ring": HostileDecoder(
        "manager/command_bodies.py", orders_of(RING_VERBS), JSON_BODIES
    ),
    "placements": HostileDecoder(
        "protocol/topology/records.py",
        lambda data: Placement.read(data.decode("latin-1")),
        (b"rack_unaware 3", b"rack_aware 3 racks 2", b"{}"),
        TEXT,
    ),
    "what another manager says": HostileDecoder(
        "manager/other_managers.py", status_of, JSON_BODIES, MALFORMED
    ),
    "the audit": HostileDecoder("manager/access/audit.py", _shown, JSON_BODIES),
    "the file of tokens": HostileDecoder(
        "manager/access/tokens.py",
        lambda data: tokens_in(Path("tokens"), data),
        (
            A_TOKEN,
            *JSON_BODIES,
        ),
    ),
    "the configuration of a manager": HostileDecoder(
        "manager/config_file.py",
        in_file("manager.toml", read_config),
        (b'listen = "a:1"\n[limits]\nconnections = 3\n[[pool]]\nname = "p"\nkind = "hashed"\n',),
    ),
    "the file of managers": HostileDecoder(
        "client/managers_file.py",
        in_file("managers", lambda path: ManagersFile(str(path)).read()),
        (b"http://127.0.0.1:7400 # one\n",),
    ),
    "the header of a lease": HostileDecoder(
        "client/lease_header.py",
        lambda data: decoded(data.decode("latin-1")),
        (encoded(PART).encode(),),
    ),
    "what a relay says of a request": HostileDecoder(
        "member/asgi.py", Relayed.read, (b"member 10.0.0.1 443 https",)
    ),
    "the memory of a cache server": HostileDecoder(
        "cache/memory_file.py", volume_memory, (A_MEMORY,)
    ),
    "the file of that memory": HostileDecoder(
        "cache/memory_file.py",
        in_file("memory-file", lambda path: MemoryFile(path)._read()),
        (MAGIC + b"1\nabcd", MAGIC + b"9" * 4_000 + b"\n"),
    ),
    "the mark of a store": HostileDecoder(
        "columns/engines/directory.py",
        in_file(f"store/{MARK}", lambda path: read_mark(path.parent)),
        (msgspec.json.encode(StoreMark(1, "a")),),
    ),
    "the note of a log": HostileDecoder(
        "columns/engines/log_watch.py",
        in_file(f"log/{LOG_NOTE}", lambda path: check_log(path.parent, path.parent)),
        (msgspec.json.encode(LogNote({"000004.log": 7}, 9)).ljust(NOTE_BYTES),),
    ),
    "the note of a manifest": HostileDecoder(
        "columns/engines/manifest.py",
        in_file(f"manifest/{MANIFEST_MARK}", lambda path: check_manifest(path.parent)),
        (msgspec.json.encode(ManifestMark("MANIFEST-1", 9)),),
    ),
    "the identity of a node": HostileDecoder(
        "columns/node/node_directory.py",
        in_file(f"node/{IDENTITY}", lambda path: NodeDirectory.open(path.parent, "c", Random(1))),
        (msgspec.json.encode(NodeIdentity(cluster="c", node=1, token=b"t")),),
    ),
    "what a node has heard": HostileDecoder(
        "columns/node/node_directory.py",
        in_file(f"heard/{KNOWN}", lambda path: NodeDirectory(path.parent, A_NODE).known()),
        (msgspec.msgpack.encode((NodeDigest(1, 2, 3, 4),)),),
    ),
    "rows that are kept": HostileDecoder(
        "protocol/replication/row/records.py", record_of, (b"\x90",), MSGPACK
    ),
    "hints": HostileDecoder(
        "protocol/replication/upkeep/hints.py", HINTS.decode, (b"\x90",), MSGPACK
    ),
    "rows that are copied": HostileDecoder(
        "protocol/replication/row/copies.py", rows_of, (b"\x90",), MSGPACK
    ),
    "how far a copy is": HostileDecoder(
        "protocol/replication/row/copies.py", record_of_filling, (b"\x90",), MSGPACK
    ),
    "bodies of documents": HostileDecoder(
        "services/operations.py services/documents/service.py", service_bodies(Documents), (SAID,)
    ),
    "bodies of queues": HostileDecoder(
        "services/operations.py services/queues/service.py", service_bodies(Queues), (SAID,)
    ),
    "bodies of topics": HostileDecoder(
        "services/operations.py services/pubsub/service.py", service_bodies(PubSub), (SAID,)
    ),
    "bodies of feeds": HostileDecoder(
        "services/operations.py services/feeds/service.py", service_bodies(Feeds), (SAID,)
    ),
    "feeds": HostileDecoder("services/feeds/parsing.py", items_in, (FEED,)),
    "what listens": HostileDecoder("gateway/take_over.py", read_names, (NAMES,), MALFORMED),
    "passed on": HostileDecoder(
        "gateway/passed_connection.py", read_passed, (A_PASSED,), MALFORMED
    ),
    "a gateway's socket": HostileDecoder("entities/socket_offer.py", read_told, (A_SOCKET,)),
    "an answer to an offer": HostileDecoder(
        "entities/socket_offer.py", AN_OFFER.taken, (AN_ANSWER,)
    ),
    "page tokens": HostileDecoder(
        "entities/collection.py", read_token, (b"lMQIOCBieXRlcy7EAWHEAWLD",)
    ),
    "the socket of a queue": HostileDecoder(
        "services/queues/queue.py", _said, (b'{"acknowledge": 3}',), MSGPACK
    ),
}


def outcome(decoder: HostileDecoder, data: bytes) -> object:
    """Return the outcome of decoding; any exception other than a refusal is a fault."""
    try:
        return decoder.decode(data)
    except decoder.refusals as error:
        assert len(str(error)) < MOST_SAID  # noqa: PT017  # whatever was sent, the log stays readable
        return error
