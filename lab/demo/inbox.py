"""`python -m lab demo inbox`: the inbox search of the Cassandra paper (6.1), beside its figures.

With `--on-nodes` the inbox is on three nodes, each of them a process here, and is written and read
at quorum; otherwise it is in a directory.

Every user has an index of the messages that were sent and received: by word, and by the other
person, the newest first. A message is indexed in one mutation for each of the two. Before a search
the user clicks into the search field, and what will be asked is read into memory.

The paper measured a cluster on two coasts, so milliseconds of a laptop are not compared with its
milliseconds: each search is shown beside the fastest one of its kind.
"""

import asyncio
import json
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from lab.demo.ring.home_ring import HomeRing
from tenure.cli.output import say, show
from tenure.columns.opening import open_store
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Family, Table

INBOX = Table(
    "inbox",
    kind="hashed",
    terms=Family(supers=str, columns=int, order="time"),
    interactions=Family(supers=str, columns=int, order="time"),
)
NODES = 3
FEWER = 5
"""Searches on nodes are so many times fewer: reading an inbox into memory takes them longer."""
USERS = 50
MESSAGES = 2_000
WORDS = 1_000
WORDS_OF_A_MESSAGE = 12
AT_ONCE = 100
SEARCHES = 500
FOUND = 20
"""Messages that a search shows at once."""

PAPER = {"interactions": (7.69, 15.69, 26.13), "terms": (7.78, 18.27, 44.41)}
"""Minimum, median and maximum in production, in milliseconds (paper 6.1)."""
SEARCH_NAMES = {"interactions": "search by person", "terms": "search by word"}


def run_inbox(*, on_nodes: bool, as_json: bool) -> None:
    """Fill an inbox, search it, and print the paper's table beside what was measured."""
    with TemporaryDirectory(prefix="tenure-inbox-") as place:
        found = asyncio.run(
            _measured_on_nodes(Path(place))
            if on_nodes
            else measured(f"rocksdb:{place}/store", SEARCHES)
        )
    if as_json:
        say(json.dumps({"unit": "ms", "paper": PAPER, "measured": found}))
        return
    rows = [row for search in PAPER for row in _rows(search, found[search])]
    columns = (
        "search",
        "",
        "minimum",
        "median",
        "maximum",
        "median / minimum",
        "maximum / minimum",
    )
    show(columns, rows, empty="")


def _rows(search: str, found: tuple[float, float, float]) -> list[tuple[str, ...]]:
    return [
        (
            SEARCH_NAMES[search],
            who,
            *(f"{each:.2f} ms" for each in times),
            *(f"{each / times[0]:.1f}" for each in times[1:]),
        )
        for who, times in (("paper", PAPER[search]), ("here", found))
    ]


async def _measured_on_nodes(place: Path) -> dict[str, tuple[float, float, float]]:
    home = HomeRing(place, NODES, spares=0)
    try:
        await home.start()
        return await measured(home.url, SEARCHES // FEWER)
    finally:
        await home.end()


async def measured(url: str, searches: int) -> dict[str, tuple[float, float, float]]:
    """Fill an inbox and search it: fastest, median and slowest of each search, in milliseconds."""
    dice = Random(1)
    async with open_store(url, INBOX) as store:
        began = perf_counter()
        for start in range(0, MESSAGES, AT_ONCE):
            await asyncio.gather(*(_send(store, dice, start + n) for n in range(AT_ONCE)))
        seconds = perf_counter() - began
        say(f"{MESSAGES} messages of {USERS} users, indexed and kept in {seconds:.1f} s")
    async with open_store(url, INBOX) as store:
        return {search: await _search(store, dice, search, searches) for search in PAPER}


def _send(store: ColumnStore, dice: Random, message: int) -> Any:
    sender, to = dice.sample(range(USERS), 2)
    words = [_word(dice) for _ in range(WORDS_OF_A_MESSAGE)]
    terms = {word: {message: b""} for word in words}
    return asyncio.gather(
        *(
            store.insert(
                INBOX, _user(one), {"terms": terms, "interactions": {_user(other): {message: b""}}}
            )
            for one, other in ((sender, to), (to, sender))
        )
    )


async def _search(
    store: ColumnStore, dice: Random, search: str, searches: int
) -> tuple[float, float, float]:
    times = []
    for _ in range(searches):
        user = _user(dice.randrange(USERS))
        what = _word(dice) if search == "terms" else _user(dice.randrange(USERS))
        await store.warm(INBOX, user, search)
        await store.warmed()  # a person still types meanwhile
        began = perf_counter()
        await store.get(INBOX, user, search, what, first=FOUND)
        times.append((perf_counter() - began) * 1e3)
    return min(times), median(times), max(times)


def _user(number: int) -> str:
    return f"user-{number}"


def _word(dice: Random) -> str:
    """Some words are in many messages, most are in few."""
    return f"word-{int(WORDS * dice.random() ** 3)}"
