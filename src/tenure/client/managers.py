"""Where the managers are, as users say it: in the call, in the environment, or in a file."""

import os
from collections.abc import Sequence
from typing import NamedTuple

from tenure.client.manager_url import EXAMPLE, checked, useless
from tenure.client.managers_file import ManagersFile
from tenure.errors import ConfigurationError

VARIABLE = "TENURE_MANAGERS"
FILE_VARIABLE = "TENURE_MANAGERS_FILE"
FILE_SIGN = "@"


class Managers(NamedTuple):
    """The managers that are known, and the file that may name others later."""

    urls: tuple[str, ...]
    file: ManagersFile | None = None


def find_managers(managers: str | Sequence[str] | None) -> Managers:
    """Those in `managers`: a sequence, a string with commas, or "@FILE"; where None, those that the
    environment names.

    Raises ConfigurationError if there is no URL, or one cannot be used.
    """
    path = _path(managers)
    if path is None:
        return Managers(manager_urls(managers))
    file = ManagersFile(path)
    return Managers(file.read(), file)


def _path(managers: str | Sequence[str] | None) -> str | None:
    if isinstance(managers, str) and managers.startswith(FILE_SIGN):
        return managers.removeprefix(FILE_SIGN)
    if managers is not None:
        return None
    path = os.environ.get(FILE_VARIABLE, "")
    if path and os.environ.get(VARIABLE, "").strip():
        raise ConfigurationError(
            f"the managers are named twice, by {VARIABLE} and by {FILE_VARIABLE}: unset one of them"
        )
    return path or None


def manager_urls(managers: str | Sequence[str] | None) -> tuple[str, ...]:
    """The URLs in `managers`, a sequence or a string with commas; where None, in the environment.

    Raises ConfigurationError if there is no URL, or one cannot be used.
    """
    source = "managers"
    if managers is None:
        source = VARIABLE
        managers = os.environ.get(VARIABLE, "")
        if not managers.strip():
            raise ConfigurationError(
                f'no manager is named: pass its URL, for example "{EXAMPLE}", or set {VARIABLE} '
                f"in the environment (several are separated by commas), or {FILE_VARIABLE} to the "
                "path of a file with one on each line"
            )
    try:
        given = managers.split(",") if isinstance(managers, str) else list(managers)
    except TypeError:
        raise ConfigurationError(
            f"{source} is a URL, or several in a sequence or separated by commas, not "
            f'{managers!r} ({type(managers).__name__}); write it like "{EXAMPLE}"'
        ) from None
    for each in given:
        if not isinstance(each, str):
            raise useless(source, each, f"it is a {type(each).__name__}, not a str")
    urls = tuple(dict.fromkeys(checked(source, each) for each in given if each.strip()))
    if not urls:
        raise ConfigurationError(
            f'{source} names no manager: {managers!r}; write its URL, for example "{EXAMPLE}"'
        )
    return urls
