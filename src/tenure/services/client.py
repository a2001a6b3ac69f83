"""Clients of the services: a service may have several processes, and any of them answers.

A client tries one process after the other until its deadline. It repeats a request only if nothing
was begun, or if the request may be repeated: each request that changes something has an id, by
which a service recognises a repeat and returns the first answer.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import wraps
from random import SystemRandom
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar
from urllib.parse import quote
from uuid import uuid4

import aiohttp
import msgspec
from yarl import URL

from tenure import Credentials
from tenure.errors import (
    MALFORMED,
    ConfigurationError,
    OutcomeUnknown,
    RemoteProtocolError,
    UsageError,
)
from tenure.services.outward import REDIRECTS
from tenure.services.problems import ServiceProblem

T = TypeVar("T")
C = TypeVar("C", bound="ServiceClient")
P = ParamSpec("P")
NO_HEADERS: Mapping[str, str] = {}
REFUSED = 400
NOT_HERE = (421, 503)
"""The statuses to which another process, or the same one a little later, may answer differently."""
OUTCOME_HEADER = "Tenure-Outcome"
OF_GATEWAYS = (502, 504)
"""The statuses with which a gateway says that a process behind it has gone, or does not answer."""
ANSWER_BYTES = 64 << 20
"""The most that is read of an answer; something else may listen at the address."""
DEADLINE_SECONDS = 60.0
PAUSE_SECONDS = 0.05
LONGEST_PAUSE = 1.0
ID_HEADER = "Idempotency-Key"


class Reply(msgspec.Struct, frozen=True):
    """An answer of a service."""

    status: int
    headers: Mapping[str, str]
    data: bytes


class ServiceClient:
    """A client of one service, at these URLs; enter it with `async with`.

    Every call takes `deadline` seconds at most. `credentials` are by default those that the
    environment names. `headers` go with each request: a gateway may route by them. Raises
    ServiceRefusal if the service refuses, and OutcomeUnknown if no process answered in time.
    """

    def __init__(
        self,
        urls: str | Sequence[str],
        *,
        deadline: float = DEADLINE_SECONDS,
        credentials: Credentials | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> None:
        given = urls.split(",") if isinstance(urls, str) else list(urls)
        self._urls = [_checked(each.strip()) for each in given if each.strip()]
        if not self._urls:
            raise ConfigurationError("a client needs the URL of a service")
        self._deadline = deadline
        self._credentials = credentials or Credentials.from_environment()
        self._headers = headers
        self._session: aiohttp.ClientSession | None = None
        self._random = SystemRandom()
        self._at = self._random.randrange(len(self._urls))

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.close()
        self._session = None

    @property
    def session(self) -> aiohttp.ClientSession:
        """The session of aiohttp. Raises UsageError if the client is not entered."""
        if self._session is None:
            raise UsageError("enter this client first: `async with` it")
        return self._session

    @property
    def url(self) -> str:
        """The process that is asked next."""
        return self._urls[self._at]

    def go_on(self) -> None:
        """Ask another process from here on."""
        self._at = (self._at + 1) % len(self._urls)

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: Mapping[str, str] = NO_HEADERS,
        id: str | None = None,  # noqa: A002  # what it is
        deadline: float | None = None,
        patience: float = 0.0,
    ) -> Reply:
        """Return the answer of any process that gives one. The body is sent as JSON, or unchanged
        if it is bytes. `patience` is how long the service itself may wait, beyond the deadline.
        """
        said = {
            "Content-Type": "application/json",
            ID_HEADER: id or uuid4().hex,
            **self._headers,
            **headers,
        }
        data = body if isinstance(body, bytes | None) else msgspec.json.encode(body)
        if data is None:
            del said["Content-Type"]
        pause, problem = PAUSE_SECONDS, f"{self.url} has not answered"
        seconds = (deadline or self._deadline) + patience
        try:
            async with asyncio.timeout(seconds):
                while True:
                    try:
                        reply = await self._attempt(method, path, data, said)
                    except (aiohttp.ClientError, OSError) as error:
                        problem = f"{self.url}: {error!r}"
                    else:
                        if not _may_be_answered_elsewhere(reply):
                            return _taken(reply)
                        problem = f"{self.url}: {reply.data.decode(errors='replace')[:200]}"
                    self.go_on()
                    await asyncio.sleep(pause * (0.5 + self._random.random()))
                    pause = min(2 * pause, LONGEST_PAUSE)
        except TimeoutError:
            raise OutcomeUnknown(
                f"{method} {path} timed out after {seconds:g} s; the request may still be carried "
                f"out. The last problem: {problem}"
            ) from None

    async def _attempt(
        self, method: str, path: str, data: bytes | None, headers: Mapping[str, str]
    ) -> Reply:
        shown = {**headers, **self._credentials.headers(self.url)}
        tls = self._credentials.to(self.url) or True
        async with self.session.request(
            method,
            URL(self.url + path, encoded=True),
            data=data,
            headers=shown,
            ssl=tls,
            allow_redirects=False,
        ) as response:
            if response.status in REDIRECTS:
                raise RemoteProtocolError(
                    f"{self.url} redirects {method} {path:.200}, which no service does: give the "
                    "URL of the service itself"
                )
            try:
                await response.content.readexactly(ANSWER_BYTES + 1)
            except asyncio.IncompleteReadError as whole:
                return Reply(response.status, response.headers, whole.partial)
            raise RemoteProtocolError(
                f"{self.url} answers {method} {path} with more than {ANSWER_BYTES:,} bytes, which "
                "no service does: check what listens there"
            )


def _checked(url: str) -> str:
    """Return the URL of a service. Raises ConfigurationError if it is not such a URL."""
    try:
        found = URL(url)
        if found.scheme in ("http", "https") and found.host and "@" not in url:
            return str(found).rstrip("/")
    except ValueError:
        pass
    said = "one with an @" if "@" in url else f"{url!r:.200}"  # what precedes it may be a password
    raise ConfigurationError(
        "the URL of a service is shown and logged, and so has no user or password: write it like "
        f"http://127.0.0.1:8103, not {said}"
    )


def _may_be_answered_elsewhere(reply: Reply) -> bool:
    """Whether to ask again, under the same id. A gateway says what became of the request; another
    server that answers 502 is no service's.
    """
    is_of_gateway = reply.status in OF_GATEWAYS and OUTCOME_HEADER in reply.headers
    return is_of_gateway or reply.status in NOT_HERE


def _taken(reply: Reply) -> Reply:
    if reply.status < REFUSED:
        return reply
    try:
        problem = msgspec.json.decode(reply.data, type=ServiceProblem)
    except MALFORMED:
        problem = ServiceProblem(reply.status, "other", reply.data.decode(errors="replace")[:200])
    raise problem.raised()


def segment(text: str) -> str:
    """Encode a part of a path so that it arrives unchanged: a key may even be `..`."""
    return quote(text, safe="")


class BlockingService(Generic[C]):
    """A client for programs without an event loop: enter it with `with`, use it in one thread."""

    def __init__(self, client: C) -> None:
        self._client = client
        self._runner: asyncio.Runner | None = None

    def __enter__(self) -> Self:
        self._runner = asyncio.Runner()
        self._runner.run(self._client.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        assert self._runner is not None
        self._runner.run(self._client.__aexit__(None, None, None))
        self._runner.close()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` and return its result."""
        if self._runner is None:
            work.close()
            raise UsageError("enter this client first: `with` it")
        return self._runner.run(work)


def blocking(
    method: Callable[Concatenate[C, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[BlockingService[C], P], T]:
    """The same method of a blocking client."""

    @wraps(method)
    def call(service: BlockingService[C], /, *args: P.args, **options: P.kwargs) -> T:
        return service.wait(method(service._client, *args, **options))  # noqa: SLF001  # its method

    return call
