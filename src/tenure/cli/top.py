"""`tenure top`, live in the terminal: who has how much to do, and what just happened.

It shows a pool with the caches and entities of its owners, and the clusters of the store.
"""

import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from tenure.cli.asking import ASKING, AskingOptions, PoolName, get, path, urls
from tenure.cli.events import words
from tenure.cli.following import leader_of, recent
from tenure.cli.output import put, say
from tenure.cli.tiers import (
    PoolTiers,
    StoreTier,
    read_stores,
    tiers_of,
    words_of_pool,
    words_of_store,
)
from tenure.cli.waiting import waiting_for
from tenure.errors import ConfigurationError, NoManager, UsageError
from tenure.manager.answers import StatusAnswer
from tenure.manager.live import LiveEvent
from tenure.observe.events import printable
from tenure.protocol.lease.answers import Owners, OwnerSummary, Pools

if TYPE_CHECKING:
    from rich.console import Group

ASK_SECONDS = 5.0
EVENTS = 8
BAR = 24
MARGIN = 6
"""Lines of the screen beside owners and events."""


class Top(msgspec.Struct, frozen=True):
    """A pool at one moment."""

    at: float
    leader: str
    pool: str
    lsn: int
    owners: tuple[OwnerSummary, ...]
    """The one with the most to do first."""
    load: float
    imbalance: float
    """The most that an owner has to do, over the mean; both by capacity."""
    lookups: int
    lookup_lag: int
    events: tuple[LiveEvent, ...]
    """The latest last."""
    tiers: PoolTiers
    stores: tuple[StoreTier, ...]
    """All clusters of the store."""


def top(
    pool: PoolName | None = None,
    /,
    *,
    every: float = 1.0,
    once: Annotated[bool, Parameter(negative="")] = False,
    how: AskingOptions = ASKING,
) -> None:
    """Watch a pool: its owners by load, their caches and entities, the store, and what happens.

    Without a name it shows the only pool.

    Parameters
    ----------
    every
        Seconds between two looks.
    once
        Look once, and end.
    """
    if not every > 0:
        raise ConfigurationError(f"--every is a number of seconds above 0, not {every:g}")
    managers = urls(how.manager)
    pool = _only_pool(managers) if pool is None else pool
    if once or how.json or not sys.stdout.isatty():
        _print(managers, pool, every, once=once, as_json=how.json)
    else:
        _draw(managers, pool, every)


def _only_pool(managers: Sequence[str]) -> str:
    """The only pool; empty where there is none. Raises UsageError where there are several."""
    with waiting_for(managers):
        found = get(leader_of(managers), "/v1/pools", ASK_SECONDS).read(Pools)
    names = [each.name for each in found.pools]
    if len(names) > 1:
        raise UsageError(f"there are {len(names)} pools: name one of {', '.join(names[:10])}")
    return names[0] if names else ""


def look(managers: Sequence[str], pool: str) -> Top:
    """How a pool is now, or without one the store alone. Raises NoManager where nobody leads."""
    leader = leader_of(managers)
    status = get(leader, "/v1/status", ASK_SECONDS).read(StatusAnswer)
    found: tuple[OwnerSummary, ...] = ()
    if pool:
        found = get(leader, path(pool, "owners"), ASK_SECONDS).read(Owners).owners
    stores = read_stores(leader, ASK_SECONDS)
    shown = {"", pool, *(each.ring.cluster for each in stores)}
    work = [each.load / each.capacity for each in found]
    total = sum(work)
    return Top(
        at=time.time(),
        leader=leader,
        pool=pool,
        lsn=status.lsn,
        owners=tuple(sorted(found, key=lambda each: (-each.load / each.capacity, each.name))),
        load=round(sum(each.load for each in found), 1),
        imbalance=round(max(work) * len(work) / total, 2) if total else 1.0,
        lookups=status.lookups,
        lookup_lag=status.lookup_lag,
        events=tuple(event for event in recent(leader) if event.pool in shown)[-EVENTS:],
        tiers=tiers_of(pool, found),
        stores=stores,
    )


def _print(managers: Sequence[str], pool: str, every: float, *, once: bool, as_json: bool) -> None:
    with suppress(KeyboardInterrupt):
        while True:
            with waiting_for(managers):
                seen = look(managers, pool)
            if as_json:
                put(msgspec.json.encode(seen).decode())
            else:
                owners, happened = map(_line, seen.owners), map(words, seen.events)
                for line in (_title(seen), *owners, *_tier_lines(seen), *happened):
                    say(line)
            if once:
                return
            time.sleep(every)


def _draw(managers: Sequence[str], pool: str, every: float) -> None:
    from rich.live import Live
    from rich.text import Text

    seen: Top | None = None
    with Live(screen=True, auto_refresh=False) as screen, suppress(KeyboardInterrupt):
        screen.update(Text(f"waiting for {' or '.join(managers)}", "dim"), refresh=True)
        while True:
            try:
                seen, trouble = look(managers, pool), ""
            except NoManager as error:
                trouble = str(error)
            if seen is None:
                screen.update(Text(trouble, "red"), refresh=True)
            else:
                screen.update(picture(seen, trouble, screen.console.height), refresh=True)
            time.sleep(every)


def picture(seen: Top, trouble: str, height: int) -> "Group":
    """All of it, in so many lines."""
    from rich.console import Group
    from rich.text import Text

    beside = _tier_lines(seen)[: max(0, (height - MARGIN - len(seen.events)) // 2)]
    room = max(1, height - MARGIN - len(seen.events) - len(beside) - bool(beside))
    owners = [Text(_line(each, seen), no_wrap=True) for each in seen.owners[:room]]
    if len(seen.owners) > room:
        owners.append(Text(f"and {len(seen.owners) - room} more", "dim"))
    return Group(
        Text(trouble or _title(seen), "red" if trouble else "bold"),
        Text(""),
        *owners,
        *([Text("")] if beside else []),
        *(Text(printable(each), no_wrap=True) for each in beside),
        Text(""),
        *(Text(printable(words(each)), _style(each), no_wrap=True) for each in seen.events),
        Text("Ctrl-C ends", "dim"),
    )


def _tier_lines(seen: Top) -> list[str]:
    of_stores = (line for store in seen.stores for line in words_of_store(store))
    return [*words_of_pool(seen.tiers), *of_stores]


def _title(seen: Top) -> str:
    if not seen.pool:
        return f"no pool yet; LSN {seen.lsn} at {seen.leader}"
    return (
        f"{seen.pool}: {len(seen.owners)} owners, {seen.load:,.1f}/s, "
        f"imbalance {seen.imbalance:.2f}, {seen.lookups} lookups, "
        f"{seen.lookup_lag} records behind, LSN {seen.lsn} at {seen.leader}"
    )


def _line(owner: OwnerSummary, seen: Top | None = None) -> str:
    most = max((each.load for each in seen.owners), default=0.0) if seen else 0.0
    bar = "█" * round(BAR * owner.load / most) if most else ""
    state = owner.steering or ("" if owner.connected else "not connected")
    name = printable(owner.name)
    line = f"{name:<24.24} {owner.load:>10,.1f}/s {owner.share:>7.1%} {owner.ranges:>6} ranges"
    return f"{line}  {bar:<{BAR}} {state}".rstrip()


def _style(event: LiveEvent) -> str:
    return {"warning": "yellow", "error": "red"}.get(event.level, "")
