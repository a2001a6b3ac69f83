"""The managers in a file, which may change while clients run.

With the list in arguments or the environment, a new manager is found only by clients that start
later. Clients read a file again whenever they look for a leader, so managers can be replaced one by
one, in time even all of them, and no client has to be restarted (lookup libraries learn of managers
in this way in Centrifuge, section 2.1.1). A file that cannot be used at such a moment, because
somebody is just writing it, changes nothing.
"""

import os
from pathlib import Path

from tenure.client.manager_url import EXAMPLE, checked
from tenure.errors import ConfigurationError

MOST_BYTES = 64 << 10
"""The most bytes of a list of managers: usual ones have a few hundred. A longer file is not such a
list.
"""
WAY_OUT = f"write one URL a line, such as {EXAMPLE}; anything after a # is a comment"


class ManagersFile:
    """A file with a manager's URL on each line."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self._seen: tuple[int, int, int] | None = None

    def read(self) -> tuple[str, ...]:
        """The URLs. Raises ConfigurationError, which names the file and the line."""
        try:
            with self.path.open("rb") as file:
                found = os.fstat(file.fileno())
                text = file.read(MOST_BYTES + 1).decode()
        except (OSError, ValueError) as error:
            raise self._useless(f"it cannot be read: {error}") from None
        if len(text) > MOST_BYTES:
            raise self._useless(f"it is longer than {MOST_BYTES} bytes")
        urls = dict.fromkeys(
            checked(f"{self.path}, line {number}", line)
            for number, line in enumerate(_without_comments(text), 1)
            if line
        )
        if not urls:
            raise self._useless("it names no manager")
        self._seen = _state(found)
        return tuple(urls)

    def news(self) -> tuple[str, ...] | None:
        """The URLs, if the file has changed since it was read. Raises as `read` does, once for each
        change.
        """
        try:
            state = _state(self.path.stat())
        except OSError:
            return None  # it is being replaced
        if state == self._seen:
            return None
        self._seen = state
        return self.read()

    def _useless(self, why: str) -> ConfigurationError:
        return ConfigurationError(f"the file of managers {self.path}: {why}; {WAY_OUT}")


def _without_comments(text: str) -> list[str]:
    return [line.partition("#")[0].strip() for line in text.splitlines()]


def _state(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_size, found.st_mtime_ns
