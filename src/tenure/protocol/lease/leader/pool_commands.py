"""Making and deleting pools: when an operator's command changes nothing, and why."""

from collections.abc import Mapping

from tenure.base.instants import Instant, in_seconds
from tenure.base.names import shown, wrong_with_name
from tenure.protocol.lease.answers import Impossible, PoolMade
from tenure.protocol.lease.leader.events import CreatePool
from tenure.protocol.lease.leader.pool import Pool
from tenure.protocol.lease.limits import POOLS_PER_MANAGER, wrong_with_points
from tenure.protocol.lease.records import PoolCreated

FULL = (
    f"there are {POOLS_PER_MANAGER} pools, and no manager keeps more; delete one with "
    "`tenure pool delete`"
)


def wrong_name(pool: str) -> str | None:
    """Why no pool can have that name, if so."""
    why = wrong_with_name(pool)
    return why and f"{shown(pool)} cannot be a pool's name: {why}"


def instead_of_creating(
    pools: Mapping[str, Pool], question: CreatePool
) -> PoolMade | Impossible | None:
    """The answer if no pool is to be made: it is there, or cannot be. None if it is to be made."""
    pool = pools.get(question.pool)
    if pool is None:
        why = wrong_name(question.pool) or wrong_with_points(question.split_points)
        if len(pools) >= POOLS_PER_MANAGER:
            why = why or FULL
        return None if why is None else Impossible(why)
    table = pool.table
    if record_for(question) == PoolCreated(
        pool=table.pool, kind=table.kind, split_points=table.split_points
    ):
        return PoolMade(question.pool, question.kind, created=False)
    return Impossible(
        f"the pool {question.pool!r} exists already, {table.kind} and with "
        f"{len(table.split_points)} split points; choose another name"
    )


def record_for(question: CreatePool) -> PoolCreated:
    """The record that makes the pool."""
    return PoolCreated(pool=question.pool, kind=question.kind, split_points=question.split_points)


def why_not_deleted(now: Instant, name: str, pool: Pool) -> Impossible | None:
    """Why the pool cannot be deleted now: somebody may hold something, or read it."""
    if pool.sessions:
        sessions = pool.sessions.values()
        last = in_seconds(max(session.hold_until for session in sessions) - now)
        first = shown(min(session.name for session in sessions))
        more = f" and {len(sessions) - 1} more" if len(sessions) > 1 else ""
        return Impossible(
            f"the pool {name!r} has owners: {first}{more}; what is known of those that are "
            f"gone ends in {max(last, 0.0):.1f} s at most"
        )
    quiet_ns = pool.quiets.longest_ns(now)
    if quiet_ns:
        return Impossible(
            f"caches may still hit what owners of the pool {name!r} let them read that died; "
            f"that ends in {in_seconds(quiet_ns):.1f} s"
        )
    return None
