"""Records and a state of leases to try journals and codecs with."""

from tenure.protocol.lease.messages import Entry, Held, Process
from tenure.protocol.lease.records import (
    AnyRecord,
    Changed,
    Joined,
    Left,
    MemberRecord,
    PoolCreated,
    PoolState,
    PromiseLowered,
    State,
    Steering,
    TookOver,
    WaitedOut,
)
from tenure.protocol.topology.history import ClusterDeleted, TopologySet
from tenure.protocol.topology.records import (
    Node,
    Placement,
    Removed,
    ReplicaRange,
    RingChange,
    Topology,
)
from tenure.protocol.topology.tables import FamilyRecord, TableRecord

STEERING = Steering(
    cordoned=("a",),
    drained=("b",),
    evicted=(7,),
    pins=((b"k\x00", "a"),),
    frozen=True,
    policy="ring",
)
A_PROCESS = Process(
    boot_id="5e2d7a54-6ff6-4a51-9aa2-9f2e0b4d1c3e",
    pid_namespace=4026531836,
    time_namespace=4026531834,
    pid=4711,
    start_time=123456,
)

A_TOPOLOGY = Topology(
    cluster="chat",
    id=(1 << 63) - 1,
    version=17,
    placement=Placement("datacentre_aware", 2, (("east", 1), ("west", 1))),
    first_nodes=2,
    nodes=(
        Node(id=1, name="a", address="http://a", datacentre="east", token=b"g", since=12),
        Node(id=2, name="b", address="http://b", datacentre="west", token=b"p\xff", since=12),
        Node(id=3, name="c", address="http://c", datacentre="west", token=b"z", since=17),
    ),
    removed=(Removed(4, "d"),),
    ranges=(
        ReplicaRange(b"", (1, 2)),
        ReplicaRange(b"g", (2, 1)),
        ReplicaRange(b"p\xff", (1, 2), (3, 1)),
        ReplicaRange(b"z", (1, 2)),
    ),
    tables={"t": TableRecord("hashed", "str", "", {"f": FamilyRecord("int", "str", "time")})},
    change=RingChange(kind="add", node=3, token=b"z", began=17),
)

EVERY_RECORD: tuple[AnyRecord, ...] = (
    TookOver(leadership=1, promise_ns=65_000_000_000, manager="http://a"),
    WaitedOut(),
    PromiseLowered(promise_ns=13_000_000_000),
    PoolCreated(pool="rooms", kind="ordered", split_points=(b"g", b"p\x00\xff")),
    Joined(
        pool="rooms",
        incarnation=1,
        name="östlich",
        nonce=(1 << 63) - 1,
        address="http://10.0.0.7",
        capacity=2.5,
        labels={"zone": "b"},
    ),
    Joined(
        pool="rooms", incarnation=2, name="b", nonce=0, address="http://10.0.0.8", process=A_PROCESS
    ),
    Changed(
        pool="rooms",
        entries=(
            Entry(start=b"", end=b"g", owner=1, number=1, since=1),
            Entry(start=b"c", end=None, owner=0, number=2, since=2),
        ),
    ),
    Joined(
        pool="rooms",
        incarnation=3,
        name="c",
        nonce=1,
        address="http://10.0.0.9",
        hand_off="ws://10.0.0.9",
    ),
    Changed(
        pool="rooms", entries=(Entry(start=b"", end=b"g", owner=3, number=3, since=1),), handed=1
    ),
    Left(
        pool="rooms",
        incarnation=1,
        entries=(Entry(start=b"", end=None, owner=0, number=3, since=3),),
    ),
    Changed(pool="rooms", entries=(), steering=STEERING),
    TopologySet(A_TOPOLOGY),
    ClusterDeleted("chat"),
)
"""One record of every kind, with values at the edges of what they may be."""

A_STATE = State(
    leadership=1,
    promise_ns=65_000_000_000,
    waited_out=True,
    pools=(
        PoolState(
            pool="rooms",
            kind="ordered",
            split_points=(b"g",),
            next_number=6,
            next_incarnation=2,
            entries=(
                Entry(start=b"", end=b"g", owner=1, number=5, since=1),
                Entry(start=b"g", end=None, owner=0, number=3, since=3),
            ),
            members=(
                MemberRecord(
                    incarnation=1, name="a", nonce=7, address="http://10.0.0.7", process=A_PROCESS
                ),
            ),
            numbered=(("a", 1, 7), ("b", 0, 0)),
            handed=(Held(start=b"", end=b"g", number=4),),
            steering=STEERING,
        ),
    ),
)


def numbered(first: int, count: int) -> tuple[AnyRecord, ...]:
    """Records that can be told apart."""
    return tuple(Left(pool="rooms", incarnation=i, entries=()) for i in range(first, first + count))
