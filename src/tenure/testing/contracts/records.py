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
