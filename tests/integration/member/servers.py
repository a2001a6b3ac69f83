"""Real web servers, each with the same service, and a manager beside them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tenure.cli.demo.ports import free_ports
from tests.integration.processes import manager
from tests.patience import DEADLINE_SECONDS, blocking_until
from tests.repo.reading import ROOT

APP = "tests.integration.member.shop:app"
WSGI = "tests.integration.member.wsgi_shop"
AIOHTTP = "tests.integration.member.aiohttp_shop"
COMMANDS = {
    "uvicorn": ["-m", "uvicorn", APP, "--port", "{port}"],
    "uvicorn-4": ["-m", "uvicorn", APP, "--port", "{port}", "--workers", "4"],
    "gunicorn": [
        *("-m", "gunicorn", APP, "--bind", "127.0.0.1:{port}", "--preload"),
        *("--workers", "3", "--worker-class", "uvicorn.workers.UvicornWorker"),
    ],
    "hypercorn": ["-m", "hypercorn", APP, "--bind", "127.0.0.1:{port}", "--workers", "3"],
    "granian": [
        *("-m", "granian", APP, "--interface", "asgi", "--port", "{port}", "--workers", "3"),
        "--no-access-log",
    ],
    "aiohttp": ["-m", AIOHTTP, "{port}"],
    "aiohttp-3": [
        *("-m", "gunicorn", f"{AIOHTTP}:app", "--bind", "127.0.0.1:{port}"),
        *("--workers", "3", "--worker-class", "aiohttp.GunicornWebWorker"),
    ],
}

RELOADED = {
    "gunicorn-threads": [
        *("-m", "gunicorn", f"{WSGI}:app", "--config", f"python:{WSGI}"),
        *("--workers", "1", "--bind", "127.0.0.1:{port}"),
    ]
}
"""Those whose workers do not share a port, and relay nothing."""


class WebServer:
    """One server, with its worker processes."""

    def __init__(self, kind: str, manager_url: str, log: Path) -> None:
        self.kind = kind
        [self.port] = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"
        self.manager = manager_url
        self.log = log
        arguments = [each.format(port=self.port) for each in (COMMANDS | RELOADED)[kind]]
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=ROOT,
                env={
                    **os.environ,
                    "TENURE_MANAGERS": manager_url,
                    "PYTHONWARNINGS": "default",
                    "PORT": str(self.port),
                },
                stdout=output,
                stderr=output,
            )

    def wait_for(self, owners: int) -> None:
        """Wait until this many members share the keys."""

        def is_there() -> bool:
            assert self.process.poll() is None, self.log.read_text()
            return len(self.owners_with_keys()) >= owners and self.answers()

        blocking_until(is_there, f"{owners} members answer and have keys")

    def answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health", timeout=DEADLINE_SECONDS).status_code == 200
        except httpx.HTTPError:
            return False

    def owners_with_keys(self) -> list[dict[str, Any]]:
        found = httpx.get(f"{self.manager}/v1/pools/carts/owners", timeout=DEADLINE_SECONDS)
        if found.status_code != 200:
            return []
        owners: list[dict[str, Any]] = found.json()["owners"]
        return [each for each in owners if each["ranges"]]

    def stop(self) -> int:
        """End it as a supervisor does; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(DEADLINE_SECONDS)


@contextmanager
def serving(kind: str, log: Path, owners: int) -> Iterator[WebServer]:
    """A server whose workers share the keys."""
    with manager("--first-start", preset="default") as beside:
        server = WebServer(kind, beside.wait_for("listening")["url"], log)
        try:
            server.wait_for(owners)
            yield server
        finally:
            if server.process.poll() is None:
                server.process.send_signal(signal.SIGTERM)
                try:
                    server.process.wait(10)
                except subprocess.TimeoutExpired:
                    server.process.kill()
                    server.process.wait()
