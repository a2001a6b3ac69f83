"""The contents of the journal: records, each a decided change, and snapshots of their sum.

A record says what is now so, not what was asked, so that applying it needs no rule: a later version
that decides differently reads the same history. Records are applied in the order of their LSNs.
"""

from typing import Annotated, TypeAlias

import msgspec

from tenure.base.keys import Key, PoolKind
from tenure.base.numbers import JournalId, Nonce, Number
from tenure.protocol.lease.messages import Address, Entry, Held, Join, Name, Process
from tenure.protocol.lease.rivalry import (
    PREDECESSORS_KEPT,
    RIVALS_KEPT,
    JournalsOver,
    Predecessor,
    Realm,
    Rivalry,
)
from tenure.protocol.log.journal import LogAction, LogEvent
from tenure.protocol.topology.history import AnyClusterRecord, ClusterState

Secret: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=64)]
"""The secret of a journal and its managers; nobody else is told it."""


class Record(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The base of all records."""


class TookOver(Record, frozen=True, kw_only=True):
    """A manager leads from here on, and may promise what outlives its leadership by `promise_ns`.

    That is its hold and, since it may answer until its leadership has run out on its own clock,
    that too (P7, P19): a later leader waits the longest promise of all its predecessors.
    """

    leadership: Number
    promise_ns: Number
    manager: str
    secret: Secret = b""
    """The secret with which leaders of this journal seal receipts; empty if an older manager took
    over.
    """


class PromiseLowered(Record, frozen=True, kw_only=True):
    """Every longer promise has run out; from here on `promise_ns` is the longest."""

    promise_ns: Number
    older: JournalId = 0
    """Another journal that a client has the history of: there were managers before this journal,
    whatever the operator says (P22). 0 where this record says nothing of that."""
    rivalry: Rivalry | None = None
    """A rival that the leader has learned of (P25)."""
    over: JournalId = 0
    """A journal that an operator has declared over: a rival's, or this one."""
    waits: bool = False
    """Whether what its leaders have promised must run out before anything is granted."""
    realm: Realm = ""
    """The name of the fleet of managers; empty where this record says nothing of that."""


class WaitedOut(Record, frozen=True, kw_only=True):
    """Whatever was promised before this journal began has run out: ranges may be granted (P22)."""


class PoolCreated(Record, frozen=True, kw_only=True):
    """A pool exists. An ordered pool begins with `split_points`."""

    pool: Name
    kind: PoolKind
    split_points: tuple[Key, ...] = ()


class Joined(Record, frozen=True, kw_only=True):
    """An incarnation of an owner is numbered; number and nonce together (P9)."""

    pool: Name
    incarnation: Number
    name: Name
    nonce: Nonce
    address: Address
    capacity: float = 1.0
    labels: dict[str, str] = {}
    process: Process | None = None
    hand_off: Address | None = None
    reads_ns: Number = 0
    cache: Address | None = None

    @classmethod
    def by(cls, join: Join, incarnation: int, longest_reads_ns: int) -> "Joined":
        """The record that answers a join. Whatever it says of its reads, they end with its term
        (V11): more on record would have its successors wait in vain, for as long as it said.
        """
        return cls(
            pool=join.pool,
            incarnation=incarnation,
            name=join.name,
            nonce=join.owner_nonce,
            address=join.address,
            capacity=join.capacity,
            labels=join.labels,
            process=join.process,
            hand_off=join.hand_off,
            reads_ns=min(join.reads_ns, longest_reads_ns),
            cache=join.cache,
        )


class Left(Record, frozen=True, kw_only=True):
    """An incarnation is gone: it left, its death was attested, or its hold ran out.

    Its ranges are free by `entries`.
    """

    pool: Name
    incarnation: Number
    entries: tuple[Entry, ...]


class Steering(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The orders of an operator for a pool, whatever its policy would do.

    Owners are named, so that an order outlives a restart; an eviction names the incarnation, since
    it concerns only that process.
    """

    cordoned: tuple[Name, ...] = ()
    """The owners that keep what they have, and are given nothing new."""
    drained: tuple[Name, ...] = ()
    """The owners that are planned for nothing."""
    evicted: tuple[Number, ...] = ()
    """Incarnations that are no longer renewed."""
    pins: tuple[tuple[Key, Name], ...] = ()
    """Keys, sorted, that go to the owners of these names while those are there."""
    frozen: bool = False
    """Only what has no owner is given one."""
    policy: str = ""
    """The name of the policy; empty for the one that the pool's kind has."""


UNSTEERED = Steering()


class Changed(Record, frozen=True, kw_only=True):
    """Entries laid over the pool's lease table, in order."""

    pool: Name
    entries: tuple[Entry, ...]
    handed: Number = 0
    """The number under which the state that the entries' owner now has was last served; or 0."""
    steering: Steering | None = None
    """The steering from here on; None if it stays as it is."""
    deleted: bool = False
    """The pool is gone, but for its numbers, which go on if it is created again. To older managers,
    which pass over this field, it is an empty pool; if one lets an owner join, it is there again.
    """
    renumbers: bool = False
    """The entries' owners have had the ranges all along, and only the numbers are new (P11)."""


LeaseRecord: TypeAlias = (
    TookOver | PromiseLowered | WaitedOut | PoolCreated | Joined | Left | Changed
)
AnyRecord: TypeAlias = LeaseRecord | AnyClusterRecord
"""All that is in a manager's journal: of leases, and of the clusters that it keeps."""


class MemberRecord(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """An incarnation that may hold ranges."""

    incarnation: Number
    name: Name
    nonce: Nonce
    address: Address
    capacity: float = 1.0
    labels: dict[str, str] = {}
    process: Process | None = None
    hand_off: Address | None = None
    reads_ns: Number = 0
    cache: Address | None = None


class PoolState(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """All of one pool that a later leader must know (P21)."""

    pool: Name
    kind: PoolKind
    split_points: tuple[Key, ...]
    next_number: Number
    next_incarnation: Number
    entries: tuple[Entry, ...]
    members: tuple[MemberRecord, ...]
    numbered: tuple[tuple[Name, Number, Nonce], ...]
    """The last incarnation and nonce of every name that is remembered (`LeaseTable.forget`)."""
    handed: tuple[Held, ...] = ()
    """Ranges that were granted with their state, by the number under which that was served last."""
    steering: Steering = UNSTEERED
    deleted: bool = False
    former: tuple[Held, ...] = ()
    """Ranges that were renumbered while they were held, by the number before."""
    reads_ns: Number = 0
    """The longest volume lease that any owner, past or present, may have given (V13)."""


class State(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The sum of all records up to an LSN."""

    leadership: Number = 0
    promise_ns: Number = 0
    waited_out: bool = False
    pools: tuple[PoolState, ...] = ()
    secret: Secret = b""
    older: JournalId = 0
    next_number: Number = 1
    """The number with which a pool begins that no pool here is the former of: higher than any that
    was deleted and forgotten, or lost with a journal's end.
    """
    next_incarnation: Number = 1
    clusters: tuple[ClusterState, ...] = ()
    versions_passed: Number = 0
    """The difference between versions of topologies and LSNs."""
    rivalries: Annotated[tuple[Rivalry, ...], msgspec.Meta(max_length=RIVALS_KEPT)] = ()
    over: JournalsOver = ()
    predecessors: Annotated[
        tuple[Predecessor, ...], msgspec.Meta(max_length=PREDECESSORS_KEPT)
    ] = ()
    """The journals that this one was restored from, the last one last."""
    realm: Realm = ""


JournalAction: TypeAlias = LogAction[AnyRecord, State]
JournalEvent: TypeAlias = LogEvent[AnyRecord, State]
