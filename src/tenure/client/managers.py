"""Where the managers are, as users name them in the call, in the environment, or in a file; and the
result of asking each of them.
"""

import logging
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from tenure.client.manager_url import EXAMPLE, check_plain, checked, useless
from tenure.client.managers_file import ManagersFile
from tenure.client.servers import Servers
from tenure.client.shell import Shell
from tenure.errors import ConfigurationError, NoManager
from tenure.protocol.lease.client_events import ManagersNamed
from tenure.protocol.lease.other_leaders import is_of_realm, wrong_realm
from tenure.protocol.lease.rivalry import check_realm

VARIABLE = "TENURE_MANAGERS"
FILE_VARIABLE = "TENURE_MANAGERS_FILE"
FILE_SIGN = "@"
REALM_VARIABLE = "TENURE_REALM"


class Managers(NamedTuple):
    """The managers that are known, and the file that may name others later."""

    urls: tuple[str, ...]
    file: ManagersFile | None = None


def find_managers(
    managers: str | Sequence[str] | None, there_are: tuple[str, ...] = ()
) -> Managers:
    """The managers in `managers`: a sequence, a string with commas, or "@FILE"; if it is None,
    those that the environment names. If `there_are` any, those, whatever was named.

    Raises ConfigurationError if there is no URL, or one cannot be used.
    """
    if there_are:
        return Managers(there_are)
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
    """The URLs in `managers`, a sequence or a string with commas; if it is None, those in the
    environment.

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
                "path of a file with one on each line. To try it on this host, let `tenure run "
                f"COMMAND` start your program: it runs a manager, and sets {VARIABLE}"
            )
    if isinstance(managers, str):
        check_plain(source, managers)
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


def find_realm(realm: str | None) -> str:
    """The realm of the managers: the given one, or that of the environment; empty for none.

    Raises ConfigurationError if it cannot be one.
    """
    return check_realm(os.environ.get(REALM_VARIABLE, "") if realm is None else realm)


class KnownManagers:
    """The managers that one client asks."""

    def __init__(self, found: Managers, client: str, logger: logging.Logger) -> None:
        self.servers = Servers(found.urls)
        self.file = found.file
        self._client = client
        self._log = logger

    def read_again(self, shell: Shell[Any, Any, Any], file: ManagersFile) -> None:
        """Read the file again if it has changed; called while the client looks for a leader."""
        try:
            managers = file.news()
        except ConfigurationError as error:
            self._log.warning("%s keeps to the managers that it knows: %s", self._client, error)
            return
        if managers is not None:
            self._log.info("%s: the managers are now %s", self._client, ", ".join(managers))
            shell.counts["managers read"] += 1
            self.servers.name(managers)
            shell.driver.post(ManagersNamed(managers))

    def stands_by(self, manager: str, leader: str | None) -> None:
        """The manager said that it does not lead."""
        where = f"{leader} leads" if leader else "no leader is known"
        unknown = "" if leader is None or leader in self.servers else ", which is not in the list"
        self.servers.note(manager, f"stands by; {where}{unknown}")

    def check_realm(self, manager: str, theirs: str, ours: str) -> bool:
        """Whether a manager is of the client's realm, as far as either has one."""
        is_ours = is_of_realm(theirs, ours)
        if not is_ours:
            self.servers.note(manager, wrong_realm(theirs, ours))
        return is_ours

    def none_helped(self, timeout_seconds: float) -> NoManager:
        """The error if no manager answered usefully in time."""
        return NoManager(
            f"{self._client} found no manager within {timeout_seconds:g} s. Tried {self.servers}. "
            "See that a manager runs there (`tenure manager`), or name others with managers= or "
            f"{VARIABLE}"
        )
