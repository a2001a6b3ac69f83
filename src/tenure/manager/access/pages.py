"""Requests of pages in somebody's browser: all are refused, unless the pages are our own.

Browsers let any page speak to this machine, and if no token is required, nobody has to log in.
"""

import ipaddress
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from aiohttp import hdrs

from tenure.manager.http_errors import HttpRefusal, cut


class OwnNames(NamedTuple):
    """The names under which a port is reached."""

    what: str
    """Listens there."""
    url: str
    known_as: tuple[str, ...]
    is_loopback: bool

    def check(self, headers: Mapping[str, str], *, asks_tokens: bool) -> None:
        """Raise HttpRefusal if another site's page has sent the request."""
        for name in (hdrs.ORIGIN, hdrs.HOST, hdrs.AUTHORIZATION):
            if not headers.get(name, "").isascii():  # and perhaps no text at all
                raise HttpRefusal(400, f"the header {name} is not in ASCII", "send it in ASCII")
        origin, host = headers.get(hdrs.ORIGIN), headers.get(hdrs.HOST, "")
        if origin is not None and origin.partition("://")[2] != host:
            why = f"a page of {cut(origin)} may not speak to a {self.what}"
            raise HttpRefusal(403, why, "use a client")
        if (self.is_loopback or not asks_tokens) and not self._is_ours(host):
            raise HttpRefusal(
                403,
                f"{cut(host)!r} is not a name by which this {self.what} is known",
                f"ask {self.url}, or start it with --known-as and that name",
            )

    def _is_ours(self, host: str) -> bool:
        """Whether a request that shows no token was meant for this port.

        Anybody can point a name of theirs to our address, and a page of that name then has our
        origin; only its Host reveals it. The Host of such a page cannot be an address, or a name
        without a dot.
        """
        try:
            name = urlsplit(f"//{host}").hostname or ""
            if name in ("localhost", urlsplit(self.url).hostname, *self.known_as):
                return True
            if not self.is_loopback and name and "." not in name and ":" not in name:
                return True
            return ipaddress.ip_address(name).is_loopback or not self.is_loopback
        except ValueError:
            return False
