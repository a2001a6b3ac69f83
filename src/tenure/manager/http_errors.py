"""HTTP errors as JSON: what is wrong, and the way out."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec
from aiohttp import web

from tenure.errors import MALFORMED, said_of
from tenure.manager.answers import Problem

T = TypeVar("T")

WAYS_OUT = {
    404: "GET / lists what there is",
    405: "use one of the methods in the Allow header",
}
MOST_DIGITS = 19
"""The most digits of a number: 2**63 has as many, and no longer number means anything here."""
SHOWN_CHARACTERS = 200
"""The most that is told of what a client sent: a path may have 8,000."""
_RETRY_SECONDS = {"Retry-After": "1"}


class HttpRefusal(Exception):
    """A request that cannot be answered."""

    def __init__(
        self, status: int, error: str, way_out: str, leader: str | None = None, there: str = ""
    ) -> None:
        super().__init__(error)
        self.status = status
        self.problem = Problem(error, way_out, leader)
        self.there = there
        """What does exist, for whoever may read about all pools."""

    def with_names(self) -> "HttpRefusal":
        """The same, and what does exist."""
        error = f"{self.problem.error}; {self.there}" if self.there else self.problem.error
        return HttpRefusal(self.status, error, self.problem.way_out, self.problem.leader)


SHORT_CHARACTERS = 1000
Short: TypeAlias = Annotated[str, msgspec.Meta(max_length=SHORT_CHARACTERS)]
"""A word in a body: no name, kind or token is longer, and shorter bounds say more."""


def as_json(body: Any, status: int = 200) -> web.Response:  # noqa: ANN401 - whatever msgspec encodes
    """A JSON answer."""
    data = msgspec.json.encode(body) + b"\n"
    return web.Response(body=data, status=status, content_type="application/json")


def decoded_body(body: bytes, wanted: type[T], way_out: str) -> T:
    """The body of a request. Raises HttpRefusal if it is not such a body."""
    try:
        return msgspec.json.decode(body, type=wanted)
    except MALFORMED as error:
        raise HttpRefusal(400, said_of(error, body), way_out) from error


@web.middleware
async def errors_as_json(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Turn what a handler raises into an answer."""
    try:
        return await handler(request)
    except HttpRefusal as refused:
        response = as_json(refused.problem, refused.status)
        if refused.status == web.HTTPServiceUnavailable.status_code:
            response.headers.update(_RETRY_SECONDS)
        if refused.status == web.HTTPUnauthorized.status_code:
            response.headers["WWW-Authenticate"] = "Bearer"
        if refused.status == web.HTTPTooManyRequests.status_code:
            response.force_close()
            response.headers.update(_RETRY_SECONDS)
        return response
    except web.HTTPException as error:
        if error.status < web.HTTPBadRequest.status_code:
            raise
        what = f"{error.reason}: {cut(request.method)} {cut(request.path)}"
        way_out = WAYS_OUT.get(error.status, error.text or "see the documentation of the HTTP API")
        if isinstance(error, web.HTTPRequestEntityTooLarge):
            way_out = f"send less in one request: {error.text}"
        response = as_json(Problem(what, way_out), error.status)
        if "Allow" in error.headers:
            response.headers["Allow"] = error.headers["Allow"]
        return response


def whole_number(request: web.Request, name: str, what: str, way_out: str) -> int | None:
    """A parameter that is a number from 0 on; None where it is left out. Raises HttpRefusal."""
    written = request.query.get(name)
    if written is None:
        return None
    if written.isascii() and written.isdigit() and len(written) <= MOST_DIGITS:
        return int(written)
    raise HttpRefusal(400, f"{name}={cut(written)} is not {what}", way_out)


def cut(text: str) -> str:
    """A text that a client sent, for an error: cut if it is long."""
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."


def check_is_json(request: web.Request) -> None:
    """Raise HttpRefusal unless the body is said to be JSON.

    Also what keeps a web page from sending one without being asked.
    """
    if request.content_type != "application/json":
        raise HttpRefusal(415, "the body is not JSON", "send Content-Type: application/json")
