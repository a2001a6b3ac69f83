"""Answers to the questions of people and tools. This only reads."""

from collections.abc import Mapping
from typing import assert_never

from tenure.base.instants import Instant, in_seconds
from tenure.base.keys import PoolKind
from tenure.protocol.balance.load import share_of
from tenure.protocol.balance.metrics import capacities_of
from tenure.protocol.lease.answers import (
    Answer,
    HottestKey,
    HottestKeys,
    Impossible,
    LevelOfOwner,
    Owners,
    OwnerSummary,
    Pools,
    PoolSummary,
    TableAnswer,
    TableRange,
    spelled,
    spelled_end,
)
from tenure.protocol.lease.leader.events import (
    ListHottest,
    ListOwners,
    ListPools,
    Locate,
    Reading,
    ReadTable,
)
from tenure.protocol.lease.leader.explaining import explain, location, name_of, named
from tenure.protocol.lease.leader.pool import Pool
from tenure.protocol.lease.leader.session import NOT_RECALLED, Session
from tenure.protocol.lease.messages import Entry
from tenure.protocol.lease.steering_events import ExplainKey
from tenure.protocol.lease.table import NOBODY

HOTTEST_SHOWN = 10
MOST_SHOWN = 20
"""The most pools that a refusal lists, if a name is not there."""


def answer(now: Instant, pools: Mapping[str, Pool], question: Reading) -> Answer:
    """The answer to `question`, or a refusal that says what is wrong with it."""
    if isinstance(question, ListPools):
        return Pools(tuple(_pool_summary(pools[name]) for name in sorted(pools)))
    pool = pools.get(question.pool)
    if pool is None:
        return no_pool(pools, question.pool)
    match question:
        case ListOwners():
            return _owners(now, pool)
        case ListHottest():
            return _hottest(pool)
        case ReadTable(since=since, journal=journal):
            is_ours = journal in (None, pool.context.seal.journal)
            return _table(pool, since if is_ours else None)
        case Locate(key=key):
            return location(pool, key)
        case ExplainKey():
            return explain(now, pool, question)
        case _:
            assert_never(question)


def no_pool(pools: Mapping[str, Pool], name: str) -> Impossible:
    """The refusal that no pool has that name; beside it, the pools that exist."""
    names = sorted(pools)
    more = f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else ""
    there = ", ".join(names[:MOST_SHOWN]) + more or "none yet"
    return Impossible(f"there is no pool {name!r}", missing=True, there=f"there are: {there}")


def _pool_summary(pool: Pool) -> PoolSummary:
    table = pool.table
    return PoolSummary(
        name=table.pool,
        kind=table.kind,
        owners=len(table.members),
        ranges=len(table.rights),
        free_ranges=sum(right.owner == NOBODY for right in table.rights.values()),
        lsn=pool.publisher.log.last,
        split_points=tuple(spelled(point, table.kind) for point in table.split_points),
    )


def _owners(now: Instant, pool: Pool) -> Owners:
    sessions = sorted(pool.sessions.values(), key=lambda session: session.name)
    carried = pool.planner.load_watch.carried(now)
    levels = pool.planner.load_watch.levels_carried(now)
    return Owners(
        pool.table.pool,
        tuple(_owner_summary(now, pool, session, carried, levels) for session in sessions),
        tuple(session.connection for session in sessions),
    )


def _hottest(pool: Pool) -> HottestKeys:
    found = pool.planner.load_watch.hottest(HOTTEST_SHOWN)
    return HottestKeys(
        pool.table.pool,
        tuple(
            HottestKey(
                key=spelled(each.key, pool.table.kind),
                name=each.name or None,
                owner=name_of(pool, pool.table.rights[each.key].owner),
                rate=each.rate,
            )
            for each in found
        ),
    )


def _owner_summary(
    now: Instant,
    pool: Pool,
    session: Session,
    carried: Mapping[int, float],
    levels: Mapping[str, Mapping[int, float]],
) -> OwnerSummary:
    member = pool.table.members[session.incarnation]
    capacities = capacities_of(member.labels)
    held = pool.table.held_by(session.incarnation)
    return OwnerSummary(
        name=member.name,
        address=member.address,
        incarnation=member.incarnation,
        ranges=len(held),
        share=sum(share_of(item.range) for item in held),
        recalled_ranges=sum(deadline != NOT_RECALLED for deadline in session.recalled.values()),
        connected=session.connection is not None,
        hold_seconds=max(in_seconds(session.hold_until - now), 0.0),
        capacity=member.capacity,
        labels=member.labels,
        steering=_steering(pool, session),
        load=carried.get(session.incarnation, 0.0),
        same_address=pool.sessions.addresses.beside(session),
        volume=session.report.volume if session.report else None,
        entities=session.report.entities if session.report else None,
        levels={
            metric: LevelOfOwner(amounts.get(session.incarnation, 0.0), capacities[metric])
            for metric, amounts in levels.items()
            if metric in capacities
        },
    )


def _steering(pool: Pool, session: Session) -> str:
    steering = pool.table.steering
    if session.incarnation in steering.evicted:
        return "evicted"
    states = (
        ("cordoned", session.name in steering.cordoned),
        ("drained", session.name in steering.drained),
        ("stuck", bool(session.stuck)),
    )
    return ", ".join(word for word, is_so in states if is_so)


def _table(pool: Pool, since: int | None) -> TableAnswer:
    table, log = pool.table, pool.publisher.log
    changes = None if since is None else log.since(since, at_most=len(table.rights))
    entries = table.entries() if changes is None else changes
    return TableAnswer(
        pool=table.pool,
        journal=f"{pool.context.seal.journal:016x}",
        kind=table.kind,
        lsn=pool.context.history.lsn,
        snapshot=changes is None,
        entries=tuple(_table_range(entry, table.kind) for entry in entries),
        owners=tuple(named(member) for _, member in sorted(table.members.items())),
    )


def _table_range(entry: Entry, kind: PoolKind) -> TableRange:
    return TableRange(
        start=spelled(entry.start, kind),
        end=spelled_end(entry.end, kind),
        owner=entry.owner or None,
        number=entry.number,
        since=entry.since,
    )
