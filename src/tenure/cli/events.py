"""`tenure events`: what has happened at the leader, and what happens."""

import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Annotated, Literal

import msgspec
from cyclopts import Parameter

from tenure.cli.asking import ASKING, AskingOptions, urls
from tenure.cli.following import leader_of, live, recent
from tenure.cli.output import complain, counted, put, say
from tenure.cli.waiting import waiting_for
from tenure.errors import NoManager
from tenure.manager.live import LiveEvent

AGAIN_SECONDS = 1.0
FOLDED = 4
"""So many events of one kind in a row are one line, as on the dashboard."""
APART_SECONDS = 10.0
"""Unless they are so far from each other."""
MOST_NAMED = 6
"""More owners that took ranges are not named, but counted."""
TAKEN = re.compile(r"(\d+) ranges? to (.*)", re.DOTALL)


def events(
    *,
    follow: Annotated[bool, Parameter(negative="")] = False,
    level: Literal["debug", "info", "warning", "error"] = "info",
    pool: str = "",
    how: AskingOptions = ASKING,
) -> None:
    """Show what has happened lately at the manager that leads.

    Parameters
    ----------
    follow
        Keep showing new events until Ctrl-C; after a failover, those of the new leader.
    level
        The lowest level that is shown.
    pool
        Show only events that concern this pool.
    """
    managers = urls(how.manager)
    if not follow:
        with waiting_for(managers):
            found = recent(leader_of(managers), level)
        for event in found:
            _print(event, pool, as_json=how.json)
        return
    with suppress(KeyboardInterrupt):
        _follow(managers, level, pool, as_json=how.json)


def _follow(managers: Sequence[str], level: str, pool: str, *, as_json: bool) -> None:
    seen: dict[str, str] = {}
    """The id of the last event that was seen of each manager."""
    is_away = False
    while True:
        try:
            with waiting_for(managers):
                leader = leader_of(managers)
            for each in live(leader, level, seen.get(leader, "0")):
                if is_away:
                    complain(f"following {leader}")
                    is_away = False
                if isinstance(each, LiveEvent):
                    seen[leader] = each.id
                    _print(each, pool, as_json=as_json)
        except NoManager as error:
            if not is_away:
                complain(f"{error}; trying again until Ctrl-C")
            is_away = True
            time.sleep(AGAIN_SECONDS)


def _print(event: LiveEvent, pool: str, *, as_json: bool) -> None:
    if pool and event.pool != pool:
        return
    if as_json:
        put(msgspec.json.encode(event).decode())
    else:
        say(words(event))


def words(event: LiveEvent) -> str:
    """An event in a line."""
    at = time.strftime("%H:%M:%S", time.localtime(event.at))
    level = "" if event.level == "info" else f"{event.level}: "
    pool = f"[{event.pool}] " if event.pool else ""
    detail = f": {event.detail}" if event.detail else ""
    cause = f" (cause {event.cause})" if event.cause else ""
    return f"{at}  {level}{pool}{event.kind}{detail}{cause}"


def folded(events: Iterable[LiveEvent]) -> list[tuple[LiveEvent, ...]]:
    """The events, with those together that are one line: a crash moves many ranges."""
    runs: list[list[LiveEvent]] = []
    for event in events:
        if runs and _are_alike(runs[-1][-1], event):
            runs[-1].append(event)
        else:
            runs.append([event])
    whole = ([tuple(run)] if len(run) >= FOLDED else [(each,) for each in run] for run in runs)
    return [line for lines in whole for line in lines]


def _are_alike(earlier: LiveEvent, later: LiveEvent) -> bool:
    of = (earlier.kind, earlier.pool, earlier.level)
    return of == (later.kind, later.pool, later.level) and later.at - earlier.at < APART_SECONDS


def words_in_sum(alike: Sequence[LiveEvent]) -> str:
    """One of the lines of `folded`: who took how many ranges, if that can be added."""
    if len(alike) == 1:
        return words(alike[0])
    taken: Counter[str] = Counter()
    for found in (TAKEN.fullmatch(each.detail) for each in alike):
        taken[found[2] if found else ""] += int(found[1]) if found else 0
    detail = "" if "" in taken else f"{counted(taken.total(), 'range')} to {_takers(taken)}"
    line = words(msgspec.structs.replace(alike[-1], detail=detail, cause=""))
    return f"{line} ({len(alike)} of them)"


def _takers(taken: Counter[str]) -> str:
    if len(taken) == 1:
        return next(iter(taken))
    if len(taken) > MOST_NAMED:
        return f"{len(taken)} owners"
    return ", ".join(f"{name} ({counted(n, 'range')})" for name, n in taken.most_common())
