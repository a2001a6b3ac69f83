"""The last answer of each server, or the reason why it could not be reached: for the log, and for
the error when no server helps.
"""

from collections.abc import Sequence

SILENT = "no answer"


class Servers:
    """The servers that a client speaks to, and the last that is known of each."""

    def __init__(self, urls: Sequence[str] = ()) -> None:
        self._last = dict.fromkeys(urls, SILENT)

    def name(self, urls: Sequence[str]) -> None:
        """These are the servers from here on."""
        self._last = {url: self._last.get(url, SILENT) for url in urls}

    def __contains__(self, url: str) -> bool:
        return url in self._last

    def note(self, url: str, what: str) -> None:
        """Note the result of the last attempt with the server at `url`."""
        if url in self._last:
            self._last[url] = what

    def __str__(self) -> str:
        return "; ".join(f"{url}: {last}" for url, last in self._last.items())
