"""Answers to what people and tools ask of a leader: reading only."""

from collections.abc import Mapping
from typing import assert_never

from tenure.base.instants import Instant, in_seconds
from tenure.base.keys import Key
from tenure.protocol.balance.load import share_of
from tenure.protocol.lease.leader.events import (
    Answer,
    Impossible,
    ListOwners,
    ListPools,
    Locate,
    Location,
    Owners,
    OwnerSummary,
    Pools,
    PoolSummary,
    Reading,
    ReadTable,
    Table,
)
from tenure.protocol.lease.leader.explaining import explain
from tenure.protocol.lease.leader.pool import Pool
from tenure.protocol.lease.leader.session import NOT_RECALLED, Session
from tenure.protocol.lease.messages import OwnerInfo
from tenure.protocol.lease.steering_events import ExplainKey
from tenure.protocol.lease.table import NOBODY, entry_of


def answer(now: Instant, pools: Mapping[str, Pool], question: Reading) -> Answer:
    """What `question` asks for, or what is wrong with it."""
    if isinstance(question, ListPools):
        return Pools(tuple(_pool_summary(pools[name]) for name in sorted(pools)))
    pool = pools.get(question.pool)
    if pool is None:
        return no_pool(pools, question.pool)
    match question:
        case ListOwners():
            sessions = sorted(pool.sessions.values(), key=lambda session: session.name)
            carried = pool.planner.load_watch.carried(now)
            owners = tuple(_owner_summary(now, pool, session, carried) for session in sessions)
            return Owners(question.pool, owners)
        case ReadTable(since=since, journal=journal):
            is_ours = journal in (None, pool.context.seal.journal)
            return _table(pool, since if is_ours else None)
        case Locate(key=key):
            return _location(pool, key)
        case ExplainKey():
            return explain(now, pool, question)
        case _:
            assert_never(question)


def no_pool(pools: Mapping[str, Pool], name: str) -> Impossible:
    """No pool has that name; the message lists those that there are."""
    there = ", ".join(sorted(pools)) or "none yet"
    return Impossible(f"there is no pool {name!r}; there are: {there}", missing=True)


def _pool_summary(pool: Pool) -> PoolSummary:
    table = pool.table
    free = sum(right.owner == NOBODY for right in table.rights.values())
    return PoolSummary(
        table.pool,
        table.kind,
        len(table.members),
        len(table.rights),
        free,
        pool.publisher.log.last,
        table.split_points,
    )


def _owner_summary(
    now: Instant, pool: Pool, session: Session, carried: Mapping[int, float]
) -> OwnerSummary:
    member = pool.table.members[session.incarnation]
    held = pool.table.held_by(session.incarnation)
    return OwnerSummary(
        member.name,
        member.address,
        member.incarnation,
        len(held),
        sum(share_of(item.range) for item in held),
        sum(deadline != NOT_RECALLED for deadline in session.recalled.values()),
        session.connection,
        max(in_seconds(session.hold_until - now), 0.0),
        member.capacity,
        member.labels,
        _steering(pool, session),
        carried.get(session.incarnation, 0.0),
        pool.addresses.beside(session),
    )


def _steering(pool: Pool, session: Session) -> str:
    steering = pool.table.steering
    if session.incarnation in steering.evicted:
        return "evicted"
    if session.name in steering.drained:
        return "drained"
    if session.name in steering.cordoned:
        return "cordoned"
    return "stuck" if session.stuck else ""


def _table(pool: Pool, since: int | None) -> Table:
    table, log = pool.table, pool.publisher.log
    changes = None if since is None else log.since(since, at_most=len(table.rights))
    entries = table.entries() if changes is None else changes
    owners = tuple(
        OwnerInfo(incarnation=member.incarnation, name=member.name, address=member.address)
        for _, member in sorted(table.members.items())
    )
    lsn = pool.context.history.lsn
    journal = pool.context.seal.journal
    return Table(table.pool, journal, table.kind, lsn, changes is None, entries, owners)


def _location(pool: Pool, key: Key) -> Location:
    rights = pool.table.rights
    right = rights[key]
    member = pool.table.members.get(right.owner)
    owner = (
        OwnerInfo(incarnation=member.incarnation, name=member.name, address=member.address)
        if member
        else None
    )
    return Location(pool.table.pool, entry_of(rights.range_at(key), right), owner)
