"""`tenure top`, live in the terminal: who has how much to do, and what just happened.

It shows a pool with the caches and entities of its owners, and the clusters of the store.
"""

import sys
import textwrap
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from tenure.cli.asking import ASKING, AskingOptions, PoolName, get, path, urls
from tenure.cli.events import folded, words_in_sum
from tenure.cli.following import leader_of, recent
from tenure.cli.output import counted, put, say
from tenure.cli.tiers import (
    PoolTiers,
    StoreTier,
    read_stores,
    tiers_of,
    words_of_pool,
    words_of_store,
)
from tenure.cli.waiting import waiting_for
from tenure.errors import ConfigurationError, NoManager, PoolError, UsageError
from tenure.manager.answers import StatusAnswer
from tenure.manager.live import LiveEvent
from tenure.observe.events import printable
from tenure.protocol.lease.answers import HottestKey, HottestKeys, Owners, OwnerSummary, Pools

if TYPE_CHECKING:
    from rich.console import Group

ASK_SECONDS = 5.0
EVENTS = 8
"""Lines of events: several that are alike are one."""
HOTTEST = 3
BAR = 24
ROW = 66
"""Columns of an owner's line before its bar."""
BESIDE = 4
"""Lines of the screen that are there whatever there is to tell."""


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
    hottest: tuple[HottestKey, ...] = ()
    """The keys that are asked for most, the hottest first."""


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
        The seconds between two looks.
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
    hottest: tuple[HottestKey, ...] = ()
    if pool:
        found = get(leader, path(pool, "owners"), ASK_SECONDS).read(Owners).owners
        with suppress(PoolError):  # a manager of an earlier version does not know of them
            hottest = get(leader, path(pool, "hottest"), ASK_SECONDS).read(HottestKeys).keys
    stores = read_stores(leader, ASK_SECONDS)
    shown = {"", pool, *(each.ring.cluster for each in stores)}
    happened = folded(event for event in recent(leader) if event.pool in shown)[-EVENTS:]
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
        events=tuple(chain.from_iterable(happened)),
        tiers=tiers_of(pool, found),
        stores=stores,
        hottest=hottest[:HOTTEST],
    )


def _print(managers: Sequence[str], pool: str, every: float, *, once: bool, as_json: bool) -> None:
    with suppress(KeyboardInterrupt):
        while True:
            with waiting_for(managers):
                seen = look(managers, pool)
            if as_json:
                put(msgspec.json.encode(seen).decode())
            else:
                owners = [HEAD, *(_line(each, seen) for each in seen.owners)] if seen.owners else []
                happened = map(words_in_sum, folded(seen.events))
                for line in (*_title(seen), *owners, *_tier_lines(seen), *happened):
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
                screen.update(picture(seen, trouble, *screen.console.size), refresh=True)
            time.sleep(every)


def picture(seen: Top, trouble: str, width: int, height: int) -> "Group":
    """All of it, in so many columns and lines at most."""
    from rich.console import Group
    from rich.text import Text

    head = _wrapped(trouble or ", ".join(_title(seen)), width)
    happened = [
        Text(line, _style(each[-1]))
        for each in folded(seen.events)
        for line in _wrapped(words_in_sum(each), width)
    ][-max(height // 3, 1) :]
    room = height - len(head) - len(happened) - BESIDE
    beside = [line for each in _tier_lines(seen) for line in _wrapped(each, width)]
    beside = beside[: max(room // 2, 0)]
    room -= len(beside) + bool(beside)
    owners = [_line(each, seen, width) for each in seen.owners]
    if len(owners) > room:
        owners[max(room - 1, 0) :] = [f"and {len(owners) - max(room - 1, 0)} more"]
    return Group(
        *(Text(line, "red" if trouble else "bold") for line in head),
        Text(""),
        Text(HEAD[:width], "dim"),
        *map(Text, owners),
        *([Text("")] if beside else []),
        *map(Text, beside),
        Text(""),
        *happened,
        Text("Ctrl-C ends", "dim"),
    )


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(printable(text), width, subsequent_indent="    ")


def _tier_lines(seen: Top) -> list[str]:
    of_stores = (line for store in seen.stores for line in words_of_store(store))
    return [*_words_of_hottest(seen), *words_of_pool(seen.tiers), *of_stores]


def _words_of_hottest(seen: Top) -> list[str]:
    told = [
        f"{printable(each.name or (each.key.hex if each.key else 'hidden'))} at "
        f"{printable(each.owner or 'nobody')} {each.rate:,.1f}/s"
        for each in seen.hottest
    ]
    return [f"hottest keys: {', '.join(told)}"] if told else []


def _title(seen: Top) -> list[str]:
    where = f"LSN {seen.lsn} at {seen.leader}"
    if not seen.pool:
        return [f"no pool yet; {where}"]
    how = (
        f"{seen.pool}: {counted(len(seen.owners), 'owner')}, {seen.load:,.1f}/s, "
        f"imbalance {seen.imbalance:.2f}, {counted(seen.lookups, 'lookup')}, "
        f"{counted(seen.lookup_lag, 'record')} behind"
    )
    return [how, where]


def _line(owner: OwnerSummary, seen: Top, width: int = 0) -> str:
    most = max(each.load for each in seen.owners)
    bar = "█" * round(min(BAR, width - ROW) * owner.load / most) if most else ""
    state = owner.steering or ("" if owner.connected else "not connected")
    load = f"{owner.load:,.1f}/s"
    return _row(printable(owner.name), load, f"{owner.share:.1%}", str(owner.ranges), state, bar)


def _row(name: str, load: str, share: str, ranges: str, state: str, bar: str) -> str:
    return f"{name:<22.22} {load:>11} {share:>6} {ranges:>6}  {state:<15.15} {bar}".rstrip()


HEAD = _row("owner", "load", "keys", "ranges", "", "")


def _style(event: LiveEvent) -> str:
    return {"warning": "yellow", "error": "red"}.get(event.level, "")
