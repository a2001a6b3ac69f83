"""The URL of a server, most often a manager, as users write it."""

from urllib.parse import urlsplit

from tenure.base.names import shown_url
from tenure.errors import ConfigurationError

EXAMPLE = "http://127.0.0.1:7400"


def checked(source: str, given: str, of: str = "a manager", example: str = EXAMPLE) -> str:
    """The URL in `given`, which `source` names. Raises ConfigurationError if it is not a URL."""
    check_plain(source, given, of, example)
    url = given.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        port_is_wrong = parts.port == 0
    except ValueError:
        raise useless(source, given, "its host or its port is none", of, example) from None
    if parts.scheme not in ("http", "https"):
        raise useless(source, given, "it does not begin with http:// or https://", of, example)
    if not parts.hostname or port_is_wrong:
        raise useless(source, given, "it has no host, or port 0", of, example)
    if parts.query or parts.fragment:
        raise useless(source, given, "it has a query or a fragment", of, example)
    return url


def check_plain(source: str, given: str, of: str = "a manager", example: str = EXAMPLE) -> None:
    """Raise ConfigurationError if a password may stand in `given`, which may be several URLs."""
    if "@" in given:
        why = "a user or a password stands before its @, and URLs are shown and logged; present"
        raise useless(source, given, f"{why} a token, with TENURE_TOKEN", of, example)


def useless(
    source: str, given: object, why: str, of: str = "a manager", example: str = EXAMPLE
) -> ConfigurationError:
    """The error for a text that cannot be the URL of a server."""
    return ConfigurationError(
        f'{source}: {shown_url(given)} is not the URL of {of}: {why}; write it like "{example}"'
    )
