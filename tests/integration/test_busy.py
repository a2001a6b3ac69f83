"""The busy pool that people look at: a hot key, a crash, versions beside each other, sockets."""

import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tenure.cli.demo.ports import free_ports
from tests.integration.test_run import started
from tests.patience import DEADLINE_SECONDS, blocking_until

CHATTY = 12


def get(url: str, path: str) -> Any:  # noqa: ANN401  # as JSON has it
    return httpx.get(f"{url}/v1/{path}", timeout=DEADLINE_SECONDS).json()


@pytest.mark.skipif(sys.platform != "linux", reason="it shares a socket as Linux does")
def test_it_shows_everything_that_the_dashboard_is_for(tmp_path: Path) -> None:
    manager, *_ = free_ports(4)
    gateway, rest = free_ports(2)
    options = ["--store", "--data", str(tmp_path), "--port", str(manager), "--gateway"]
    options += ["--listen", f"127.0.0.1:{gateway}", "--sockets", "rooms"]
    options += ["--rest", f"http://127.0.0.1:{rest}"]
    busy = [sys.executable, "-m", "lab", "demo", "busy", "--port", str(rest), "--step", "2"]
    busy += ["--gateway", f"ws://127.0.0.1:{gateway}"]
    url = f"http://127.0.0.1:{manager}"
    with started(*options, "--", *busy) as process:
        assert process.stderr is not None
        assert "manager and dashboard" in process.stderr.readline()
        versions: set[frozenset[str]] = set()

        def is_busy() -> bool:
            assert process.poll() is None
            owners = get(url, "pools/rooms/owners").get("owners", [])
            versions.add(frozenset(each["labels"]["version"] for each in owners))
            sockets = sum(each["entities"]["sockets"] for each in owners if each["entities"])
            hottest = [each["name"] for each in get(url, "pools/rooms/hottest").get("keys", [])[:1]]
            died = httpx.get(f"{url}/metrics", timeout=DEADLINE_SECONDS).text
            return (
                sockets > CHATTY
                and hottest == ["lobby"]
                and 'event="owner attested dead"' in died
                and any(len(each) > 1 for each in versions)
            )

        blocking_until(is_busy, "there is something to see", 5 * DEADLINE_SECONDS)
        store = get(url, "clusters")["clusters"]
        assert [(each["nodes"], each["connected"]) for each in store] == [(3, 3)]
