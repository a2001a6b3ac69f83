"""Objects that are made before a fork and entered after it work, as under `gunicorn --preload`."""

import json
import os
import subprocess
import sys

import pytest

from tests.integration.processes import manager

PRELOADED = """
import json, os, sys
from tenure import KeyedState, Lookup, Owner

state = KeyedState(value_type=str)
owner = Owner(sys.argv[1], pool="rooms", address="http://127.0.0.1:8000", hand_off=state)
lookup = Lookup(sys.argv[1], pool="rooms")

def work(said):
    with owner, lookup:
        owner.ready()
        lookup.wait("a")
        said.write(json.dumps([owner.name, len(owner.ranges), lookup.find("a")]) + chr(10))
        said.flush()
        sys.stdin.read()  # until the test has heard all
    os._exit(0)

for _ in range(2):
    if os.fork() == 0:
        work(sys.stdout)
for _ in range(2):
    os.wait()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_each_worker_enters_its_copy_of_what_was_made_before_the_fork() -> None:
    with manager("--first-start", preset="default") as running:
        url = running.wait_for("listening")["url"]
        program = subprocess.Popen(
            [sys.executable, "-c", PRELOADED, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert program.stdout is not None
        said = [json.loads(program.stdout.readline()) for _ in range(2)]
        program.communicate(timeout=60)
    assert program.returncode == 0
    names, ranges, found = zip(*said, strict=True)
    assert len(set(names)) == 2, "each is an owner of its own"
    assert all(ranges)
    assert set(found) == {"http://127.0.0.1:8000"}
