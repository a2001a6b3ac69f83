"""Templates of paths, which say where the key stands: `/carts/{user}`, or `/rooms/{room:int}`.

One segment of a template is the key; the others are literal. A template also finds the key of every
path below it, because everything below `/carts/ann` belongs to ann's cart. As in the routes of web
frameworks, `:int` makes the key an int: in a hashed pool 42 and "42" are two keys.
"""

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias
from urllib.parse import unquote

from tenure.base.keys import UserKey
from tenure.base.names import shown
from tenure.errors import ConfigurationError, KeyTypeError, UsageError

PathKey: TypeAlias = str | Sequence[str] | Callable[[str], UserKey | None]
"""One template, several, or a function from the decoded path to the key, or to None if it has no
key.
"""

PLACE = re.compile(r"\{(\w+)(?::(\w+))?\}")
INTEGER = re.compile(r"\d+", re.ASCII)
NOT_UTF_8 = "surrogateescape"
"""Makes bytes that are not UTF-8 refused as a key, and not read as another key."""
EXAMPLE = 'key="/carts/{user}"'


class Template:
    def __init__(self, given: str) -> None:
        self._segments = given.split("/")[1:]
        places = [PLACE.fullmatch(each) for each in self._segments]
        found = [(i, place) for i, place in enumerate(places) if place]
        is_sound = given.startswith("/") and given.count("{") == given.count("}") == len(found) == 1
        if not is_sound or found[0][1][2] not in (None, "str", "int"):
            raise ConfigurationError(
                f"key cannot be {given!r}: a template begins with / and names the key in one whole "
                f"segment, as {{name}} or {{name:int}}; write it like {EXAMPLE}"
            )
        self._at, place = found[0]
        self._is_int = place[2] == "int"
        self._before = "/".join(["", *self._segments[: self._at], ""])
        self._after = "".join(f"/{each}" for each in self._segments[self._at + 1 :])

    def find(self, segments: Sequence[str]) -> UserKey | None:
        """The key in a path's decoded segments; None if it is not such a path."""
        if len(segments) < len(self._segments):
            return None
        for i, wanted in enumerate(self._segments):
            if segments[i] != wanted and i != self._at:
                return None
        return self._key(segments[self._at])

    def find_plain(self, path: str) -> UserKey | None:
        """The same in a path that is decoded already, without taking all of it apart."""
        if not path.startswith(self._before):
            return None
        start = len(self._before)
        end = path.find("/", start)
        if end < 0:
            found = path[start:]
            return None if self._after else self._key(found) if self._is_int else found or None
        rest = path[end:]
        if self._after and rest != self._after and not rest.startswith(self._after + "/"):
            return None
        return self._key(path[start:end])

    def _key(self, found: str) -> UserKey | None:
        if not self._is_int:
            return found or None
        return int(found) if INTEGER.fullmatch(found) else None


class Templates:
    """All templates, or the function, that say where the key is."""

    def __init__(self, given: PathKey) -> None:
        self._shown = repr(given)
        self._call = given if callable(given) else None
        self._templates: tuple[Template, ...] = ()
        if self._call is not None:
            return
        each_given = (given,) if isinstance(given, str) else given
        if not isinstance(each_given, Sequence) or not each_given:
            raise ConfigurationError(
                f"key is a template, several, or a function of the path, not {shown(given)}; "
                f"write it like {EXAMPLE}"
            )
        for each in each_given:
            if not isinstance(each, str):
                raise ConfigurationError(
                    f"a template is a str, not {shown(each)}; write it as {EXAMPLE}"
                )
        self._templates = tuple(map(Template, each_given))

    def find(self, path: str) -> UserKey | None:
        """The key in a path whose percent signs are decoded already; None if it has no key."""
        if self._call is not None:
            return self._checked(self._call(path))
        for each in self._templates:
            found = each.find_plain(path)
            if found is not None:
                return found
        return None

    def find_raw(self, path: str) -> UserKey | None:
        """The key in a path as it is on the wire."""
        if "%" not in path or not path.startswith("/"):
            return self.find(path)
        if self._call is not None:
            return self._checked(self._call(unquote(path, errors=NOT_UTF_8)))
        return self._in([unquote(each, errors=NOT_UTF_8) for each in path.split("/")[1:]])

    def need_raw(self, path: str) -> UserKey:
        """Return what `find_raw` does, but raise UsageError if the path has no key."""
        # Most paths stand on the wire as they are meant.
        found = self.find_raw(path) if "%" in path else self.find(path)
        if found is None:
            raise UsageError(
                f"there is no key in the path {path!r}, which was not sent: key={self._shown} does "
                "not find one. Ask for such paths without the routing, or name further templates; "
                "if this client also asks other hosts, name the one to route for with origin="
            )
        return found

    def _in(self, segments: Sequence[str]) -> UserKey | None:
        for each in self._templates:
            found = each.find(segments)
            if found is not None:
                return found
        return None

    def _checked(self, found: object) -> UserKey | None:
        is_key = isinstance(found, str | bytes | int) and not isinstance(found, bool)
        if found is None or is_key:
            return found  # type: ignore[return-value]
        raise KeyTypeError(
            f"the function given as key returned {found!r} ({type(found).__name__}); it must "
            "return a key, which is a str, bytes or an int, or None for a path without a key"
        )
