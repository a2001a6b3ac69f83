"""HTTP errors as JSON: what is wrong, and the way out."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import web

from tenure.manager.answers import Problem

WAYS_OUT = {
    404: "GET / lists what there is",
    405: "use one of the methods in the Allow header",
    413: "send less in one request",
}
_RETRY_SECONDS = {"Retry-After": "1"}


class HttpRefusal(Exception):
    """A request that cannot be answered."""

    def __init__(self, status: int, error: str, way_out: str, leader: str | None = None) -> None:
        super().__init__(error)
        self.status = status
        self.problem = Problem(error, way_out, leader)


def as_json(body: Any, status: int = 200) -> web.Response:  # noqa: ANN401 - whatever msgspec encodes
    """A JSON answer."""
    data = msgspec.json.encode(body) + b"\n"
    return web.Response(body=data, status=status, content_type="application/json")


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
        return response
    except web.HTTPException as error:
        if error.status < web.HTTPBadRequest.status_code:
            raise
        what = f"{error.reason}: {request.method} {request.path}"
        way_out = WAYS_OUT.get(error.status, error.text or "see the documentation of the HTTP API")
        response = as_json(Problem(what, way_out), error.status)
        if "Allow" in error.headers:
            response.headers["Allow"] = error.headers["Allow"]
        return response


def check_is_json(request: web.Request) -> None:
    """Raise HttpRefusal unless the body is said to be JSON.

    Also what keeps a web page from sending one without being asked.
    """
    if request.content_type != "application/json":
        raise HttpRefusal(415, "the body is not JSON", "send Content-Type: application/json")
