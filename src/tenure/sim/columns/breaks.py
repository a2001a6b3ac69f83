"""How each canary of the store breaks its rule: what stands in the place of a method."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.base.ranges import WHOLE, KeyRange
from tenure.columns.node_replica import NodeReplica
from tenure.protocol.replication import parts
from tenure.protocol.replication.adoption import Adopting
from tenure.protocol.replication.cells import is_live
from tenure.protocol.replication.comparing import Comparing
from tenure.protocol.replication.copying import Copying
from tenure.protocol.replication.merging import StateMerge
from tenure.protocol.replication.messages import PartsTold
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.pages import Cursors, Slice
from tenure.protocol.replication.records import RowRecord
from tenure.protocol.replication.states import RowState
from tenure.protocol.replication.steps import (
    ApplyMutation,
    HorizonRaised,
    MutationDone,
    RaisePromised,
    SweepSome,
    Swept,
)
from tenure.protocol.replication.versions import VERSION_BYTES, version_of
from tenure.protocol.topology.records import NodeId, Replicas

LAG_US = 5_000_000
original_sweep: Callable[..., Swept] = NodeReplica.__dict__["_sweep"]
original_by_time = parts.__dict__["_by_time"]
original_apply: Callable[..., MutationDone] = NodeReplica.__dict__["_apply"]


def always(*_: object, **__: object) -> bool:
    return True


def never(*_: object, **__: object) -> bool:
    return False


def none_of_them(*_: object, **__: object) -> tuple[Any, ...]:
    return ()


def version_alone(family: str, key: bytes, entry: bytes) -> bytes:
    """A write is known again by its version."""
    del family, key
    return entry[:VERSION_BYTES]


def old_list_alone(self: Replicas) -> tuple[tuple[NodeId, ...], ...]:
    """In the joint step the level is needed in the old list only."""
    return (self.old,)


def nobody(old: Sequence[NodeId]) -> int:
    """A node is through with the joint step at once."""
    del old
    return 0


def anybody(old: Sequence[NodeId]) -> int:
    """One replica of each old list is enough."""
    del old
    return 1


def not_wiped(self: Copying, ranges: list[KeyRange]) -> None:
    """What was there stays."""
    del ranges
    self.keep_record()


def any_attempt_repeated(self: NodeReplica, step: ApplyMutation) -> MutationDone:
    """Every attempt is merged wherever it lies."""
    attempt = msgspec.structs.replace(step.attempt, kind="merge")
    return original_apply(self, msgspec.structs.replace(step, attempt=attempt))


def durable_already(self: NodeContext, then: Callable[[], None]) -> None:
    """What was changed is answered before it is durable."""
    del self
    then()


def row_durable_already(self: NodeContext, table: str, key: Key, then: Callable[[], None]) -> None:
    """What was read is answered before it is durable."""
    del self, table, key
    then()


def all_the_same(told: PartsTold) -> tuple[Any, ...]:
    """Digests are not compared."""
    del told
    return ()


def certain_to_the_last(lasts: Sequence[bytes | None], *, is_reverse: bool) -> bytes | None:
    """A page is certain up to the highest place where a part ends."""
    if None in lasts:
        return None
    ends = [last for last in lasts if last is not None]
    return min(ends) if is_reverse else max(ends)


def live_by_time(
    cursors: Cursors, section: bytes, part: Slice
) -> Iterator[tuple[bytes, bytes, bytes]]:
    """In the order of time tombstones are not listed."""
    return (each for each in original_by_time(cursors, section, part) if is_live(each[2], b""))


# --- the fence ---


def merged_whatever_the_adoption(
    self: RowState, entry: bytes, adoption: tuple[int, int], sealed: int
) -> bool:
    """What a state of an earlier adoption says counts like any other."""
    del adoption
    return self.sealed >= sealed or version_of(entry).time > sealed


def quorum_is_all(self: Adopting) -> bool:
    """The short way is taken where those that have answered have the same."""
    states = list(self.states.values())
    return all(state.entries == states[0].entries for state in states)


# --- upkeep ---


def compared_already(self: Comparing, now: Instant) -> None:
    """Replicas are not compared."""
    self.end(now, is_whole=True)


def promised_nothing(self: NodeReplica, step: RaisePromised) -> HorizonRaised:
    """A replica says that it promises, and goes on as before."""
    del self
    return HorizonRaised(step.time)


def swept_by_time(self: NodeReplica, step: SweepSome) -> Swept:
    """The sweeper looks at all that is old."""
    self.sealed.assign(WHOLE, max(0, self._clock() - LAG_US))
    return original_sweep(self, step)


def known_or_not(self: StateMerge, entry: bytes, record: RowRecord, sealed: int) -> bool:
    """A state counts below the sealed horizon as above it."""
    del sealed
    return self._state.is_known_to_count(entry, (record.adopted, record.attempt), 0)


def same_whatever_the_adoption(told: PartsTold) -> tuple[Any, ...]:
    """Adoptions are not compared."""
    return told.digest, told.sealed
