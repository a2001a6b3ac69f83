from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.integration.member.servers import COMMANDS, WebServer, serving

WORKERS = {
    "uvicorn": 1,
    "uvicorn-4": 4,
    "gunicorn": 3,
    "hypercorn": 3,
    "granian": 3,
    "aiohttp": 1,
    "aiohttp-3": 3,
}


class Started:
    """A server of one kind, and another one after a test has ended it.

    Tests that run side by side come in no order, so no test is the last.
    """

    def __init__(self, kind: str, log: Path, stack: ExitStack) -> None:
        self._kind = kind
        self._log = log
        self._stack = stack
        self._server: WebServer | None = None

    def server(self) -> WebServer:
        if self._kind == "granian":
            pytest.importorskip("granian")
        if self._server is None or self._server.process.poll() is not None:
            self._stack.close()
            begun = serving(self._kind, self._log, WORKERS[self._kind])
            self._server = self._stack.enter_context(begun)
        return self._server


@pytest.fixture(scope="module", params=list(COMMANDS))
def started(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Started]:
    with ExitStack() as stack:
        yield Started(request.param, tmp_path_factory.mktemp("server") / "log", stack)


@pytest.fixture
def server(started: Started) -> WebServer:
    return started.server()
