"""Where the managers are, as users say it: in the call, or in the environment."""

import os
from collections.abc import Sequence
from urllib.parse import urlsplit

from leasehold.errors import ConfigurationError

VARIABLE = "LEASEHOLD_MANAGERS"
EXAMPLE = "http://127.0.0.1:7400"


def manager_urls(managers: str | Sequence[str] | None) -> tuple[str, ...]:
    """The URLs in `managers`, a sequence or a string with commas; where None, in the environment.

    Raises ConfigurationError where there is none, or one cannot be used.
    """
    source = "managers"
    if managers is None:
        source = VARIABLE
        managers = os.environ.get(VARIABLE, "")
        if not managers.strip():
            raise ConfigurationError(
                f'no manager is named: pass its URL, for example "{EXAMPLE}", or set {VARIABLE} '
                "in the environment (several are separated by commas)"
            )
    given = managers.split(",") if isinstance(managers, str) else list(managers)
    for each in given:
        if not isinstance(each, str):
            raise _useless(source, each, f"it is a {type(each).__name__}, not a str")
    urls = tuple(dict.fromkeys(_checked(source, each) for each in given if each.strip()))
    if not urls:
        raise ConfigurationError(
            f'{source} names no manager: {managers!r}; write its URL, for example "{EXAMPLE}"'
        )
    return urls


def _checked(source: str, given: str) -> str:
    url = given.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        port_is_wrong = parts.port == 0
    except ValueError as error:
        raise _useless(source, given, str(error)) from None
    if parts.scheme not in ("http", "https"):
        raise _useless(source, given, "it does not begin with http:// or https://")
    if not parts.hostname or port_is_wrong:
        raise _useless(source, given, "it has no host, or port 0")
    if parts.query or parts.fragment:
        raise _useless(source, given, "it has a query or a fragment")
    return url


def _useless(source: str, given: object, why: str) -> ConfigurationError:
    return ConfigurationError(
        f'{source}: {given!r} is not the URL of a manager: {why}; write it like "{EXAMPLE}"'
    )
