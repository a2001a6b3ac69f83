"""Explanations: why things are as they are in a pool, and what its policy would do. This only
reads.
"""

from collections.abc import Iterable, Iterator

from msgspec.structs import asdict

from tenure.base.instants import Instant, in_seconds
from tenure.base.keys import Key, PoolKind
from tenure.base.ranges import in_words
from tenure.protocol.balance.load import share_of
from tenure.protocol.balance.planning import Planned, Planning, PlanningFailed
from tenure.protocol.balance.policy import NOBODY, Plan, PlannedMove, is_outside
from tenure.protocol.lease.answers import (
    Flow,
    HeldBackMove,
    Impossible,
    KeyExplained,
    Location,
    NamedOwner,
    PastMove,
    PinnedKey,
    PlanRead,
    SteeringSummary,
    spelled,
    spelled_end,
)
from tenure.protocol.lease.leader.move_log import LoggedMove
from tenure.protocol.lease.leader.policies import policy_name
from tenure.protocol.lease.leader.pool import Pool
from tenure.protocol.lease.records import MemberRecord, Steering
from tenure.protocol.lease.steering_events import ExplainKey
from tenure.protocol.lease.table import LeaseTable

MOVES_TOLD = 100
"""The most moves of one key that are told: a longer list explains nothing."""

ANOTHER_POLICY = "choose another policy for the pool; the manager's log has the error"
ANOTHER_MANAGER = (
    "choose another policy for the pool at fault; unless that is one from outside, restart this "
    "manager then, because a policy that does not return cannot be ended otherwise"
)


def location(pool: Pool, key: Key) -> Location:
    """The range around a key, and its owner."""
    table = pool.table
    right, key_range = table.rights[key], table.rights.range_at(key)
    member = table.members.get(right.owner)
    return Location(
        pool=table.pool,
        key=spelled(key, table.kind),
        start=spelled(key_range.start, table.kind),
        end=spelled_end(key_range.end, table.kind),
        owner=named(member) if member else None,
        number=right.number,
        since=right.since,
    )


def explain(now: Instant, pool: Pool, question: ExplainKey) -> KeyExplained:
    """The owner of a key, and how the key came there."""
    key, table, log = question.key, pool.table, pool.move_log
    joined = log.joined.get(table.rights[key].owner)
    begins_at = now if log.begins_at is None else log.begins_at
    moves = [_past(now, move) for move, _ in zip(log.of(key), range(MOVES_TOLD), strict=False)]
    return KeyExplained(
        **asdict(location(pool, key)),
        joined_seconds_ago=None if joined is None else in_seconds(now - joined),
        planned=name_of(pool, pool.planner.plan[key]),
        pinned_to=dict(table.steering.pins).get(key),
        moves=tuple(moves),
        remembered_seconds=in_seconds(now - begins_at),
        stuck=tuple(
            session.name
            for session in pool.sessions.values()
            if session.stuck and any(key in held.range for held in session.letting_go)
        ),
        trouble=pool.planner.trouble,
    )


def _past(now: Instant, move: LoggedMove) -> PastMove:
    phase, reason = move.why or ("", "")
    return PastMove(
        seconds_ago=in_seconds(now - move.at),
        how=move.how,
        giver=move.giver_name or None,
        taker=move.taker_name or None,
        number=move.number,
        since=move.since,
        phase=phase,
        reason=reason,
    )


def planning_to_read(now: Instant, pool: Pool) -> Planning | Impossible:
    """The question for the policy; or the answer, if it is from outside and has just failed: it
    costs a process, and is asked again soon.
    """
    planner = pool.planner
    if planner.trouble and is_outside(planner.policy):
        name = policy_name(pool.table, pool.table.steering.policy)
        failed = PlanningFailed(planner.trouble)
        return no_plan(f"the policy {name} of the pool {pool.table.pool!r}", failed)
    return planner.planning(now)


def read_plan(pool: Pool, made: Planned | PlanningFailed) -> PlanRead | Impossible:
    """The moves that the policy would make, and the reason why it makes no more."""
    table = pool.table
    name = policy_name(table, table.steering.policy)
    if isinstance(made, PlanningFailed):
        return no_plan(f"the policy {name} of the pool {table.pool!r}", made)
    return PlanRead(
        pool=table.pool,
        policy=name,
        steering=summary_of(table.steering, table.kind),
        flows=flows(pool, made.moves, by_reason=True),
        held_back=(
            *(HeldBackMove(each.what, each.why) for each in made.plan.held_back),
            *_served_by_nobody(table, made.plan),
        ),
    )


def _served_by_nobody(table: LeaseTable, plan: Plan) -> Iterator[HeldBackMove]:
    """The ranges that stay free, whatever owners ask for."""
    free = (key_range for key_range, right in table.rights if right.owner == NOBODY)
    planned = (taker for each in free for _, taker in plan.owners.within(each))
    count = sum(taker == NOBODY for taker in planned)
    if count:
        what = f"{in_words(count)} without an owner"
        yield HeldBackMove(what, "there is no owner that may be given anything")


def no_plan(whose: str, failed: PlanningFailed) -> Impossible:
    """The refusal if the policy gives no plan: the reason, and what can be done."""
    if failed.hangs:
        return Impossible(f"{whose} was not asked: {failed.why}", way_out=ANOTHER_MANAGER)
    return Impossible(f"{whose} failed: {failed.why}", way_out=ANOTHER_POLICY)


def summary_of(steering: Steering, kind: PoolKind) -> SteeringSummary:
    """The steering of a pool of that kind, in short."""
    return SteeringSummary(
        cordoned=steering.cordoned,
        drained=steering.drained,
        evicted=steering.evicted,
        pins=tuple(PinnedKey(spelled(key, kind), owner) for key, owner in steering.pins),
        frozen=steering.frozen,
        policy=steering.policy,
    )


def flows(
    pool: Pool, moving: Iterable[PlannedMove], gone: int = 0, *, by_reason: bool = False
) -> tuple[Flow, ...]:
    """The changes, added up by giver and taker; the incarnation `gone` hands nothing over.

    An owner that should have nothing keeps ranges that no other can take: that is not a change.
    """
    sums: dict[tuple[str | None, str | None, bool, str, str], tuple[int, float]] = {}
    for change in moving:
        giver = pool.sessions.get(change.giver)
        goes = giver is None or giver.leaving or change.giver == gone
        if change.taker == NOBODY and not goes:
            continue
        taker = None
        if giver is not None and change.giver != gone:
            taker = pool.moving.taker(giver, change.taker)
        phase, reason = (by_reason and change.why) or ("", "")
        names = name_of(pool, change.giver), name_of(pool, change.taker)
        which = (*names, taker is not None, phase, reason)
        ranges, share = sums.get(which, (0, 0.0))
        sums[which] = ranges + 1, share + share_of(change.range)
    return tuple(
        Flow(giver, taker, ranges, share, with_state, phase, reason)
        for (giver, taker, with_state, phase, reason), (ranges, share) in sorted(
            sums.items(), key=lambda item: (-item[1][1], str(item[0]))
        )
    )


def named(member: MemberRecord) -> NamedOwner:
    """The name and incarnation of a member."""
    return NamedOwner(incarnation=member.incarnation, name=member.name, address=member.address)


def name_of(pool: Pool, incarnation: int) -> str | None:
    """The name of the owner; None for nobody."""
    member = pool.table.members.get(incarnation)
    return member.name if member else None
