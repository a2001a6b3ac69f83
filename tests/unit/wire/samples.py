"""A message of every kind and shape, and its receiver."""

from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from tenure.protocol.entity.copying import CopiedLines, CopyEntity, PutDone, PutEntity
from tenure.protocol.entity.inspection import (
    FindKeys,
    FoundKeys,
    NotSeen,
    SeenAlarm,
    SeenCollection,
    SeenEntity,
    SeenItem,
    SeenSocket,
    ShowEntity,
)
from tenure.protocol.lease.inspecting import Inspect, Inspected
from tenure.protocol.lease.messages import (
    AnyMessage,
    Attest,
    Attested,
    Changes,
    Copy,
    Entry,
    HandOff,
    Held,
    Hello,
    Introduction,
    Join,
    Leased,
    LeaseRequest,
    LeaseResponse,
    OwnerInfo,
    Poke,
    Process,
    Refusal,
    ShortRequest,
    Standby,
    Sync,
    SyncRefusal,
    SyncResponse,
)
from tenure.protocol.lease.table import Right, columns_of
from tenure.wire import lease as codec
from tenure.wire.frame import Bytes
from tenure.wire.lease import Written
from tenure.wire.versions import NEWEST

Decode = Callable[[Bytes, int], Written]

MOST = (1 << 63) - 1
ENTRIES = (
    Entry(start=b"", end=b"m", owner=1, number=5, since=5),
    Entry(start=b"m", end=None, owner=0, number=6, since=6),
)
COLUMNS = columns_of([b"", b"m"], [Right(1, 5, 5), Right(0, 6, 6)])
OWNERS = (OwnerInfo(incarnation=1, name="a", address="http://10.0.0.7"),)
PROCESS = Process(
    boot_id="5e2d7a54-6ff6-4a51-9aa2-9f2e0b4d1c3e",
    pid_namespace=4026531836,
    time_namespace=4026531834,
    pid=4711,
    start_time=123456,
)
JOIN = Join(
    pool="rooms",
    kind="hashed",
    name="a",
    address="http://10.0.0.7",
    owner_nonce=1,
    manager_nonce=2,
    sequence=3,
)
REQUEST = LeaseRequest(
    pool="rooms",
    incarnation=1,
    owner_nonce=2,
    manager_nonce=3,
    sequence=4,
    journal=5,
    leadership=6,
    held=(),
)
SHORT = ShortRequest(
    pool="rooms",
    incarnation=1,
    owner_nonce=2,
    manager_nonce=3,
    sequence=4,
    journal=5,
    leadership=6,
    fingerprint=b"f",
)
ANSWER = LeaseResponse(
    incarnation=1,
    owner_nonce=2,
    sequence=3,
    manager_nonce=4,
    journal=5,
    leadership=6,
    term_ns=7,
    renew_ns=8,
    leases=(),
)
TO_MANAGER: list[AnyMessage] = [
    Hello(pool="rooms", token=MOST),
    replace(JOIN, kind=None, capacity=0.5, labels={"zone": "östlich"}),
    replace(JOIN, process=PROCESS),
    Attested(
        pool="rooms",
        incarnation=1,
        process=PROCESS,
        witness=msgspec.structs.replace(PROCESS, pid=MOST),
        owner_nonce=2,
        manager_nonce=3,
    ),
    REQUEST,
    replace(
        REQUEST,
        held=(Held(start=b"", end=b"a", number=1), Held(start=b"b", end=None, number=MOST)),
        leaving=True,
    ),
    replace(JOIN, hand_off="ws://10.0.0.7"),
    replace(
        REQUEST,
        copies=(Copy(start=b"", end=b"a", number=1), Copy(start=b"b", end=None, number=2, taker=3)),
    ),
    Sync(pool="rooms", sequence=1, journal=2, leadership=3, lsn=4, nonce=5),
]
SEEN = SeenEntity(
    number=1,
    journal=2,
    kept=True,
    awake=False,
    turn="say",
    waiting=1,
    state='{"count":1}',
    state_bytes=9,
    version=1,
    answers=2,
    alarms=(SeenAlarm(name="run", due=1.0, next_at=2.0, attempts=1),),
    alarms_set=1,
    sockets=(SeenSocket(id="00", edge="http://a", unread=1, closing=0),),
    sockets_open=1,
    collections=(SeenCollection(name="history", items=3, has_more=False),),
    page=(SeenItem(at="1", value='"ö"', added=1.5),),
    next=b"place",
)
FROM_OWNER: list[Inspected] = [
    Inspected(pool="rooms", ticket=MOST, answer=SEEN),
    Inspected(
        pool="rooms",
        ticket=1,
        answer=FoundKeys(keys=("a", 7), next=b"next", of_pool=False, start=b"start"),
    ),
    Inspected(
        pool="rooms",
        ticket=1,
        answer=CopiedLines(lines=b"{}\n", copy=3, kind="Room", version=2),
    ),
    Inspected(
        pool="rooms",
        ticket=1,
        answer=PutDone(outcome="differs", permit=b"permit", there=b"digest", parts=2),
    ),
    Inspected(pool="rooms", ticket=0, answer=NotSeen(why="it is away", way_out="ask again")),
]
INSPECT: list[Inspect] = [
    Inspect(pool="rooms", ticket=1, question=FindKeys(start=b"", end=None, prefix="ro", most=3)),
    Inspect(
        pool="rooms",
        ticket=2,
        question=ShowEntity(key="attic", contents=True, collection="history", after=b"1"),
    ),
    Inspect(pool="rooms", ticket=3, question=CopyEntity(key=7, copy=2)),
    Inspect(
        pool="rooms",
        ticket=4,
        question=PutEntity(
            key="attic",
            kind="Room",
            digest=b"digest",
            lines=b"{}\n",
            part=1,
            is_last=True,
            permit=b"permit",
            replaces=b"other",
        ),
    ),
]
TO_OWNER: list[AnyMessage] = [
    Introduction(journal=1, leadership=2, manager_nonce=3),
    replace(ANSWER, leases=(Leased(start=b"a", end=b"b", number=2, since=1, mark="granted"),)),
    replace(
        ANSWER,
        leases=(Leased(start=b"a", end=b"b", number=MOST, since=1, mark="granted", handed=7),),
    ),
    replace(
        ANSWER,
        copies=(Held(start=b"", end=b"a", number=1), Held(start=b"a", end=None, number=MOST)),
        hand_offs=(
            HandOff(start=b"", end=b"a", number=1, taker=2, address="ws://b"),
            HandOff(start=b"a", end=None, number=2, taker=3, address="ws://c"),
        ),
    ),
    Refusal(
        owner_nonce=1,
        sequence=2,
        manager_nonce=3,
        journal=4,
        leadership=5,
        reason="name_held",
        detail="another is alive",
        retry_after_ns=6,
    ),
    Poke(),
    Attest(pool="rooms", incarnation=1, process=PROCESS, manager_nonce=2),
    Standby(leader=None),
]
TO_LOOKUP: list[AnyMessage] = [
    SyncResponse(
        sequence=1,
        nonce=2,
        journal=3,
        leadership=4,
        lsn=5,
        kind="hashed",
        snapshot=True,
        entries=ENTRIES,
        owners=OWNERS,
        sync_ns=6,
        contact_ns=7,
    ),
    SyncResponse(
        sequence=1,
        nonce=2,
        journal=3,
        leadership=4,
        lsn=5,
        kind="ordered",
        snapshot=False,
        entries=ENTRIES[::-1],
        owners=OWNERS,
        sync_ns=6,
        contact_ns=7,
    ),
    SyncResponse(
        sequence=1,
        nonce=2,
        journal=3,
        leadership=4,
        lsn=5,
        kind="hashed",
        snapshot=True,
        entries=(),
        owners=OWNERS,
        sync_ns=6,
        contact_ns=7,
        columns=COLUMNS,
    ),
    SyncRefusal(sequence=1, nonce=2, detail="no such pool"),
    Changes(
        pool="rooms",
        journal=1,
        leadership=2,
        after=3,
        lsn=4,
        entries=(*ENTRIES, *ENTRIES),
        owners=(),
    ),
    Standby(leader="http://10.0.0.9:7400"),
]
RECEIVERS: list[tuple[Decode, Sequence[Written]]] = [
    (codec.decode_to_manager, TO_MANAGER),
    (codec.decode_to_owner, TO_OWNER),
    (codec.decode_to_lookup, TO_LOOKUP),
]
DECODERS = [decode for decode, _ in RECEIVERS]
CASES = [(decode, message) for decode, messages in RECEIVERS for message in messages]
SAMPLES = [codec.encode(message, NEWEST) for _, message in CASES]


def request(*held: Held) -> bytes:
    return codec.encode(replace(REQUEST, held=held), NEWEST)


def packed(*fields: object) -> bytes:
    return bytes([NEWEST]) + msgspec.msgpack.encode(fields)
