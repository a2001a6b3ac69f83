"""How each canary of the store breaks its rule: the replacements of methods."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.base.ranges import WHOLE, KeyRange
from tenure.columns.node_replica import NodeReplica
from tenure.columns.range_horizons import RangeHorizons
from tenure.protocol.replication import admission, parts
from tenure.protocol.replication.admission import Attempt, Mutation, Refused, mark_of
from tenure.protocol.replication.adoption import Adopting
from tenure.protocol.replication.cells import is_live
from tenure.protocol.replication.comparing import Comparing
from tenure.protocol.replication.copies import RangeHorizon
from tenure.protocol.replication.copying import Copying
from tenure.protocol.replication.merging import StateMerge
from tenure.protocol.replication.messages import (
    HorizonPromised,
    PartsTold,
    PromiseFence,
    PromiseHorizon,
    StateTold,
)
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.pages import Cursors, Slice
from tenure.protocol.replication.reading import Reading
from tenure.protocol.replication.records import RowRecord
from tenure.protocol.replication.replica import ReplicaPart
from tenure.protocol.replication.request import ReplicaRequest
from tenure.protocol.replication.sealing import RangeUpkeep
from tenure.protocol.replication.sections import MergedSection, SaidPart, merge_sections
from tenure.protocol.replication.states import RowState
from tenure.protocol.replication.steps import (
    ApplyMutation,
    HorizonRaised,
    MutationDone,
    RaisePromised,
    RaiseRowFence,
    RaiseSealed,
    StateRead,
    SweepSome,
    Swept,
)
from tenure.protocol.replication.versions import VERSION_BYTES, version_of
from tenure.protocol.replication.writing import RowWriting
from tenure.protocol.topology.change import finish, join
from tenure.protocol.topology.cluster import LedCluster
from tenure.protocol.topology.noted import TopologyKind
from tenure.protocol.topology.records import NodeId, Replicas

LAG_US = 5_000_000
original_sweep: Callable[..., Swept] = NodeReplica.__dict__["_sweep"]
original_by_time = parts.__dict__["_by_time"]
original_apply: Callable[..., MutationDone] = NodeReplica.__dict__["_apply"]
original_needs: Callable[..., Any] = ReplicaRequest.__dict__["needs"]
original_refusal: Callable[..., Refused | None] = admission.__dict__["refusal_of"]
original_within: Callable[..., tuple[RangeHorizon, ...]] = RangeHorizons.__dict__["within"]


def always(*_: object, **__: object) -> bool:
    return True


def never(*_: object, **__: object) -> bool:
    return False


def no_doubt(*_: object, **__: object) -> None:
    """Whatever a node tells counts."""


def none_of_them(*_: object, **__: object) -> tuple[Any, ...]:
    return ()


def version_alone(family: str, key: bytes, entry: bytes) -> bytes:
    """A write is known again by its version."""
    del family, key
    return entry[:VERSION_BYTES]


def old_list_alone(self: Replicas) -> tuple[tuple[NodeId, ...], ...]:
    """The level is needed in the old list only, in the joint step."""
    return (self.old,)


def nobody(old: Sequence[NodeId]) -> int:
    """A node finishes the joint step at once."""
    del old
    return 0


def anybody(old: Sequence[NodeId]) -> int:
    """One replica of each old list is enough."""
    del old
    return 1


def not_wiped(self: Copying, ranges: list[KeyRange]) -> None:
    """Old contents stay."""
    del ranges
    self.keep_record()


def any_attempt_repeated(self: NodeReplica, step: ApplyMutation) -> MutationDone:
    """Every attempt is merged wherever it lies."""
    attempt = msgspec.structs.replace(step.attempt, kind="merge")
    return original_apply(self, msgspec.structs.replace(step, attempt=attempt))


def the_whole_of_it(self: Mutation, version: bytes, puts: object) -> Iterator[bytes]:
    """A hint leaves the trace of the whole write, wherever it lies."""
    del puts
    return self.whole_mark(version)


def marked_anyway(self: StateMerge, family: str, key: bytes, marker: bytes) -> None:
    """A mended marker leaves a trace, whatever is above it."""
    self._marks[mark_of(family, key, marker)] = None


def durable_already(self: NodeContext, then: Callable[[], None]) -> None:
    """A change is acknowledged before it is durable."""
    del self
    then()


def row_durable_already(self: NodeContext, table: str, key: Key, then: Callable[[], None]) -> None:
    """A row that was read is returned before it is durable."""
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
    """Tombstones are not listed in the order of time."""
    return (each for each in original_by_time(cursors, section, part) if is_live(each[2], b""))


# --- the fence ---


def merged_whatever_the_adoption(
    self: RowState, entry: bytes, adoption: tuple[int, int], sealed: int
) -> bool:
    """A state of an earlier adoption counts like any other."""
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


# --- seals ---


def those_that_are_up(self: RangeUpkeep) -> tuple[NodeId, ...]:
    """A replica that is down holds no seal back."""
    away = self._context.down
    return tuple(node for node in self._replicas.old if node not in away)


def compared_before_promising(self: RangeUpkeep, now: Instant) -> None:
    """Replicas are compared first, and promise when they are told of the seal."""
    self._time = self.time_to_seal(list(self._heard.values()))
    self._compare(now)


def promised_before_durable(self: ReplicaPart, sender: NodeId, body: PromiseHorizon) -> None:
    """A promise is told before it is durable."""

    def done(result: HorizonRaised) -> None:
        self._context.tell(sender, HorizonPromised(ticket=body.ticket, time=result.time))

    self._context.run(RaisePromised(body.range, body.time), done)


def sealed_by_its_promise(self: NodeReplica, step: RaisePromised) -> HorizonRaised:
    """A replica that promises purges, though others may not have what it has."""
    return self._seal(RaiseSealed(step.range, step.time))


def hints_pass_the_horizon(attempt: Attempt, *others: Any, **named: Any) -> Refused | None:
    """Hints are taken whatever was promised."""
    refused = original_refusal(attempt, *others, **named)
    is_late_hint = attempt.kind == "merge" and isinstance(refused, admission.Late)
    return None if is_late_hint else refused


def hints_pass_the_fence(attempt: Attempt, *others: Any, **named: Any) -> Refused | None:
    """Hints are taken whoever has adopted the row."""
    refused = original_refusal(attempt, *others, **named)
    is_hint_of_another = attempt.kind == "merge" and isinstance(refused, admission.Outranked)
    return None if is_hint_of_another else refused


def merged_whatever_was_sealed(said: Sequence[SaidPart]) -> MergedSection:
    """The answer of a replica that has not heard of a seal counts like any other."""
    return merge_sections([SaidPart(each.part, 0) for each in said])


def without_promises(self: RangeHorizons, key_range: KeyRange) -> tuple[RangeHorizon, ...]:
    """A node that joins is not told what was promised."""
    found = original_within(self, key_range)
    return tuple(RangeHorizon(each.range, 0, each.sealed) for each in found)


def without_seals(self: RangeHorizons, key_range: KeyRange) -> tuple[RangeHorizon, ...]:
    """A node that joins is not told what was sealed."""
    found = original_within(self, key_range)
    return tuple(RangeHorizon(each.range, each.promised, 0) for each in found)


# --- more of adoptions ---


def fence_before_durable(self: ReplicaPart, sender: NodeId, body: PromiseFence) -> None:
    """A fence is told before it is durable."""

    def done(result: StateRead) -> None:
        answer = StateTold(ticket=body.ticket, state=result.state, refused=result.refused)
        self._context.tell(sender, answer)

    step = RaiseRowFence(body.table, body.key, body.number, body.journal, body.attempt)
    self._context.run(step, done)


def short_while_filling(self: Adopting) -> bool:
    """The short way is taken though a node fills."""
    return self.is_first


def short_again(self: Adopting) -> bool:
    """The short way is taken on a later try, too."""
    return self.replicas.phase != "filling"


def replaces_the_other_attempt(self: StateMerge, record: RowRecord) -> bool:
    """The one of two tries of an owner that arrives last counts."""
    state = self._state
    is_other = (state.adopted, state.attempt) != (record.adopted, record.attempt)
    return is_other and 0 < state.adopted >= record.adopted


def mended_whatever_the_adoption(
    self: StateMerge, entry: bytes, record: RowRecord, sealed: int
) -> bool:
    """A mend from before an adoption counts like any other."""
    del self, record
    return version_of(entry).time > sealed


# --- the joint step ---


def filled_is_done(self: LedCluster) -> None:
    """The new lists count as soon as all is copied."""
    version = self.next_version
    self._set(finish(join(self.topology, version), version), TopologyKind.CHANGE_DONE, "")


def written_in_one_list(self: ReplicaRequest, replicas: Replicas) -> Any:
    """A write needs the old list only, in the joint step."""
    needs = original_needs(self, replicas)
    return needs[:1] if needs and isinstance(self, RowWriting) else needs


def read_in_one_list(self: ReplicaRequest, replicas: Replicas) -> Any:
    """A read needs the old list only, in the joint step."""
    needs = original_needs(self, replicas)
    return needs[:1] if needs and isinstance(self, Reading) else needs


# --- gossip ---


def nobody_goes_back(*_: object) -> None:
    """A counter that is lower than it was means nothing."""
