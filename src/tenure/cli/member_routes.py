"""The routes that members bring: a manager is asked for them again and again, since applications
start and end beside a gateway.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence

from tenure.cli.asking import get, path, urls
from tenure.errors import TenureError
from tenure.gateway.routes_file import RouteSources
from tenure.gateway.told_paths import ToldPaths, chosen
from tenure.member.told_routes import read_told
from tenure.protocol.lease.answers import Owners, Pools
from tenure.runtime.clock import boot_clock

AGAIN_SECONDS = 1.0
ANSWER_SECONDS = 5.0
logger = logging.getLogger("tenure.gateway")
Heard = dict[str, list[list[str]]]
"""What each owner of each pool tells."""


class MemberRoutes:
    """Follows them, and has the gateway's routes read again whenever they are others."""

    def __init__(
        self, managers: Sequence[str] | None, sources: RouteSources, reload: Callable[[], None]
    ) -> None:
        self._managers = managers
        self._sources = sources
        self._reload = reload
        self._paths = ToldPaths()

    async def follow(self) -> None:
        """Ask, and go on asking. While no manager answers, the routes stay as they are."""
        while True:
            heard = await asyncio.to_thread(self._ask)
            if self._paths.hear(heard, boot_clock()):
                self._sources.brought = chosen(self._paths.told)
                self._reload()
            await asyncio.sleep(AGAIN_SECONDS)

    def _ask(self) -> Heard | None:
        for url in urls(self._managers):
            try:
                return dict(_heard_at(url.rstrip("/")))
            except TenureError as error:
                logger.debug("%s does not tell the routes of members: %s", url, error)
        return None


def _heard_at(url: str) -> Iterator[tuple[str, list[list[str]]]]:
    for pool in get(url, "/v1/pools", ANSWER_SECONDS).read(Pools).pools:
        if pool.owners:
            found = get(url, path(pool.name, "owners"), ANSWER_SECONDS).read(Owners).owners
            yield pool.name, [read_told(one.labels) for one in found]
