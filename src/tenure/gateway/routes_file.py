"""Where the routes of a gateway come from. In its file there is one on each line, and what follows
# is a comment.
"""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from tenure.errors import ConfigurationError
from tenure.gateway.routes import MOST_ROUTES, GatewayRoutes

MOST_BYTES = 1 << 20
logger = logging.getLogger("tenure.gateway")


class RouteSources:
    """All of them. What somebody has written comes first, and then what members bring."""

    def __init__(self, given: Sequence[str], file: Path | None, rest: str | None) -> None:
        self._given = given
        self._file = file
        self._rest = rest
        self.brought: Sequence[str] = ()

    def read(self) -> GatewayRoutes:
        """Read the routes. Raises ConfigurationError, which names the line that cannot be used."""
        return GatewayRoutes.read(self._lines())

    def _lines(self) -> Iterator[tuple[str, str]]:
        own = [("--route", each) for each in self._given]
        if self._file is not None:
            own += _lines_of(self._file)
        rest = [] if self._rest is None else [("--rest", f"/={self._rest}")]
        # What members bring never makes the operator's own routes too many.
        room = max(0, MOST_ROUTES - len(own) - len(rest))
        if len(self.brought) > room:
            logger.warning(
                "%d of the routes that members bring are left out: at most %d are compared",
                *(len(self.brought) - room, MOST_ROUTES),
            )
        yield from own
        for each in self.brought[:room]:
            yield "a member", each
        yield from rest


def _lines_of(file: Path) -> Iterator[tuple[str, str]]:
    try:
        with file.open("rb") as opened:
            data = opened.read(MOST_BYTES + 1)
        text = data.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the routes in {file} cannot be read: {error}") from None
    if len(data) > MOST_BYTES:
        raise ConfigurationError(
            f"{file} has more than {MOST_BYTES} bytes: it is no file of routes"
        )
    for number, line in enumerate(text.splitlines(), 1):
        route = line.partition("#")[0].strip()
        if route:
            yield f"{file}:{number}", route
