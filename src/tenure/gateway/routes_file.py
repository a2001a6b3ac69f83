"""The file of a gateway's routes: one on each line; what follows # is a comment."""

from collections.abc import Iterator
from pathlib import Path

from tenure.errors import ConfigurationError
from tenure.gateway.routes import GatewayRoutes

MOST_BYTES = 1 << 20


def read_routes(given: tuple[str, ...], file: Path | None) -> GatewayRoutes:
    """The routes that were given, and then those of the file. Raises ConfigurationError, which
    names the line that cannot be used.
    """
    return GatewayRoutes.read(_lines(given, file))


def _lines(given: tuple[str, ...], file: Path | None) -> Iterator[tuple[str, str]]:
    for each in given:
        yield "--route", each
    if file is None:
        return
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
