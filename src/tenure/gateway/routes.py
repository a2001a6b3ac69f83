"""The routes of a gateway: which processes a request is for, by its path and its headers.

    /rooms/{room}=rooms                       the owner of that key in the pool `rooms`
    /rooms/{room} X-Canary:yes=rooms-next     the same, only for requests with that header
    /ask X-Room:{room}=rooms                  the key is in the header
    /=http://127.0.0.1:8000                   a plain server; no key is needed

The first route that fits is taken. Nothing here reads files or connects.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from tenure.base.keys import UserKey
from tenure.base.origin import parse
from tenure.errors import ConfigurationError
from tenure.manager.pool_spec import check_name
from tenure.routing.template import INTEGER, NOT_UTF_8, PLACE, Template

EXAMPLE = '"/rooms/{room}=rooms" or "/=http://127.0.0.1:8000"'
HEADER = re.compile(r"([!#$%&'*+.^_`|~\w-]+):(\S+)", re.ASCII)
MOST_ROUTES = 1000
"""Each request is compared with one after the other."""
Headers = Sequence[tuple[bytes, bytes]]


class HeaderRule(NamedTuple):
    """A header that a route asks for."""

    name: bytes
    value: bytes | None
    """The value that it must have; None if its value is the key."""
    is_int: bool = False
    """Whether the key is a number."""

    @classmethod
    def read(cls, text: str) -> "HeaderRule":
        """Parse `Name:value`, or `Name:{key}`."""
        found = HEADER.fullmatch(text)
        if found is None:
            raise ConfigurationError(
                f"{text!r} is no header: write it as Name:value or Name:{{key}}"
            )
        name, value = found[1].lower().encode(), found[2]
        place = PLACE.fullmatch(value)
        if place is None:
            return cls(name, value.encode())
        if place[2] not in (None, "str", "int"):
            raise ConfigurationError(f"the key in {text!r} is written {{name}} or {{name:int}}")
        return cls(name, None, place[2] == "int")

    def fits(self, headers: Headers) -> bool:
        """Whether a request with these headers has the value."""
        return any(name == self.name and value == self.value for name, value in headers)

    def key(self, headers: Headers) -> UserKey | None:
        """The key; None if there is none, or if there are two."""
        values = [value for name, value in headers if name == self.name]
        if len(values) != 1 or not values[0]:
            return None
        text = values[0].decode("utf-8", NOT_UTF_8)
        if not self.is_int:
            return text
        return int(text) if INTEGER.fullmatch(text) else None


class RoutedTo(NamedTuple):
    """Whom a request is for."""

    target: str
    """A pool, or the URL of a plain server."""
    key: UserKey | None
    """The key in the pool."""


class GatewayRoute:
    """A pattern of requests, and whom they are for."""

    def __init__(self, text: str) -> None:
        left, _, target = text.rpartition("=")
        path, *rules = left.split() or [""]
        if not path.startswith("/") or not target.strip():
            raise ConfigurationError(f"{text!r} is no route; write it like {EXAMPLE}")
        self.target = target.strip()
        self.is_plain = "://" in self.target
        read = [HeaderRule.read(each) for each in rules]
        self._wanted = [each for each in read if each.value is not None]
        self._in_header = next((each for each in read if each.value is None), None)
        self._template = Template(path) if "{" in path else None
        self._prefix = path.rstrip("/")
        places = (self._template is not None) + sum(each.value is None for each in read)
        if self.is_plain:
            parse(self.target, "the server of a route")
        else:
            check_name(self.target)
        if places != (0 if self.is_plain else 1):
            raise ConfigurationError(
                f"{text!r} names {places} keys: a route to a pool has one, in its path or in a "
                f"header, and a route to a plain server has none; write it like {EXAMPLE}"
            )

    def find(self, path: str, headers: Headers) -> RoutedTo | None:
        """Whom the request is for; None if this route does not fit."""
        key: UserKey | None = None
        if self._template is not None:
            key = self._template.find_plain(path)
            if key is None:
                return None
        elif not (path == self._prefix or path.startswith(self._prefix + "/")):
            return None
        for each in self._wanted:
            if not each.fits(headers):
                return None
        if self._in_header is not None:
            key = self._in_header.key(headers)
            if key is None:
                return None
        return RoutedTo(self.target, key)


class GatewayRoutes:
    """All routes of a gateway, in order."""

    def __init__(self, routes: Iterable[GatewayRoute]) -> None:
        self._routes = tuple(routes)

    @classmethod
    def read(cls, lines: Iterable[tuple[str, str]]) -> "GatewayRoutes":
        """Read routes, each with the place where it stands. Raises ConfigurationError, which names
        the place of the first that cannot be used.
        """
        found = []
        for place, text in lines:
            try:
                found.append(GatewayRoute(text))
            except ConfigurationError as error:
                raise ConfigurationError(f"{place}: {error}") from None
        if not found:
            raise ConfigurationError(f"a gateway needs a route: write it like {EXAMPLE}")
        if len(found) > MOST_ROUTES:
            raise ConfigurationError(f"{len(found)} routes: at most {MOST_ROUTES} are compared")
        return cls(found)

    def find(self, path: str, headers: Headers) -> RoutedTo | None:
        """Whom a request is for; None if no route fits. The path is as on the wire: percent signs
        are decoded before it is divided, as owners do it.
        """
        if "%" in path:
            path = unquote(path, errors=NOT_UTF_8)
        for each in self._routes:
            found = each.find(path, headers)
            if found is not None:
                return found
        return None

    @property
    def pools(self) -> set[str]:
        """The pools to which they lead."""
        return {each.target for each in self._routes if not each.is_plain}

    @property
    def servers(self) -> set[str]:
        """The plain servers to which they lead."""
        return {each.target for each in self._routes if each.is_plain}
