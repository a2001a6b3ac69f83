"""Draining and evicting owners that are processes of their own."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tests.integration.processes import manager, run
from tests.patience import DEADLINE_SECONDS

OWNER = """
import sys
from tenure import Owner
with Owner(sys.argv[1], pool="rooms", address="http://" + sys.argv[2], name=sys.argv[2]) as owner:
    print("joined", flush=True)
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
        assert process.stdout.readline() == "joined\n"
        yield process
    finally:
        process.kill()
        process.communicate(timeout=DEADLINE_SECONDS)


def having(url: str) -> dict[str, int]:
    """How many ranges each owner has."""
    told = run("owners", "rooms", "--json", "--manager", url)
    return {each["name"]: each["ranges"] for each in json.loads(told.stdout)["owners"]}


def key_of(url: str, name: str) -> int:
    """A key that the owner has."""
    table = json.loads(run("table", "rooms", "--json", "--manager", url).stdout)
    (number,) = (each["incarnation"] for each in table["owners"] if each["name"] == name)
    having = (each["start"]["hex"] for each in table["entries"] if each["owner"] == number)
    return int(next(filter(None, having)), 16)


def test_an_owner_is_drained_while_it_runs_and_a_dead_one_is_evicted() -> None:
    with ExitStack() as processes:
        leader = processes.enter_context(manager("--first-start", preset="default"))
        url = leader.wait_for("listening")["url"]
        leader.wait_for("leading")
        ann = processes.enter_context(owner(url, "ann"))
        bob = processes.enter_context(owner(url, "bob"))

        drained = run("drain", "rooms", "ann", "--manager", url)
        assert drained.returncode == 0, drained.stderr
        assert "ann has nothing left, after" in drained.stdout
        assert having(url)["ann"] == 0
        assert ann.poll() is None
        assert run("uncordon", "rooms", "ann", "--manager", url).returncode == 0

        key = key_of(url, "bob")
        ann.send_signal(signal.SIGSTOP)  # or it would attest bob's death before anybody is evicted
        bob.send_signal(signal.SIGKILL)
        bob.wait(DEADLINE_SECONDS)
        evict = ("evict", "rooms", "bob", "--confirmed-dead", "--yes", "--manager", url)
        evicted = run(*evict)
        ann.send_signal(signal.SIGCONT)
        assert evicted.returncode == 0, evicted.stderr
        assert set(having(url)) == {"ann"}
        again = run(*evict)
        assert (again.returncode, "there are: ann" in again.stderr) == (2, True)
        why = run("why", "rooms", str(key), "--int", "--json", "--manager", url)
        hows = [move["how"] for move in json.loads(why.stdout)["moves"]]
        assert "owner evicted" in hows
