"""The present release understands what the first one wrote, and the first one understands what is
written today.

A field may be added at the end, with a default, and then has a value in ADDED, which shows that the
first release passes over it. All other additions are for peers of a newer version only.
"""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, get_args

import msgspec
import pytest

from lab.contracts.transport import A_PROCESS
from tenure.protocol.lease import load_report, messages, range_item, records
from tenure.protocol.lease.messages import ToLookup, ToManager, ToOwner
from tenure.protocol.lease.port_proof import PortProof
from tenure.protocol.lease.records import LeaseRecord, State
from tenure.protocol.lease.reports import EntityReport, TierReport, VolumeReport, WaitingWrite
from tenure.protocol.lease.rivalry import Predecessor, Rival, Rivalry, Succession
from tenure.protocol.lease.table_columns import TableColumns
from tenure.protocol.topology.history import ClusterState, TopologySet
from tenure.testing.contracts.records import A_TOPOLOGY
from tenure.wire import lease as codec
from tenure.wire.lease import SINCE
from tenure.wire.lease_records import LEASE_RECORDS
from tests.versions.old import HERE, run_old

GOLDEN = json.loads((HERE / "golden-1.json").read_text("utf-8"))
RENAMED = {"MemberRecord": "Member"}
"""Types that have another name today. None of these names is on the wire."""
NAMES: dict[str, Any] = {
    **vars(range_item),
    **vars(load_report),
    **vars(messages),
    **vars(records),
}
NAMES |= {then: NAMES[now] for now, then in RENAMED.items()}

STEERING = records.Steering(
    cordoned=("ann",),
    drained=("bob",),
    evicted=(1,),
    pins=((b"k", "ann"),),
    frozen=True,
    policy="ring",
)

A_RIVAL = Rival(manager="http://b:7400", journal=7, succeeds=(Succession(8, b"proof"),))
A_RIVALRY = Rivalry(journal=7, manager="http://b:7400", pool="rooms", granted=False)

A_PROOF = PortProof(secret=b"0123456789abcdef", is_wanted=True)
ADDED: dict[str, object] = {
    "Changes.cause": "3.17",
    "LeaseResponse.cause": "3.17",
    "LoadReport.levels": (
        load_report.LevelLoad(
            metric="memory",
            ranges=(load_report.RangeLoad(start=b"", end=None, rate=2.0),),
            hottest=(load_report.KeyLoad(key=b"k", rate=1.0),),
            sample=(b"m",),
        ),
    ),
    "Poke.cause": "3.17",
    "SyncResponse.cause": "3.17",
    "SyncResponse.columns": TableColumns(
        ranges=2, starts=b"k" * 8, lengths=b"", owners=b"\0\1", numbers=b"\3\5", sinces=b"\3\5"
    ),
    "SyncResponse.hold_ns": 13_000_000_000,
    "Changes.receipt": b"sealed",
    "Hello.rival": A_RIVAL,
    "Introduction.granted": False,
    "Introduction.over": (7, 8),
    "Introduction.realm": "shop",
    "Introduction.succeeds": A_RIVAL.succeeds,
    "LeaseRequest.rival": A_RIVAL,
    "LoadReport.names": ("attic",),
    "LoadReport.sample": (b"attic", b"roof"),
    "Join.proves": True,
    "LeaseRequest.proves": True,
    "LeaseRequest.waits": True,
    "LeaseResponse.proof": A_PROOF,
    "Sync.proves": True,
    "SyncResponse.proof": A_PROOF,
    "PromiseLowered.over": 7,
    "PromiseLowered.realm": "shop",
    "PromiseLowered.rivalry": A_RIVALRY,
    "PromiseLowered.waits": True,
    "State.over": (7, 8),
    "State.predecessors": (Predecessor(7, b"secret"),),
    "State.realm": "shop",
    "State.rivalries": (A_RIVALRY,),
    "Sync.rival": A_RIVAL,
    "SyncResponse.realm": "shop",
    "LeaseRequest.letting_go": (messages.Held(start=b"a", end=b"b", number=0),),
    "LeaseRequest.receipt": b"sealed",
    "LeaseResponse.receipt": b"sealed",
    "State.next_incarnation": 2,
    "State.next_number": 9,
    "State.secret": b"secret",
    "Sync.reads_columns": True,
    "Sync.receipt": b"sealed",
    "SyncResponse.receipt": b"sealed",
    "TookOver.secret": b"secret",
    "Changed.deleted": True,
    "Changed.handed": 7,
    "Changed.renumbers": True,
    "Changed.steering": STEERING,
    "Join.hand_off": "ws://a",
    "Join.process": A_PROCESS,
    "Joined.hand_off": "ws://a",
    "Joined.process": A_PROCESS,
    "LeaseRequest.copies": (messages.Copy(start=b"a", end=b"b", number=5, taker=2),),
    "LeaseRequest.load": load_report.LoadReport(
        span_ns=5,
        ranges=(load_report.RangeLoad(start=b"a", end=b"b", rate=2.5),),
        hottest=(load_report.KeyLoad(key=b"a", rate=1.5),),
    ),
    "LeaseResponse.expected": (
        messages.Expected(start=b"a", end=b"b", number=5, source=2, secret=7),
    ),
    "LeaseResponse.same_address": "bob",
    "LeaseResponse.fingerprint": b"0123456789abcdef",
    "LeaseResponse.copies": (messages.Held(start=b"a", end=b"b", number=5),),
    "LeaseResponse.hand_offs": (
        messages.HandOff(start=b"a", end=b"b", number=5, taker=2, address="ws://a", secret=7),
    ),
    "LeaseRequest.knows_former": True,
    "LeaseRequest.report": TierReport(
        volume=VolumeReport(
            readers=1,
            leases=2,
            unacknowledged=1,
            writes=1,
            loads=0,
            waiting=(WaitingWrite(keys="a", seconds=0.5, readers=("127.0.0.1:9",), missing=1),),
        ),
        entities=EntityReport(kind="Room", instances=3, turns=1, waiting=0, alarms=2),
    ),
    "Join.cache": "ws://a",
    "Join.reads_ns": 3_000_000_000,
    "Joined.cache": "ws://a",
    "Joined.reads_ns": 3_000_000_000,
    "Leased.quiet_ns": 3_250_000_000,
    "LeaseResponse.reads_ns": 3_000_000_000,
    "Member.cache": "ws://a",
    "Member.reads_ns": 3_000_000_000,
    "OwnerInfo.cache": "ws://a",
    "PoolState.reads_ns": 3_000_000_000,
    "Leased.former": 4,
    "Leased.handed": 7,
    "Member.hand_off": "ws://a",
    "Member.process": A_PROCESS,
    "Hello.journal": 77,
    "Hello.name": "alice",
    "Hello.receipt": b"sealed",
    "PromiseLowered.older": 77,
    "State.older": 77,
    "PoolState.deleted": True,
    "PoolState.former": (messages.Held(start=b"a", end=b"b", number=5),),
    "PoolState.handed": (messages.Held(start=b"a", end=b"b", number=5),),
    "PoolState.steering": STEERING,
}
"""Every field that was added since, with a value that is not its default."""

NEWER_FORMAT = ("State.clusters", "State.versions_passed")
"""Fields that are empty in every journal that the first release may read: one that has something in
them is of a later format, which it refuses by that name."""

RECEIVERS: dict[str, Any] = {
    "manager": (ToManager, codec.decode_to_manager),
    "owner": (ToOwner, codec.decode_to_owner),
    "lookup": (ToLookup, codec.decode_to_lookup),
}


def meant(sample: dict[str, str]) -> Any:  # noqa: ANN401 - whatever it is
    """Return what a golden line stands for, in the words of today."""
    return eval(sample["is"], {"__builtins__": {}}, NAMES)  # noqa: S307 - a file of ours


def receivers(message: object) -> Iterator[str]:
    for receiver, (takes, _) in RECEIVERS.items():
        if isinstance(message, takes):
            yield receiver


def filled(thing: Any) -> Any:  # noqa: ANN401 - any struct, or what may be in one
    """Return the thing with a value in every field that the first release does not know."""
    if isinstance(thing, tuple):
        return tuple(filled(each) for each in thing)
    if not isinstance(thing, msgspec.Struct):
        return thing
    name = RENAMED.get(type(thing).__name__, type(thing).__name__)
    known = GOLDEN["fields"][name]
    old = {field: filled(getattr(thing, field)) for field in known}
    added = (field for field in thing.__struct_fields__[len(known) :])
    new = {field: ADDED[f"{name}.{field}"] for field in added if f"{name}.{field}" in ADDED}
    return type(thing)(**old, **new)


@cache
def read_by_old(*lines: tuple[str, str]) -> list[str]:
    said = run_old("read_again.py", "\n".join(json.dumps(line) for line in lines))
    return [json.loads(line) for line in said.splitlines()]


# --- the file is what it says ---------------------------------------------------------------------


def test_the_golden_file_is_what_the_first_leasehold_writes() -> None:
    assert json.loads(run_old("write_golden.py")) == GOLDEN


def test_the_golden_file_has_every_message_and_record_of_the_first_version() -> None:
    first = {each.__name__ for each, since in SINCE.items() if since == 1}
    assert {type(meant(each)).__name__ for each in GOLDEN["messages"]} == first
    written = {type(meant(each)) for each in GOLDEN["records"]}
    assert written == set(get_args(LeaseRecord)), "an older standby cannot read a new kind"


# --- what may change ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GOLDEN["fields"])
def test_fields_are_only_ever_added_at_the_end_and_with_defaults(name: str) -> None:
    known, struct = GOLDEN["fields"][name], NAMES[name]
    assert list(struct.__struct_fields__[: len(known)]) == known
    for field in msgspec.structs.fields(struct)[len(known) :]:
        assert not field.required, f"{name}.{field.name} has no default"
        assert f"{name}.{field.name}" in (*ADDED, *NEWER_FORMAT)


@pytest.mark.parametrize("name", GOLDEN["words"])
def test_the_words_in_fields_stay_the_same(name: str) -> None:
    """An older reader takes a message with a word that it does not know for damage."""
    assert list(get_args(NAMES[name])) == GOLDEN["words"][name]


# --- reading and being read -----------------------------------------------------------------------


@pytest.mark.parametrize("sample", GOLDEN["messages"], ids=lambda it: it["is"][:40])
def test_an_old_message_is_understood(sample: dict[str, str]) -> None:
    message = meant(sample)
    taken = list(receivers(message))
    assert taken
    for receiver in taken:
        assert RECEIVERS[receiver][1](bytes.fromhex(sample["hex"]), 1) == message


@pytest.mark.parametrize("sample", GOLDEN["records"], ids=lambda it: it["is"][:40])
def test_an_old_record_is_understood(sample: dict[str, str]) -> None:
    data = bytes.fromhex(sample["hex"])
    assert LEASE_RECORDS.decode_record(data, "there") == meant(sample)


@pytest.mark.parametrize("sample", GOLDEN["states"], ids=lambda it: it["is"][:40])
def test_an_old_snapshot_is_understood(sample: dict[str, str]) -> None:
    assert LEASE_RECORDS.decode_state(bytes.fromhex(sample["hex"]), "there") == meant(sample)


def test_the_first_leasehold_reads_what_is_written_today() -> None:
    lines: list[tuple[str, str]] = []
    expected: list[str] = []
    for kind, encode in (
        ("messages", lambda message: codec.encode(message, 1)),
        ("records", LEASE_RECORDS.encode_record),
        ("states", LEASE_RECORDS.encode_state),
    ):
        for sample in GOLDEN[kind]:
            thing = meant(sample)
            for made in (thing, filled(thing)):
                for reader in receivers(thing) if kind == "messages" else [kind]:
                    lines.append((reader, encode(made).hex()))
                    expected.append(sample["is"])
    assert read_by_old(*lines) == expected


def test_what_the_first_leasehold_does_not_read_is_seen_here() -> None:
    """The test above can fail: here are a message, a version and a record that are new."""
    attest = messages.Attest(pool="rooms", incarnation=1, process=A_PROCESS, manager_nonce=1)
    newer = codec.encode(attest, 2)
    said = read_by_old(("owner", newer.hex()), ("owner", (b"\x01" + newer[1:]).hex()))
    assert "the peer speaks protocol version 2, this side version 1" in said[0]
    assert "malformed" in said[1]


def test_a_journal_with_clusters_is_refused_by_the_first_leasehold_as_too_new() -> None:
    state = State(clusters=(ClusterState(A_TOPOLOGY),))
    record = TopologySet(A_TOPOLOGY)
    assert LEASE_RECORDS.decode_state(LEASE_RECORDS.encode_state(state), "there") == state
    said = read_by_old(
        ("states", LEASE_RECORDS.encode_state(state).hex()),
        ("records", LEASE_RECORDS.encode_record(record).hex()),
        ("states", LEASE_RECORDS.encode_state(State(versions_passed=1)).hex()),
    )
    for each in said:
        assert "is of format 2, and this" in each


def test_every_new_field_has_a_value_that_is_not_its_default() -> None:
    for name, value in ADDED.items():
        struct, _, field = name.partition(".")
        fields = {each.name: each.default for each in msgspec.structs.fields(NAMES[struct])}
        assert fields[field] != value
