"""The examples as programs, run as their first lines say; the quick start with real processes."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tenure.cli.demo.ports import free_ports
from tests.integration.processes import manager
from tests.integration.programs import EXAMPLES, program
from tests.patience import DEADLINE_SECONDS

ROOMS = [f"room-{i}" for i in range(30)]
"""There are so many rooms that a joining owner is sure to get some, whatever name it draws."""


def run(path: str, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, str(EXAMPLES / path), *arguments],
        check=True,
        capture_output=True,
        text=True,
        timeout=3 * DEADLINE_SECONDS,
    ).stdout


def check_subscribe(output: str) -> None:
    moved = re.search(r"takes (\d+) of 30 topics over", output)
    assert moved, output
    count = int(moved[1])
    assert f"{30 - count} go through, {count} fail" in output
    assert f"subscribes {count} times\n" in output
    assert f"stale lists of {count} topics" in output
    assert output.endswith("on 30 lists\n")


def check_hashtable(output: str) -> None:
    moved = re.search(r"takes (\d+) of 20 keys over", output)
    assert moved, output
    count = int(moved[1])
    assert f"{20 - count} go through, {count} fail" in output
    assert f"{20 - count} 'early', {count} 'late'" in output
    assert f"stale values of {count} keys; get says {{None}} for them" in output
    assert output.endswith(f"and {20 - count} keys, which never moved, are 'early'\n")


def test_the_examples_run_by_themselves() -> None:
    check_subscribe(run("subscribe.py"))
    check_hashtable(run("hashtable.py"))


def test_the_carts_have_everything_once_and_the_limit_is_exact() -> None:
    carts = run("moving_carts.py")
    moved = re.search(r"(\d+) of 100 carts have moved", carts)
    assert moved, carts
    assert 0 < int(moved[1]) < 100
    assert carts.endswith("100 carts still have the tea\n0 carts have an article twice\n")
    assert run("limiter.py") == (
        "of 8 requests of ann at once, 5 are served\n"
        "after 30 s the next one may come in 30 s\n"
        "after 60 s it is served\n"
    )


def test_the_examples_run_with_a_manager() -> None:
    with manager("--first-start", preset="default") as running:
        url = running.wait_for("listening")["url"]
        check_subscribe(run("subscribe.py", "--manager", url))
        check_hashtable(run("hashtable.py", "--manager", url))


@pytest.fixture
def url() -> Iterator[str]:
    with manager("--first-start") as running:
        yield running.wait_for("listening")["url"]


def test_the_quick_start_shows_keys_moving_and_a_loss(url: str) -> None:
    first, second = free_ports(2)
    with ExitStack() as stack:
        one = stack.enter_context(program("quickstart/owner.py", str(first), managers=url))
        one.wait_for(f"serving at http://127.0.0.1:{first}")
        client = stack.enter_context(program("quickstart/client.py", *ROOMS, managers=url))
        client.wait_for(f" 2 at http://127.0.0.1:{first}$")

        two = stack.enter_context(program("quickstart/owner.py", str(second), managers=url))
        one.wait_for("revoked")
        room = client.wait_for(f" 1 at http://127.0.0.1:{second}$").split()[0]
        client.see(f"^lost: {room}$")

        client.lines.clear()
        two.kill()
        client.see(f"^{room} 1 at http://127.0.0.1:{first}$")
        client.see(f"^lost: {room}$")


def test_an_owner_that_is_asked_to_end_gives_its_rooms_back(url: str) -> None:
    with ExitStack() as stack:
        two = stack.enter_context(program("quickstart/owner.py", str(*free_ports(1)), managers=url))
        two.wait_for("granted")
        one = stack.enter_context(program("quickstart/owner.py", str(*free_ports(1)), managers=url))
        one.wait_for("granted")
        two.process.send_signal(signal.SIGTERM)
        two.wait_for("^left$")
        one.wait_for("granted")
        assert two.process.wait(DEADLINE_SECONDS) == 0


def test_in_the_quick_start_no_visit_is_counted_twice_or_forgotten() -> None:
    """A count goes up by one, or begins again with another owner, whose predecessor's is lost."""
    first, second = free_ports(2)
    with ExitStack() as stack:
        running = stack.enter_context(manager("--first-start", preset="default"))
        url = running.wait_for("listening")["url"]
        stack.enter_context(program("quickstart/owner.py", str(first), managers=url))
        client = stack.enter_context(program("quickstart/client.py", *ROOMS, managers=url))
        client.wait_for(" 2 at ")
        stack.enter_context(program("quickstart/owner.py", str(second), managers=url))
        client.wait_for(f" 3 at http://127.0.0.1:{second}")
    last: dict[str, tuple[int, str]] = {}
    for line in client.lines:
        if found := re.match(r"(\S+) (\d+) at (.*)", line):
            room, count, owner = found[1], int(found[2]), found[3]
            before, its_owner = last.get(room, (0, owner))
            assert count == (before + 1 if owner == its_owner else 1), client.lines
            last[room] = (count, owner)
