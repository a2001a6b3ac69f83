"""Evicting an owner that is a process of its own; `test_handing_over` drains one."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tenure.cli.app import run
from tests.integration.processes import manager
from tests.patience import DEADLINE_SECONDS

OWNER = """
import sys
from tenure import Owner
with Owner(sys.argv[1], pool="rooms", address="http://" + sys.argv[2], name=sys.argv[2]) as owner:
    owner.ready()
    print("holds something", flush=True)
    sys.stdin.read()
"""


@contextmanager
def owner(url: str, name: str) -> Iterator[subprocess.Popen[str]]:
    """A process with an Owner, gone at the end whatever happened."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, url, name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        assert process.stdout.readline() == "holds something\n"
        yield process
    finally:
        process.kill()
        process.communicate(timeout=DEADLINE_SECONDS)


class Commands:
    """Commands of `tenure` that ask this manager, run in this process."""

    def __init__(self, url: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.url = url
        self.capsys = capsys

    def said(self, *arguments: str, code: int = 0) -> str:
        ended = run([*arguments, "--manager", self.url])
        found = self.capsys.readouterr()
        assert ended == code, found.err
        return found.err if code else found.out


def test_an_owner_that_died_is_evicted(capsys: pytest.CaptureFixture[str]) -> None:
    with ExitStack() as processes:
        # With the default preset bob does not expire before anybody is evicted. And bob is alone,
        # because a neighbour would attest the death.
        leader = processes.enter_context(manager("--first-start", preset="default"))
        commands = Commands(leader.wait_for("listening")["url"], capsys)
        bob = processes.enter_context(owner(commands.url, "bob"))
        bob.send_signal(signal.SIGKILL)
        bob.wait(DEADLINE_SECONDS)
        evict = ("evict", "rooms", "bob", "--confirmed-dead", "--yes")
        commands.said(*evict)
        processes.enter_context(owner(commands.url, "ann"))
        told = json.loads(commands.said("owners", "rooms", "--json"))
        assert [each["name"] for each in told["owners"]] == ["ann"]
        assert "there are: ann" in commands.said(*evict, code=2)
        why = json.loads(commands.said("why", "rooms", "42", "--int", "--json"))
        assert "owner evicted" in [move["how"] for move in why["moves"]]
