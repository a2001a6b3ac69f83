"""The paths that members have told, by pool, and which routes they make. Pure: nothing here asks.

Whoever may join a pool tells paths. So one pool's are bounded, and what one pool tells costs no
other its routes.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping

from tenure.base.instants import SECOND_NS, Instant
from tenure.errors import ConfigurationError
from tenure.gateway.routes import GatewayRoute
from tenure.routing.template import PLACE

MOST_PATHS = 64
"""The most paths of one pool: two or three times what fits into the label of one owner."""
MOST_OF_ALL = 512
"""The most paths of all pools. Where there are many pools, each has an equal share."""
KEPT_NS = 600 * SECOND_NS
"""How long the paths of a pool without owners are kept. In a reload its workers come back: until
then its requests wait for an owner, and do not go where the rest goes.
"""
logger = logging.getLogger("tenure.gateway")
Told = Mapping[str, frozenset[str]]
"""The paths that the members of each pool have told."""


class ToldPaths:
    """What was heard, also of pools that have no owners for the moment."""

    def __init__(self) -> None:
        self._told: dict[str, frozenset[str]] = {}
        self._without: dict[str, Instant] = {}
        """The pools that have no owners, and since when."""
        self._are_over: set[str] = set()

    @property
    def told(self) -> Told:
        return self._told

    def hear(self, heard: Mapping[str, Iterable[list[str]]] | None, now: Instant) -> bool:
        """Take what the owners of each pool tell; None if nobody has answered. Returns whether
        something has changed.
        """
        if heard is None:
            self._without.clear()  # owners come back once their manager does
            return False
        self._without = {
            pool: self._without.get(pool, now) for pool in self._told if pool not in heard
        }
        kept = {
            pool: self._told[pool] for pool, since in self._without.items() if now - since < KEPT_NS
        }
        before = self._told
        self._told = {**kept, **{pool: self._some(pool, each) for pool, each in heard.items()}}
        return self._told != before

    def _some(self, pool: str, owners: Iterable[list[str]]) -> frozenset[str]:
        """Those that most owners tell: one that tells many of its own takes no other's place."""
        counts = Counter(path for told in owners for path in set(told))
        if len(counts) <= MOST_PATHS:
            self._are_over.discard(pool)
        elif pool not in self._are_over:
            self._are_over.add(pool)
            logger.warning(
                "pool %s tells %d paths: the %d that most of its owners tell are routes",
                *(pool, len(counts), MOST_PATHS),
            )
        most = sorted(counts, key=lambda each: (-counts[each], each))
        return frozenset(most[:MOST_PATHS])


def chosen(told: Told) -> list[str]:
    """The routes, as lines: those with more segments first, since any path below fits, too. A path
    that two pools have told leads to neither, for nobody can know which is meant.
    """
    share = max(1, MOST_OF_ALL // max(1, len(told)))
    pools: dict[str, dict[str, list[str]]] = {}
    for pool in sorted(told):
        usable = [each for each in sorted(told[pool], key=_order) if _is_usable(each, pool)]
        for where in usable[:share]:
            pools.setdefault(shape(where), {}).setdefault(pool, []).append(where)
        if len(usable) > share:
            logger.warning("%d paths of pool %s are left out", len(usable) - share, pool)
    lines = []
    for same, paths in pools.items():
        if len(paths) > 1:
            logger.warning("pools %s tell the path %s: give a --route", list(paths), same)
            continue
        lines += [(where, pool) for pool, wheres in paths.items() for where in wheres]
    return [f"{where}={pool}" for where, pool in sorted(lines, key=lambda each: _order(each[0]))]


def shape(path: str) -> str:
    """The path without what its places are called and take: two with one shape fit the same."""
    return "/".join("{}" if PLACE.fullmatch(each) else each for each in path.split("/"))


def _order(path: str) -> tuple[int, str, bool, str]:
    # Numbers first: a place for any text fits them, too.
    return -path.count("/"), shape(path), ":int}" not in path, path


def _is_usable(path: str, pool: str) -> bool:
    try:
        GatewayRoute(f"{path}={pool}")
    except ConfigurationError as error:
        logger.warning("a member tells a route that cannot be used: %s", error)
        return False
    return True
