"""Asking the other managers whether they lead, and in which journal, for the leader (P25).

Only managers that the operator has named are asked, over the same port as by people, with the token
of the environment. A manager that does not answer is not there; one that refuses to answer,
or answers what is no manager's, is told of in the log: two leaders would go unnoticed.
"""

import asyncio
from collections.abc import Sequence

import aiohttp

from tenure.base.instants import in_seconds
from tenure.base.noted import Noted
from tenure.errors import ConfigurationError
from tenure.manager.answers import StatusAnswer
from tenure.manager.noted import ServiceKind
from tenure.manager.other_managers import NO_MANAGER, WANTS_TOKEN, ask_status
from tenure.observe.events import Observer
from tenure.protocol.lease.leader.events import OtherSeen
from tenure.protocol.lease.leader.rivals import look_ns
from tenure.protocol.lease.rivalry import Succession
from tenure.protocol.lease.timing import Timing
from tenure.runtime.read_size import SmallBlocksResponse
from tenure.transport.credentials import Credentials

LONGEST_SECONDS = 2.0
"""A manager that is well answers at once."""


class RivalWatch:
    """Asks the managers at these URLs."""

    def __init__(self, urls: Sequence[str], timing: Timing, observer: Observer) -> None:
        self._urls = tuple(url.rstrip("/") for url in urls)
        seconds = min(LONGEST_SECONDS, in_seconds(look_ns(timing)))
        self._timeout = aiohttp.ClientTimeout(total=seconds)
        self._observer = observer

    async def look(self) -> tuple[OtherSeen, ...]:
        """What those say that answer."""
        try:
            credentials = Credentials.from_environment()
        except ConfigurationError as error:
            self._observer.note(Noted(ServiceKind.UNWATCHED, detail=str(error)))
            return ()
        async with aiohttp.ClientSession(
            timeout=self._timeout, response_class=SmallBlocksResponse
        ) as session:
            asked = (self._ask(session, url, credentials) for url in self._urls)
            return tuple(each for each in await asyncio.gather(*asked) if each is not None)

    async def _ask(
        self, session: aiohttp.ClientSession, url: str, credentials: Credentials
    ) -> OtherSeen | None:
        said = await ask_status(session, url, credentials)
        if isinstance(said, StatusAnswer):
            return _as_seen(url, said)
        if said in (WANTS_TOKEN, NO_MANAGER):
            self._observer.note(Noted(ServiceKind.UNWATCHED, detail=f"{url}: {said}"))
        return None


def _as_seen(url: str, said: StatusAnswer) -> OtherSeen:
    return OtherSeen(
        manager=url,
        journal=int(said.journal_id, 16) if said.proven and said.journal_id else 0,
        realm=said.realm,
        granted=said.granted,
        is_over=said.is_over,
        rivals=tuple(int(each.journal, 16) for each in said.rivals if not each.pool),
        over=tuple(int(each, 16) for each in said.over),
        succeeds=tuple(
            Succession(int(each.journal, 16), bytes.fromhex(each.proof)) for each in said.succeeds
        ),
    )
