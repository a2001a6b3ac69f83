"""State moves along when a server reloads its workers, also with gunicorn, which ends the old ones
before the new ones have joined.
"""

import os
import signal
import time
from pathlib import Path

import httpx
import pytest

from tenure.client.succession import AFTER_SECONDS
from tests.integration.member.conftest import WORKERS
from tests.integration.member.servers import serving
from tests.patience import DEADLINE_SECONDS

KEYS = [f"user-{i}" for i in range(40)]


def asked(url: str, method: str = "GET", **parameters: str) -> str:
    """The answer, once an owner gives one."""
    until = time.monotonic() + DEADLINE_SECONDS
    while True:
        try:
            got = httpx.request(method, url, params=parameters, timeout=DEADLINE_SECONDS)
            if got.status_code == 200:
                return got.text
        except httpx.TransportError:
            pass
        assert time.monotonic() < until


@pytest.mark.parametrize(
    "kind", ["gunicorn", "gunicorn-threads", "aiohttp-3", "granian", "uvicorn-4"]
)
def test_a_reload_loses_no_state(kind: str, tmp_path: Path) -> None:
    if kind == "granian":
        pytest.importorskip("granian")
    workers = WORKERS.get(kind, 1)
    with serving(kind, tmp_path / "log", workers) as server:
        for key in KEYS:
            asked(f"{server.url}/carts/{key}", "POST", article="tea")
        for _ in range(3):
            before = {each["name"] for each in server.owners_with_keys()}
            os.kill(server.process.pid, signal.SIGHUP)
            until = time.monotonic() + DEADLINE_SECONDS
            while before & {each["name"] for each in server.owners_with_keys()}:
                assert time.monotonic() < until, server.log.read_text()
            kept = [key for key in KEYS if "tea" in asked(f"{server.url}/carts/{key}")]
            assert kept == KEYS, server.log.read_text()
            # A worker that is no older takes the next one for one that was begun beside it.
            began = time.monotonic()
            while time.monotonic() < began + AFTER_SECONDS:
                server.owners_with_keys()
