"""The state of the other managers, for people to see; nothing depends on it.

A leader does not know the standbys, since they only read the journal. The operator knows them, and
names them. This manager asks them when somebody asks it, as any client would: with the token of the
environment, if they want one. A standby asks the leader, too, whether it was named or not.
"""

import asyncio
import os
from collections.abc import Sequence

import aiohttp
import msgspec
from aiohttp import web

from tenure.base.instants import Instant, seconds
from tenure.errors import MALFORMED, ConfigurationError
from tenure.manager.answers import ManagersAnswer, SeenManager, StatusAnswer
from tenure.manager.engine import ManagerEngine
from tenure.manager.http_errors import as_json
from tenure.runtime.read_size import SmallBlocksResponse
from tenure.transport.answer_body import read_body
from tenure.transport.credentials import TOKEN, Credentials

PATH = "/v1/managers"
ASKED = aiohttp.ClientTimeout(total=2.0)
"""The time for the answer of each: a manager that is well answers at once."""
STATUS_BYTES = 4 << 20
"""The most bytes of an answer: it lists the troubles of every pool, and a thousand rivals."""
KEPT_NS = seconds(1)
"""However many pages ask, the others are asked once a second."""
NO_MANAGER = "what answers there is not a manager"
WANTS_TOKEN = f"it wants a token: start this manager with a viewer's in {TOKEN}"


class OtherManagers:
    """The managers that were named, and the leader."""

    def __init__(self, engine: ManagerEngine, named: Sequence[str]) -> None:
        self._engine = engine
        self._named = tuple(url.rstrip("/") for url in named)
        self._lock = asyncio.Lock()
        self._seen: tuple[SeenManager, ...] = ()
        self._kept_until = Instant(0)

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Put the answer under its path."""
        router.add_get(PATH, self.show)

    async def show(self, request: web.Request) -> web.Response:
        """This manager, and each of the others."""
        async with self._lock:
            if self._engine.clock() >= self._kept_until:
                self._seen = await self._ask_all()
                self._kept_until = Instant(self._engine.clock() + KEPT_NS)
        view = self._engine.view
        journal = f"{view.journal:016x}" if view.journal else ""
        this = SeenManager(view.url, view.role, view.is_proven, view.leadership, view.lsn, journal)
        return as_json(ManagersAnswer((this, *self._seen)))

    async def _ask_all(self) -> tuple[SeenManager, ...]:
        view = self._engine.view
        known = dict.fromkeys((*self._named, view.leader or ""))
        others = [url for url in known if url not in ("", view.url)]
        if not others:
            return ()
        try:
            credentials = Credentials.from_environment()
        except ConfigurationError as error:
            return tuple(SeenManager(url, error=str(error)) for url in others)
        async with aiohttp.ClientSession(
            timeout=ASKED, response_class=SmallBlocksResponse
        ) as session:
            asked = (_asked(session, url, credentials) for url in others)
            return tuple(await asyncio.gather(*asked))


def _decoded(body: bytes) -> StatusAnswer:
    return msgspec.json.decode(body, type=StatusAnswer)


async def _asked(session: aiohttp.ClientSession, url: str, credentials: Credentials) -> SeenManager:
    said = await ask_status(session, url, credentials)
    if isinstance(said, str):
        return SeenManager(url, error=said)
    return SeenManager(url, said.role, said.proven, said.leadership, said.lsn, said.journal_id)


async def ask_status(
    session: aiohttp.ClientSession, url: str, credentials: Credentials
) -> StatusAnswer | str:
    """The answer of another manager about itself, or why there is none."""
    try:
        async with session.get(
            f"{url}/v1/status",
            headers=credentials.headers(url),
            ssl=credentials.to(url) or True,
            allow_redirects=False,  # a token is for whom it is meant
        ) as response:
            if response.status in (401, 403):
                return WANTS_TOKEN
            body = await read_body(response, STATUS_BYTES)
            return NO_MANAGER if body is None else _decoded(body)
    except TimeoutError:
        return "it does not answer in time"
    except ConfigurationError as error:
        return str(error)
    except MALFORMED:
        return NO_MANAGER
    except (aiohttp.ClientError, OSError) as error:
        number = error.errno if isinstance(error, OSError) else None
        why = os.strerror(number) if number else str(error) or type(error).__name__
        return f"it does not answer: {why}"
