"""`tenure status`: how all the managers are, their journal, and each tier that there is.

Every manager that is known is asked, at once: the one that does not answer is what one wants to
see. A leader that a standby names is asked too, where it was not in the list.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from tenure.cli.asking import ASKING, AskingOptions, get, path, urls
from tenure.cli.output import counted, put, say, show
from tenure.cli.tiers import (
    PoolTiers,
    StoreTier,
    read_stores,
    tiers_of,
    words_of_pool,
    words_of_store,
)
from tenure.cli.waiting import waiting_for
from tenure.errors import NoManager, TenureError
from tenure.manager.answers import JournalAnswer, StatusAnswer
from tenure.protocol.lease.answers import Owners, Pools, PoolSummary

NONE = "-"
TIMEOUT_SECONDS = 3.0
"""A manager that is well answers at once, one whose etcd is not, in half of that."""


class AskedManager(msgspec.Struct, frozen=True):
    """The answer of one manager, or why there was none."""

    url: str
    status: StatusAnswer | None = None
    error: str | None = None
    lag: int | None = None
    """How many records it has read less than the leader has written; None if that is not known."""
    ahead_seconds: float | None = None
    """How far its clock is ahead of the one here; None if it does not tell."""


class Overview(msgspec.Struct, frozen=True):
    """All managers, and which of them leads."""

    leader: str | None
    managers: tuple[AskedManager, ...]
    pools: tuple[PoolSummary, ...] = ()
    """The pools of the leader."""
    tiers: tuple[PoolTiers, ...] = ()
    """The things that the owners of each pool run beside their leases."""
    stores: tuple[StoreTier, ...] = ()
    why_no_tiers: str = ""
    """The reason why the leader did not report pools and clusters, if it did not."""


def status(*, how: AskingOptions = ASKING) -> None:
    """Show the health of the managers, their journal, the pools, caches, entities and the store."""
    managers = urls(how.manager)
    with waiting_for(managers):
        overview = with_tiers(with_lags(ask_all(managers)))
    if how.json:
        put(msgspec.json.encode(overview).decode())
    else:
        _show_managers(overview.managers)
        _show_rest(overview)
    if not any(each.status for each in overview.managers):
        why = "; ".join(f"{each.url}: {each.error}" for each in overview.managers)
        raise NoManager(
            f"no manager answered: {why}. Start one with `tenure manager`, or name others with "
            "--manager URL"
        )


def ask_all(managers: Sequence[str]) -> list[AskedManager]:
    """Ask `managers` for their status, and the leader that one of them names."""
    known = list(dict.fromkeys(url.rstrip("/") for url in managers))
    with ThreadPoolExecutor(max_workers=len(known)) as threads:
        asked = list(threads.map(_ask, known))
    named = dict.fromkeys(each.status.leader for each in asked if each.status)
    said = {each.status.url for each in asked if each.status}
    return asked + [_ask(url) for url in named if url and url not in said and url not in known]


def _ask(url: str) -> AskedManager:
    asked_at = time.time()
    try:
        status = get(url, "/v1/status", TIMEOUT_SECONDS).read(StatusAnswer)
    except TenureError as error:
        return AskedManager(url, error=str(error))
    here = (asked_at + time.time()) / 2
    return AskedManager(url, status, ahead_seconds=status.clock - here if status.clock else None)


def with_lags(asked: Sequence[AskedManager]) -> Overview:
    """The overview: the URL of the leader, and how far the other managers are behind."""
    leading = [each.status for each in asked if each.status and each.status.proven]
    leader = max(leading, key=lambda each: each.leadership, default=None)
    if leader is None:
        return Overview(None, tuple(asked))
    return Overview(leader.url, tuple(_with_lag(each, leader) for each in asked))


def _with_lag(asked: AskedManager, leader: StatusAnswer) -> AskedManager:
    if asked.status is None:
        return asked
    return msgspec.structs.replace(asked, lag=max(leader.lsn - asked.status.lsn, 0))


def with_tiers(overview: Overview) -> Overview:
    """Return `overview` with what the leader says of its pools and clusters."""
    leader = overview.leader
    if leader is None:
        return overview
    try:
        pools = get(leader, "/v1/pools", TIMEOUT_SECONDS).read(Pools).pools
        owners = [
            get(leader, path(pool.name, "owners"), TIMEOUT_SECONDS).read(Owners) for pool in pools
        ]
        stores = read_stores(leader, TIMEOUT_SECONDS)
    except TenureError as error:  # it no longer leads, or the token is not a viewer's
        return msgspec.structs.replace(overview, why_no_tiers=str(error))
    tiers = tuple(tiers_of(each.pool, each.owners) for each in owners)
    return msgspec.structs.replace(overview, pools=pools, tiers=tiers, stores=stores)


def _show_managers(managers: Sequence[AskedManager]) -> None:
    columns = (
        *("manager", "role", "leadership", "beat", "LSN", "lag", "grants"),
        *("connections", "preset", "version", "protocol"),
    )
    can_go = ("version", "preset", "protocol", "connections", "beat", "LSN")
    show(columns, (_row(each) for each in managers), empty="", can_go=can_go)


def _row(asked: AskedManager) -> tuple[object, ...]:
    answer = asked.status
    if answer is None:
        return (asked.url, "does not answer", *[NONE] * 9)
    return (
        answer.url,
        answer.role,
        answer.leadership or NONE,
        answer.beat,
        answer.lsn,
        NONE if asked.lag is None else asked.lag,
        _grants(answer),
        answer.connections,
        answer.preset,
        answer.version,
        max(answer.protocols),
    )


def _grants(answer: StatusAnswer) -> str:
    if answer.role != "leading":
        return NONE
    if answer.is_over or answer.rivals:
        return "nothing"
    seconds = answer.grants_in_seconds
    return f"begin in {seconds:.0f} s" if seconds else "ranges"


def _show_rest(overview: Overview) -> None:
    answers = [each.status for each in overview.managers if each.status]
    if not answers:
        return
    answers.sort(key=lambda each: each.url != overview.leader)
    first = answers[0]
    if overview.leader is None:
        say("no manager leads")
    rows: list[tuple[str, object]] = [("leader", overview.leader or NONE)]
    rows += [("journal", url) for url in dict.fromkeys(each.journal for each in answers)]
    rows += [row for each in answers for row in _rival_rows(each)]
    rows += _journal_rows(first.journal_health)
    rows += [(f"pool {pool} is not balanced", why) for pool, why in first.troubles.items()]
    for version, count in first.connections_by_protocol.items():
        rows.append((f"connections of protocol {version}", count))
    rows += _tier_rows(overview)
    rows += [(f"event: {what}", count) for what, count in first.events.items()]
    show(("what", "value"), rows, empty="")


def _rival_rows(answer: StatusAnswer) -> Iterator[tuple[str, object]]:
    if answer.realm:
        yield "realm", answer.realm
    if answer.is_over:
        yield "journal is over", f"{answer.url} answers nobody; start it on the one that goes on"
    for rival in answer.rivals:
        stopped = "grants and renews" if rival.granted else "grants"
        where = f" in the pool {rival.pool}" if rival.pool else ""
        what = f"{rival.manager} leads another, {rival.journal}, so {answer.url} {stopped} nothing"
        yield "TWO JOURNALS", f"{what}{where}; decide with tenure resolve --keep URL"


def _tier_rows(overview: Overview) -> Iterator[tuple[str, object]]:
    if overview.why_no_tiers:
        yield "pools and store", f"not told: {overview.why_no_tiers}"
    for pool, tiers in zip(overview.pools, overview.tiers, strict=True):
        free = f", {pool.free_ranges} without an owner" if pool.free_ranges else ""
        yield (
            f"pool {pool.name}",
            f"{counted(pool.owners, 'owner')}, {counted(pool.ranges, 'range')}{free}",
        )
        for line in words_of_pool(tiers):
            yield f"pool {pool.name}", line.strip()
    for store in overview.stores:
        for line in words_of_store(store):
            name = f"store {store.ring.cluster}"
            yield name, line.strip().removeprefix(f"{name}: ")


def _journal_rows(health: JournalAnswer) -> Iterator[tuple[str, object]]:
    if health.error:
        yield "journal is not well", health.error
    if health.file_bytes is not None:
        yield "journal file", f"{health.file_bytes:,} bytes"
    for member in health.members:
        role = "leader" if member.is_leader else "follower"
        well = f"{role}, etcd {member.version}, {member.db_bytes:,} bytes"
        yield f"etcd {member.endpoint}", member.error or well
    for alarm in health.alarms:
        yield "etcd alarm", alarm
