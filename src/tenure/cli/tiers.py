"""The tiers beside leases in a few lines: caches, entities, the store.

The commands and the dashboard say the same because they read the same answers: `owners` of a
pool, `ring` and `upkeep` of a cluster. What is summed up of them, or picked as the worst, is
decided here.
"""

from collections.abc import Iterable, Iterator
from urllib.parse import quote

import msgspec

from tenure.cli.asking import get
from tenure.cli.output import counted
from tenure.protocol.lease.answers import OwnerSummary
from tenure.protocol.lease.reports import EntityReport, VolumeReport, WaitingWrite
from tenure.protocol.topology.answers import ClustersListed, NodeSummary, RingRead, UpkeepRead

SHOWN_WRITES = 5
"""Writes that wait, of all owners of a pool: those that have waited for longest."""
MINUTE, HOUR = 60.0, 3600.0


class CacheTier(msgspec.Struct, frozen=True, kw_only=True):
    """All volumes of a pool's owners, in sum."""

    volumes: int
    readers: int
    leases: int
    unacknowledged: int
    writes: int
    loads: int
    waiting: tuple[tuple[str, WaitingWrite], ...]
    """Owners, and writes there that wait; the longest wait first."""


class EntityTier(msgspec.Struct, frozen=True, kw_only=True):
    """All entities of a pool's owners, in sum; a service is entities, too."""

    kinds: tuple[str, ...]
    owners: int
    instances: int
    turns: int
    waiting: int
    alarms: int
    longest: str
    longest_seconds: float
    longest_at: str
    sockets: int = 0
    kept_in: tuple[str, ...] = ()
    """The kinds of their stores."""


class StoreTier(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster of the store."""

    ring: RingRead
    upkeep: UpkeepRead


class PoolTiers(msgspec.Struct, frozen=True, kw_only=True):
    """The things that the owners of one pool run beside their leases."""

    pool: str
    caches: CacheTier | None = None
    entities: EntityTier | None = None


def tiers_of(pool: str, owners: Iterable[OwnerSummary]) -> PoolTiers:
    """Sums over the owners of a pool."""
    listed = tuple(owners)
    volumes = [(each.name, each.volume) for each in listed if each.volume is not None]
    running = [(each.name, each.entities) for each in listed if each.entities is not None]
    return PoolTiers(
        pool=pool,
        caches=_caches(volumes) if volumes else None,
        entities=_entities(running) if running else None,
    )


def _caches(volumes: list[tuple[str, VolumeReport]]) -> CacheTier:
    waiting = [(name, write) for name, volume in volumes for write in volume.waiting]
    waiting.sort(key=lambda each: -each[1].seconds)
    return CacheTier(
        volumes=len(volumes),
        readers=sum(each.readers for _, each in volumes),
        leases=sum(each.leases for _, each in volumes),
        unacknowledged=sum(each.unacknowledged for _, each in volumes),
        writes=sum(each.writes for _, each in volumes),
        loads=sum(each.loads for _, each in volumes),
        waiting=tuple(waiting[:SHOWN_WRITES]),
    )


def _entities(running: list[tuple[str, EntityReport]]) -> EntityTier:
    name, longest = max(running, key=lambda each: each[1].longest_seconds)
    return EntityTier(
        kinds=tuple(dict.fromkeys(each.kind for _, each in running)),
        owners=len(running),
        instances=sum(each.instances for _, each in running),
        turns=sum(each.turns for _, each in running),
        waiting=sum(each.waiting for _, each in running),
        alarms=sum(each.alarms for _, each in running),
        longest=longest.longest,
        longest_seconds=longest.longest_seconds,
        longest_at=name if longest.longest else "",
        sockets=sum(each.sockets for _, each in running),
        kept_in=tuple(dict.fromkeys(each.kept_in for _, each in running if each.kept_in)),
    )


def read_stores(leader: str, seconds: float) -> tuple[StoreTier, ...]:
    """All clusters that a leader has."""
    listed = get(leader, "/v1/clusters", seconds).read(ClustersListed).clusters
    paths = [f"/v1/clusters/{quote(each.name, safe='')}" for each in listed]
    return tuple(
        StoreTier(
            ring=get(leader, f"{path}/ring", seconds).read(RingRead),
            upkeep=get(leader, f"{path}/upkeep", seconds).read(UpkeepRead),
        )
        for path in paths
    )


# --- in words ---


def words_of_pool(tiers: PoolTiers) -> Iterator[str]:
    """Lines; none where there is only the lease table."""
    caches, entities = tiers.caches, tiers.entities
    if caches is not None:
        yield (
            f"caches: {counted(caches.volumes, 'volume')}, "
            f"{counted(caches.readers, 'reader')} with {counted(caches.leases, 'object lease')}, "
            f"{counted(caches.unacknowledged, 'invalidation')} not acknowledged, "
            f"{counted(caches.writes, 'write')} and {counted(caches.loads, 'load')} under way"
        )
        for owner, write in caches.waiting:
            yield (
                f"  write of {write.keys} at {owner} has waited {write.seconds:.1f} s "
                f"for {_for_whom(write)}"
            )
    if entities is not None:
        kept = f", kept in {', '.join(entities.kept_in)}" if entities.kept_in else ""
        yield (
            f"entities ({', '.join(entities.kinds)}): "
            f"{counted(entities.instances, 'instance')} on {counted(entities.owners, 'owner')}, "
            f"{counted(entities.turns, 'turn')} running, "
            f"{counted(entities.waiting, 'call')} waiting, "
            f"{counted(entities.alarms, 'alarm')} set, "
            f"{counted(entities.sockets, 'socket')} open{kept}"
        )
        if entities.longest:
            yield (
                f"  longest turn: {entities.longest}, for {entities.longest_seconds:.1f} s, "
                f"at {entities.longest_at}"
            )


def _for_whom(write: WaitingWrite) -> str:
    if not write.missing:
        return "its time: an earlier reader may still hit"
    more = write.missing - len(write.readers)
    return ", ".join(write.readers) + (f" and {more} more" if more > 0 else "")


def words_of_store(store: StoreTier) -> Iterator[str]:
    """Lines: the ring, and then what is not as it should be, or runs."""
    ring, upkeep = store.ring, store.upkeep
    connected = sum(node.connected for node in ring.nodes)
    yield (
        f"store {ring.cluster}: {counted(len(ring.nodes), 'node')}, {connected} connected, "
        f"{counted(len(ring.ranges), 'range')}, replicas {ring.placement}, "
        f"the heaviest node carries {ring.unevenness:.2f} of the mean"
    )
    if ring.trouble:
        yield f"  {ring.trouble}"
    for doubt in ring.doubted:
        yield f"  {doubt}"
    yield from _of_change(ring)
    yield from _of_nodes(ring, upkeep)
    for held in upkeep.hints:
        yield f"  {held.at} keeps {counted(held.count, 'write')} for {held.target}"
    if upkeep.hints_dropped:
        yield f"  {upkeep.hints_dropped} hints were too many and not kept: comparing brings them"
    yield from _of_seals(upkeep)


def _of_change(ring: RingRead) -> Iterator[str]:
    if not ring.change:
        return
    waits = f", waits for {', '.join(ring.waits_for)}" if ring.waits_for else ""
    yield f"  change: {ring.change}{waits}"
    for node in ring.nodes:
        if node.to_copy:
            yield f"  {node.name} has copied {node.copied / node.to_copy:.0%} of what it gains"


def _of_nodes(ring: RingRead, upkeep: UpkeepRead) -> Iterator[str]:
    doubted: dict[str, int] = {}
    for seen in upkeep.seen:
        if seen.is_convicted:
            doubted[seen.node] = doubted.get(seen.node, 0) + 1
    for node in ring.nodes:
        said = list(_of_node(node, doubted.get(node.name, 0)))
        if said:
            yield f"  {node.name} is {' and '.join(said)}"


def _of_node(node: NodeSummary, doubted: int) -> Iterator[str]:
    if not node.connected:
        yield "not connected to the managers"
    if doubted:
        yield f"considered down by {counted(doubted, 'node')}"
    if node.standing != "member":
        yield node.standing


def _of_seals(upkeep: UpkeepRead) -> Iterator[str]:
    ranges = counted(len(upkeep.ranges), "range")
    compared = [each for each in upkeep.ranges if each.compared_seconds is not None]
    if compared:
        oldest = max(each.compared_seconds or 0.0 for each in compared)
        differing = sum(each.differing for each in compared)
        yield (
            f"  repair: {len(compared)} of {ranges} compared within "
            f"{_shown(oldest)}; {differing} rows differed"
        )
    sealed = [each.sealed_seconds for each in upkeep.ranges if each.sealed_seconds is not None]
    if sealed:
        ago = _shown(max(sealed))
        yield f"  seals: {len(sealed)} of {ranges}, the oldest {ago} ago"
    held_back = dict.fromkeys(name for each in upkeep.ranges for name in each.held_back_by)
    if held_back:
        yield f"  nothing is sealed without {', '.join(held_back)}"


def _shown(seconds: float) -> str:
    if seconds < 2 * MINUTE:
        return f"{seconds:.0f} s"
    return f"{seconds / MINUTE:.0f} min" if seconds < 2 * HOUR else f"{seconds / HOUR:.1f} h"
