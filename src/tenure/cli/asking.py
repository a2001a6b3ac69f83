"""Asking managers over their JSON API, one after the other, until one answers.

A standby names the leader, which is asked next. If no manager leads yet, because a leader has just
died or the manager was started a moment ago, the question is repeated for a few seconds.

`http.client` is enough for this: importing an asynchronous client would take longer than most
commands.
"""

import http.client
import os
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypeAlias, TypeVar
from urllib.parse import quote, urlsplit

import msgspec
from cyclopts import Parameter

from tenure.cli.waiting import WaitingLine, waiting_for
from tenure.client.managers import FILE_VARIABLE, VARIABLE
from tenure.client.managers_file import ManagersFile
from tenure.errors import MALFORMED, NoManager, PoolError, TenureError, UsageError
from tenure.manager.answers import Problem
from tenure.manager.config import DEFAULT_HOST, DEFAULT_PORT, check_url
from tenure.manager.pool_spec import check_name
from tenure.transport.credentials import CA, Credentials

T = TypeVar("T")

ANSWER_BYTES = 256 << 20
"""The most that is read of a manager's answer: several times a table of all ranges."""
TIMEOUT_SECONDS = 10.0
PATIENCE_SECONDS = 5.0
"""How long to wait for a leader: longer than a takeover takes with the default preset."""
PAUSE_SECONDS = 0.2

PoolName: TypeAlias = Annotated[str, Parameter(help="The pool's name.")]
OwnerName: TypeAlias = Annotated[
    str, Parameter(help="The owner's name, as `tenure owners POOL` lists it.")
]
ManagerUrls: TypeAlias = Annotated[
    list[str] | None,
    Parameter(
        name=["--manager", "-m"],
        negative="",
        help="URL of a manager; may be given several times. By default the URLs in "
        f"${VARIABLE}, separated by commas, or those in the file ${FILE_VARIABLE}, or "
        f"http://{DEFAULT_HOST}:{DEFAULT_PORT}.",
    ),
]


@Parameter(name="*")
@dataclass(frozen=True)
class AskingOptions:
    """The options of every command that asks a manager."""

    manager: ManagerUrls = None
    json: Annotated[bool, Parameter(negative="", help="Print the manager's answer, as JSON.")] = (
        False
    )


ASKING = AskingOptions()


class HttpReply(msgspec.Struct, frozen=True):
    """The answer of a manager."""

    status: int
    body: bytes

    def read(self, wanted: type[T]) -> T:
        """The answer as `wanted`. Raises TenureError if it is not an answer."""
        try:
            return msgspec.json.decode(self.body, type=wanted)
        except MALFORMED as error:
            raise TenureError(
                f"the answer does not come from a manager of this version of tenure: {error}"
            ) from error

    @property
    def text(self) -> str:
        """The answer as it came, on one line."""
        return self.body.decode(errors="replace").strip()


class LedReply(NamedTuple):
    """The answer of the leader, and its URL."""

    url: str
    reply: HttpReply


def path(pool: str, what: str, **parameters: str) -> str:
    """A path under a pool. Raises ConfigurationError where no pool can have that name."""
    check_name(pool)
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in parameters.items())
    return f"/v1/pools/{quote(pool, safe='')}/{what}" + (f"?{query}" if query else "")


def urls(given: Sequence[str] | None, environment: Mapping[str, str] = os.environ) -> list[str]:
    """The managers to ask. Raises ConfigurationError for what is not a URL."""
    found = list(given or environment.get(VARIABLE, "").replace(",", " ").split())
    where = "--manager" if given else f"${VARIABLE}"
    if not found and (file := environment.get(FILE_VARIABLE)):
        return list(ManagersFile(file).read())
    for url in found:
        check_url(where, url)
    return found or [f"http://{DEFAULT_HOST}:{DEFAULT_PORT}"]


def ask(
    given: Sequence[str] | None, target: str, body: object = None, method: str = ""
) -> HttpReply:
    """GET `target` from the leader, POST `body` to it, or use another method.

    Raises UsageError if the answer is that the question is wrong, and NoManager if no manager
    answers.
    """
    return ask_leader(given, lambda url: _ask_one(url, target, body, method=method)).reply


def ask_leader(
    given: Sequence[str] | None,
    ask_one: Callable[[str], HttpReply],
    told: Callable[[], str] | None = None,
) -> LedReply:
    """What the leader answers to `ask_one`, which asks the manager at a URL. `told` says how far
    that is. Raises as `ask`.
    """
    managers = urls(given)
    with waiting_for(managers) if told is None else WaitingLine(told):
        return _ask_until_led(managers, ask_one)


def _ask_until_led(managers: Sequence[str], ask_one: Callable[[str], HttpReply]) -> LedReply:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        found, why, is_soon = _ask_each(managers, ask_one)
        if found is not None:
            _checked(found.reply)
            return found
        if not is_soon or time.monotonic() > deadline:
            raise NoManager(
                f"no manager answered: {'; '.join(why)}. Start one with `tenure manager`, "
                f"or name one with --manager URL or {VARIABLE}"
            )
        time.sleep(PAUSE_SECONDS)


def _ask_each(
    managers: Sequence[str], ask_one: Callable[[str], HttpReply]
) -> tuple[LedReply | None, list[str], bool]:
    """The first answer; otherwise why no manager answered, and whether one may soon."""
    waiting, asked, why, is_soon = list(managers), set[str](), list[str](), False
    while waiting:
        url = waiting.pop(0).rstrip("/")
        if url in asked:
            continue
        asked.add(url)
        try:
            reply = ask_one(url)
        except (OSError, http.client.HTTPException) as error:
            why.append(f"{url}: {why_not(error)}")
            continue
        if reply.status != http.HTTPStatus.SERVICE_UNAVAILABLE:
            return LedReply(url, reply), why, False
        problem = reply.read(Problem)
        why.append(f"{url}: {problem.error}")
        is_soon = True
        if problem.leader:
            waiting.insert(0, problem.leader)
    return None, why, is_soon


def get_reply(url: str, target: str) -> HttpReply:
    """GET `target` from this very manager, whatever it answers. Raises as `http.client` does."""
    return _ask_one(url, target, None)


def get(url: str, target: str, timeout_seconds: float) -> HttpReply:
    """GET `target` from this very manager. Raises TenureError where it does not answer."""
    try:
        reply = _ask_one(url, target, None, timeout_seconds)
    except (OSError, http.client.HTTPException) as error:
        raise NoManager(why_not(error, timeout_seconds)) from error
    return _checked(reply)


def post(
    url: str, target: str, body: object, timeout_seconds: float = TIMEOUT_SECONDS
) -> HttpReply:
    """POST `body` to this very manager. Raises TenureError as `ask` does."""
    try:
        reply = _ask_one(url, target, body, timeout_seconds)
    except (OSError, http.client.HTTPException) as error:
        raise NoManager(f"{url}: {why_not(error)}") from error
    return _checked(reply)


def _ask_one(
    url: str,
    target: str,
    body: object,
    timeout_seconds: float = TIMEOUT_SECONDS,
    method: str = "",
) -> HttpReply:
    connection, headers = connection_to(url, timeout_seconds)
    try:
        if body is None:
            connection.request(method or "GET", target, headers=headers)
        else:
            data = msgspec.json.encode(body)
            headers["Content-Type"] = "application/json"
            connection.request(method or "POST", target, data, headers)
        response = connection.getresponse()
        said = response.read(ANSWER_BYTES + 1)
        if len(said) > ANSWER_BYTES:
            raise http.client.HTTPException(f"it answers with more than {ANSWER_BYTES:,} bytes")
        return HttpReply(response.status, said)
    finally:
        connection.close()


def connection_to(
    url: str, timeout_seconds: float
) -> tuple[http.client.HTTPConnection, dict[str, str]]:
    """A connection, not yet made, and what a request on it shows: as the environment has it."""
    parts = urlsplit(url)
    credentials = Credentials.from_environment()
    headers = credentials.headers(url)
    host, port = parts.hostname or "", parts.port
    tls = credentials.to(url)
    if tls is None:
        return http.client.HTTPConnection(host, port, timeout=timeout_seconds), headers
    made = http.client.HTTPSConnection(host, port, timeout=timeout_seconds, context=tls)
    return made, headers


def why_not(error: Exception, timeout_seconds: float = TIMEOUT_SECONDS) -> str:
    """The reason why a manager could not be asked, in words."""
    match error:
        case ConnectionRefusedError():
            return "connection refused, nothing listens there"
        case ssl.SSLCertVerificationError():
            why = error.verify_message
            return f"its certificate is not trusted: {why}; name its authority in {CA}"
        case TimeoutError():
            return f"no answer within {timeout_seconds:g} s"
        case OSError(strerror=str(text)):
            return text
        case _:
            return f"it does not speak HTTP ({type(error).__name__})"


def _checked(reply: HttpReply) -> HttpReply:
    if reply.status < http.HTTPStatus.BAD_REQUEST:
        return reply
    problem = reply.read(Problem)
    if reply.status in (http.HTTPStatus.NOT_FOUND, http.HTTPStatus.CONFLICT):
        raise PoolError(_paragraph(problem))
    if reply.status == http.HTTPStatus.SERVICE_UNAVAILABLE:
        raise NoManager(_paragraph(problem))
    if reply.status < http.HTTPStatus.INTERNAL_SERVER_ERROR:
        raise UsageError(_paragraph(problem))
    raise TenureError(_paragraph(problem))


def _paragraph(problem: Any) -> str:  # noqa: ANN401
    return f"{problem.error}. To fix it: {problem.way_out}"
