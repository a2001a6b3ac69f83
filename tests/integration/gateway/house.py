"""A house: a manager, workers that have rooms, and a gateway before them, in processes."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import httpx
from websockets.sync.client import ClientConnection, connect

from tenure.cli.demo.ports import free_ports
from tests.integration.gateway.gateway_process import GatewayProcess, gateway
from tests.integration.processes import manager
from tests.patience import DEADLINE_SECONDS
from tests.repo.reading import ROOT


class Worker:
    """One process of the application."""

    def __init__(self, manager_url: str, port: int, app: str, path: str) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._ready = f"{self.url}{path}"
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "uvicorn", f"tests.integration.gateway.{app}:app"),
                *("--port", str(port), "--log-level", "error"),
            ],
            cwd=ROOT,
            env={**os.environ, "TENURE_MANAGERS": manager_url},
        )

    def wait(self) -> "Worker":
        """Wait until it serves."""
        while True:
            try:
                if httpx.get(self._ready, timeout=DEADLINE_SECONDS).is_success:
                    return self
            except httpx.TransportError:
                assert self.process.poll() is None, "it has ended"

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(DEADLINE_SECONDS)


class House:
    """A manager, workers, and a gateway before them."""

    def __init__(self, stack: ExitStack, options: Sequence[str]) -> None:
        self._stack = stack
        beside = stack.enter_context(manager("--first-start", "--create-pools", preset="default"))
        self.manager = beside.wait_for("listening")["url"]
        [self.port] = free_ports(1)
        routes = (*options, "--route", f"/=http://127.0.0.1:{self.port}")
        self._options = ("--manager", self.manager, *routes, "--sockets", "rooms")
        self.gateway = self.another_gateway()

    def another_gateway(self) -> GatewayProcess:
        """A gateway with the options of the first."""
        return self._stack.enter_context(gateway(*self._options, access_log=False))

    def worker(self, port: int | None = None) -> Worker:
        """Another worker, at the port to which handshakes go, or at one of its own."""
        return self._begin(port or free_ports(1)[0], "rooms", "/rooms/attic/pid")

    def liar(self) -> Worker:
        """A worker of another pool."""
        return self._begin(free_ports(1)[0], "liar", "/lies/unsealed")

    def _begin(self, port: int, app: str, path: str) -> Worker:
        made = Worker(self.manager, port, app, path)
        self._stack.callback(made.end, signal.SIGKILL)
        return made.wait()

    def socket(self, path: str, **options: Any) -> ClientConnection:  # noqa: ANN401
        url = self.gateway.url.replace("http", "ws") + path
        opening: AbstractContextManager[ClientConnection]
        opening = connect(url, open_timeout=DEADLINE_SECONDS, **options)
        return self._stack.enter_context(opening)


@contextmanager
def house(*options: str) -> Iterator[House]:
    """A house, whose gateway gets these options before the others."""
    with ExitStack() as stack:
        yield House(stack, options)
