"""Why things are as they are in a pool, and what its policy would do: reading only."""

from collections.abc import Iterator

from tenure.base.instants import Instant, in_seconds
from tenure.base.rangemap import RangeMap
from tenure.protocol.balance.load import share_of
from tenure.protocol.balance.policy import NOBODY, Plan, PlannedMove, changes
from tenure.protocol.lease.leader.move_log import LoggedMove
from tenure.protocol.lease.leader.policies import policy_name
from tenure.protocol.lease.leader.pool import Pool
from tenure.protocol.lease.messages import OwnerInfo
from tenure.protocol.lease.steering_events import (
    ExplainKey,
    Flow,
    HeldBackMove,
    KeyExplained,
    PastMove,
    PlanRead,
    ReadPlan,
)

MOVES_TOLD = 100
"""Of one key: more is no explanation."""


def explain(now: Instant, pool: Pool, question: ExplainKey) -> KeyExplained:
    """Who has a key, and how that came."""
    key, table, log = question.key, pool.table, pool.move_log
    right, key_range = table.rights[key], table.rights.range_at(key)
    member = table.members.get(right.owner)
    joined = log.joined.get(right.owner)
    begins_at = now if log.begins_at is None else log.begins_at
    moves = [_past(now, move) for move, _ in zip(log.of(key), range(MOVES_TOLD), strict=False)]
    return KeyExplained(
        pool=table.pool,
        start=key_range.start,
        end=key_range.end,
        number=right.number,
        since=right.since,
        owner=OwnerInfo(member.incarnation, member.name, member.address) if member else None,
        joined_seconds_ago=None if joined is None else in_seconds(now - joined),
        planned=name_of(pool, pool.plan[key]),
        pinned_to=dict(table.steering.pins).get(key),
        moves=tuple(moves),
        remembered_seconds=in_seconds(now - begins_at),
    )


def _past(now: Instant, move: LoggedMove) -> PastMove:
    phase, reason = move.why or ("", "")
    return PastMove(
        in_seconds(now - move.at),
        move.how,
        move.giver_name or None,
        move.taker_name or None,
        move.number,
        move.since,
        phase,
        reason,
    )


def read_plan(now: Instant, pool: Pool, question: ReadPlan) -> PlanRead:
    """What the policy would do now, and why not more."""
    steering = pool.table.steering
    plan = pool.policy(pool.situation(now))
    return PlanRead(
        question.pool,
        policy_name(pool.table, steering.policy),
        steering,
        flows(pool, changes(pool.table.rights, plan), by_reason=True),
        tuple(HeldBackMove(each.what, each.why) for each in plan.held_back),
    )


def because(pool: Pool, plan: Plan, otherwise: RangeMap[int]) -> Iterator[PlannedMove]:
    """What moves by `plan`, and would go elsewhere, or stay, by `otherwise`."""
    for change in changes(pool.table.rights, plan):
        for piece, taker in otherwise.within(change.range):
            if taker != change.taker:
                yield change._replace(range=piece)


def flows(
    pool: Pool, moving: Iterator[PlannedMove], gone: int = 0, *, by_reason: bool = False
) -> tuple[Flow, ...]:
    """The changes, added up by who gives to whom; `gone` hands nothing over.

    Who is planned for nothing keeps what nobody can take: that is no change.
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


def name_of(pool: Pool, incarnation: int) -> str | None:
    """What the owner is called; None for nobody."""
    member = pool.table.members.get(incarnation)
    return member.name if member else None
