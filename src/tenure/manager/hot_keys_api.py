"""The keys of a pool that are asked for most, and who may know which they are.

A place in the key space tells a guesser the name, so whoever may not know the one is not told the
other.
"""

from collections.abc import Callable

from aiohttp import web
from msgspec.structs import replace

from tenure.manager.access.roles import AccessRole, Permit
from tenure.manager.api import HOTTEST_PATH, Api
from tenure.manager.http_errors import as_json
from tenure.manager.steering_api import with_any_name
from tenure.protocol.lease.answers import HottestKeys
from tenure.protocol.lease.leader.events import ListHottest

AS_RANGES = 1 << 12
"""As how many ranges an answer counts: of a large pool the hottest of 100,000 keys are looked for.
"""


class HotKeysApi:
    """The handler."""

    def __init__(
        self, api: Api, permit_of: Callable[[web.Request], Permit], *, hides: bool
    ) -> None:
        self._api = api
        self._permit_of = permit_of
        self._hides = hides

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Put it under its path."""
        router.add_get(with_any_name(HOTTEST_PATH), self.show)

    async def show(self, request: web.Request) -> web.Response:
        """The hottest keys; viewers may be told only who has them, and how hot they are."""
        async with self._api.turn(request) as spend:
            found = await self._api.ask(ListHottest(request.match_info["pool"]), HottestKeys)
            spend(AS_RANGES)
        if self._hides and self._permit_of(request).role is AccessRole.VIEWER:
            hidden = tuple(replace(each, key=None, name=None) for each in found.keys)
            found = replace(found, keys=hidden)
        return as_json(found)
