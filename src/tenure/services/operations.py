"""The table of a service's operations over HTTP. Both its routes and its OpenAPI document are made
from it, so that they always agree.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, NamedTuple, ParamSpec, TypeAlias, TypeVar

import msgspec
from aiohttp import hdrs, web

from tenure.errors import MALFORMED, ServiceRefusal, said_of
from tenure.services.limits import JSON_DEPTH

Handler: TypeAlias = Callable[[Any, "ServiceRequest"], Awaitable["ServiceAnswer"]]
BoundHandler: TypeAlias = Callable[["ServiceRequest"], Awaitable["ServiceAnswer"]]
H = TypeVar("H", bound=Handler)
P = ParamSpec("P")
OPERATION = "__tenure_operation__"


class ServiceAnswer(NamedTuple):
    """The answer of an operation."""

    status: int = 200
    body: object = None
    """The value that msgspec encodes as JSON; None for an answer without a body."""
    headers: Mapping[str, str] = {}


class ServiceRequest(NamedTuple):
    """A request, as an operation sees it: its parts have the types that the operation declares."""

    key: str
    body: Any
    query: Any
    path: Mapping[str, str]
    headers: Mapping[str, str]
    request: web.Request
    check_again: Callable[[], None] = lambda: None
    """Raises ServiceRefusal if the token is no longer valid after a wait."""


class NoQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The query of operations that have none."""


class Operation(NamedTuple):
    """One operation of a service."""

    method: str
    path: str
    """The path, with {key} and other names in braces."""
    summary: str
    answers: Mapping[int, Any]
    """The type of the body, or None, by status."""
    body: Any = None
    query: type[msgspec.Struct] = NoQuery
    headers: Mapping[str, str | tuple[str, str]] = {}
    """The meaning of headers of the request, by their names; with a pattern for their values."""
    refusals: tuple[int, ...] = ()
    """The statuses with which it refuses, beyond those that every operation has."""
    media: str = "application/json"
    """The headers of answers that are not refusals."""
    document: str = ""
    """The media type of the body, if that is a document and not JSON."""
    is_optional: bool = False
    """Whether the body may be left out."""

    @property
    def is_read(self) -> bool:
        """Whether it changes nothing, so that whoever may only read may ask it."""
        return self.method == hdrs.METH_GET


def _marking(make: Callable[P, Operation]) -> Callable[P, Callable[[H], H]]:
    def operation(*args: P.args, **options: P.kwargs) -> Callable[[H], H]:
        def mark(handler: H) -> H:
            setattr(handler, OPERATION, make(*args, **options))
            return handler

        return mark

    return operation


operation = _marking(Operation)
"""Marks a method of a service that carries out an operation; takes the arguments of `Operation`."""


def operations_of(service: object) -> list[tuple[Operation, BoundHandler]]:
    """All operations of a service, with what carries them out, in the order of its class."""
    return [(each, getattr(service, name)) for name, each in _named(type(service))]


def operations_in(kind: type) -> list[Operation]:
    """All operations of a service's class."""
    return [each for _, each in _named(kind)]


def _named(kind: type) -> Iterable[tuple[str, Operation]]:
    for each in reversed(kind.__mro__):
        for name, member in vars(each).items():
            if hasattr(member, OPERATION):
                yield name, getattr(member, OPERATION)


def decoded_body(of: Operation, data: bytes) -> Any:  # noqa: ANN401  # of the operation's type
    """The body of a request. Raises ServiceRefusal if it is not JSON, or not of the type."""
    if of.body is None or (of.is_optional and not data):
        return None
    try:
        found = msgspec.json.decode(data, type=of.body)
        check_readable(data)
    except msgspec.ValidationError as error:
        raise ServiceRefusal(
            422, "shape", f"the body does not have the expected form: {said_of(error, data)}"
        ) from None
    except MALFORMED as error:
        raise ServiceRefusal(400, "json", f"the body is not JSON: {error}") from None
    return found


def check_readable(data: bytes, around: int = 0) -> None:
    """Look into all of this JSON, because parts of it may be kept unchanged, for others to read
    with that many levels `around` them. Raises what decoding raises, and ServiceRefusal if it is
    nested too deep.
    """
    level, depth = [msgspec.json.decode(data)], around
    if data.count(b"[") + data.count(b"{") + around <= JSON_DEPTH.most:
        return
    while level := [each for each in level if isinstance(each, dict | list)]:
        depth += 1
        level = [each for part in level for each in _parts(part)]
    JSON_DEPTH.check(depth)


def _parts(of: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return of.values() if isinstance(of, dict) else of


def decoded_query(of: Operation, query: Mapping[str, str]) -> Any:  # noqa: ANN401
    """The query of a request. Raises ServiceRefusal for parameters that the operation does not
    take.
    """
    try:
        return msgspec.convert(dict(query), of.query, strict=False)
    except msgspec.ValidationError as error:
        raise ServiceRefusal(
            422, "query", f"the query does not have the expected form: {error}"
        ) from None
