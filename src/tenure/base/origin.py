"""Origins: scheme, host and port of a server, taken apart.

A URL is put together from its parts. If a part of it came from outside, a text would be read again,
and another host could stand in it than the one that was meant: `http://10.0.0.7:8000` followed by
`@10.0.0.9:80/` leads to 10.0.0.9.
"""

from typing import NamedTuple
from urllib.parse import urlsplit

from tenure.base.names import shown_url
from tenure.errors import ConfigurationError


class Origin(NamedTuple):
    """An owner's address, taken apart."""

    scheme: str
    host: str
    port: int
    authority: str
    """Host and port, as they stand in a URL."""
    prefix: str
    """The prefix of each path; usually empty."""

    def path_to(self, path: str) -> str:
        """The path to send there for a `path` below the prefix. Raises ValueError if it does not
        begin with a slash.
        """
        if not path.startswith("/"):
            raise ValueError(
                f"{path!r:.100} does not begin with /: it is no path at {self.authority}"
            )
        return self.prefix + path


def parse(url: str, what: str) -> Origin:
    """An http URL, taken apart. Raises ConfigurationError if it is not one."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except (ValueError, AttributeError, TypeError):
        parts, port = urlsplit(""), None
    is_plain = not (parts.query or parts.fragment or "@" in parts.netloc)
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain:
        raise ConfigurationError(
            f"{what} is {shown_url(url)}, and not the URL of an HTTP server; "
            f'write it like {what}="http://10.0.0.7:8000"'
        )
    host, port = parts.hostname, port or (443 if parts.scheme == "https" else 80)
    authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return Origin(parts.scheme, host, port, authority, parts.path.rstrip("/"))
