"""The exhaustive search of leases: a small pool within limits."""

import msgspec

from lab.search.exhaustive import MOST_STATES, Found
from lab.search.exhaustive import search as search_world
from lab.worlds.lease.small import Limits, SmallPool

TWO_NAMES, ONE_NAME = ("o0", "o1"), ("o", "o")
"""The names of the two owners."""


def search(
    limits: Limits,
    *,
    names: tuple[str, str] = TWO_NAMES,
    most_states: int = MOST_STATES,
) -> Found:
    """Look at every story within `limits`, the shortest first, until a promise is broken."""
    return search_world(SmallPool(limits, names), most_states)


def in_short(names: tuple[str, str], limits: Limits) -> str:
    """Name a scope by what may happen in it."""
    said = (f"{kind}={most}" for kind, most in msgspec.structs.asdict(limits).items() if most)
    return f"{'one name, ' if names == ONE_NAME else ''}{', '.join(said)}"
