"""The URL of a server, most often a manager, as users write it."""

from urllib.parse import urlsplit

from tenure.errors import ConfigurationError

EXAMPLE = "http://127.0.0.1:7400"
SHOWN_CHARACTERS = 200
"""How much an error shows of a text that should be a URL: the text may be a whole file."""


def checked(source: str, given: str, of: str = "a manager", example: str = EXAMPLE) -> str:
    """The URL in `given`, which `source` names. Raises ConfigurationError if it is not a URL."""
    url = given.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        port_is_wrong = parts.port == 0
    except ValueError as error:
        raise useless(source, given, str(error), of, example) from None
    if parts.scheme not in ("http", "https"):
        raise useless(source, given, "it does not begin with http:// or https://", of, example)
    if not parts.hostname or port_is_wrong:
        raise useless(source, given, "it has no host, or port 0", of, example)
    if parts.query or parts.fragment:
        raise useless(source, given, "it has a query or a fragment", of, example)
    return url


def useless(
    source: str, given: object, why: str, of: str = "a manager", example: str = EXAMPLE
) -> ConfigurationError:
    """The error for a text that cannot be the URL of a server."""
    return ConfigurationError(
        f"{source}: {repr(given)[:SHOWN_CHARACTERS]} is not the URL of {of}: {why}; write it like "
        f'"{example}"'
    )
