from collections.abc import Iterator

import pytest

from tests.integration.member.servers import COMMANDS, WebServer, serving

WORKERS = {
    "uvicorn": 1,
    "uvicorn-4": 4,
    "gunicorn": 3,
    "hypercorn": 3,
    "aiohttp": 1,
    "aiohttp-3": 3,
}


@pytest.fixture(scope="module", params=list(COMMANDS))
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WebServer]:
    log = tmp_path_factory.mktemp("server") / "log"
    with serving(request.param, log, WORKERS[request.param]) as it:
        yield it
