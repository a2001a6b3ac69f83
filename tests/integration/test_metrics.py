"""Owners that are full of memory, and not of requests, in processes of their own."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.integration.processes import manager
from tests.integration.test_steering import Commands
from tests.patience import DEADLINE_SECONDS

OWNER = """
import json, sys, time
from pathlib import Path
from tenure import Owner
url, name, told = sys.argv[1:]
capacity = {"requests": 1_000, "memory": 1e9}
with Owner(url, pool="rooms", address=f"http://{name}", name=name, capacity=capacity) as owner:
    print("entered", flush=True)
    while True:
        for key, size in json.loads(Path(told).read_text()).items():
            owner.record_load(key, size, metric="memory")
        time.sleep(0.1)
"""
NAMES = [f"doc-{i}" for i in range(40)]


@contextmanager
def owner(url: str, name: str, told: Path) -> Iterator[None]:
    """A process with an Owner of whose keys the file says how much memory each takes up."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, url, name, str(told)], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "entered\n"
            yield
        finally:
            process.kill()


def shares(tenure: Commands) -> list[float]:
    """Each owner's part of the key space: even when new owners have been given theirs."""
    listed = json.loads(tenure.said("owners", "rooms", "--json"))["owners"]
    return [each["share"] for each in listed]


def owners_of(tenure: Commands) -> dict[str, list[str]]:
    """The names that each owner has."""
    found: dict[str, list[str]] = {}
    for name in NAMES:
        told = json.loads(tenure.said("locate", "rooms", name, "--json"))["owner"]
        found.setdefault(told["name"] if told else "", []).append(name)
    return found


def test_an_owner_full_of_memory_gives_its_largest_keys_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = tmp_path / "sizes.json"
    sizes.write_text("{}")
    with manager("--first-start", preset="default") as running, ExitStack() as processes:
        url = running.wait_for("listening")["url"]
        tenure = Commands(url, capsys)
        for name in ("ann", "bob"):
            processes.enter_context(owner(url, name, sizes))
        gives_up_at = time.monotonic() + DEADLINE_SECONDS
        while not all(0.4 < share < 0.6 for share in shares(tenure)):
            assert time.monotonic() < gives_up_at, tenure.said("owners", "rooms")
        large = owners_of(tenure)["ann"][:4]
        sizes.write_text(json.dumps(dict.fromkeys(large, 2e8)))
        while len(set(owners_of(tenure)["ann"]) & set(large)) != 2:
            assert time.monotonic() < gives_up_at, tenure.said("plan", "rooms")
        moved = next(name for name in large if name not in owners_of(tenure)["ann"])
        assert "of its share of memory" in tenure.said("why", "rooms", moved)
        while tenure.said("owners", "rooms").count("(40%)") != 2:
            assert time.monotonic() < gives_up_at, tenure.said("owners", "rooms")
        listed = json.loads(tenure.said("owners", "rooms", "--json"))["owners"]
        assert {each["levels"]["memory"]["capacity"] for each in listed} == {1e9}
