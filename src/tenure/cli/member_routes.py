"""The routes that members bring: a manager is asked for them again and again, since applications
start and end beside a gateway.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence

from tenure.cli.asking import get, path, urls
from tenure.errors import ConfigurationError, TenureError
from tenure.gateway.routes import GatewayRoute
from tenure.gateway.routes_file import RouteSources
from tenure.member.told_routes import read_told
from tenure.protocol.lease.answers import Owners, Pools

AGAIN_SECONDS = 1.0
ANSWER_SECONDS = 5.0
logger = logging.getLogger("tenure.gateway")
Told = dict[str, frozenset[str]]
"""The paths that the members of each pool have told."""


def chosen(told: Told) -> list[str]:
    """The routes, as lines: those with more segments first, since any path below fits, too. A path
    that two pools have told leads to neither, for nobody can know which is meant.
    """
    pools: dict[str, list[str]] = {}
    for pool in sorted(told):
        for where in told[pool]:
            pools.setdefault(where, []).append(pool)
    lines = []
    for where in sorted(pools, key=lambda each: (-each.count("/"), each)):
        line = f"{where}={pools[where][0]}"
        try:
            GatewayRoute(line)
        except ConfigurationError as error:
            logger.warning("a member tells a route that cannot be used: %s", error)
            continue
        if len(pools[where]) == 1:
            lines.append(line)
        else:
            logger.warning("pools %s tell the path %s: give a --route", pools[where], where)
    return lines


class MemberRoutes:
    """Follows them, and has the gateway's routes read again whenever they are others."""

    def __init__(
        self, managers: Sequence[str] | None, sources: RouteSources, reload: Callable[[], None]
    ) -> None:
        self._managers = managers
        self._sources = sources
        self._reload = reload
        self._told: Told = {}

    async def follow(self) -> None:
        """Ask, and go on asking. While no manager answers, the routes stay as they are."""
        while True:
            told = await asyncio.to_thread(self._ask)
            # A pool without owners keeps its routes: in a reload, its workers come back.
            told = {**self._told, **told}
            if told != self._told:
                self._told = told
                self._sources.brought = chosen(told)
                self._reload()
            await asyncio.sleep(AGAIN_SECONDS)

    def _ask(self) -> Told:
        for url in urls(self._managers):
            try:
                return dict(_told_at(url.rstrip("/")))
            except TenureError as error:
                logger.debug("%s does not tell the routes of members: %s", url, error)
        return {}


def _told_at(url: str) -> Iterator[tuple[str, frozenset[str]]]:
    for pool in get(url, "/v1/pools", ANSWER_SECONDS).read(Pools).pools:
        if pool.owners:
            found = get(url, path(pool.name, "owners"), ANSWER_SECONDS).read(Owners).owners
            yield pool.name, frozenset(each for one in found for each in read_told(one.labels))
