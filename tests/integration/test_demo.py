"""The demo as its user runs it: it shows that all is well, finds what is not, and leaves nothing.

Each test starts the whole: eight processes. So there are few, and each looks at several things.
The longer ones are in `failover/test_long_demos.py`.
"""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tenure.cli.app import run as commands
from tests.integration.demos import lines, run, running, wait_for_line
from tests.patience import DEADLINE_SECONDS

needs_linux = pytest.mark.skipif(
    sys.platform != "linux", reason="looks for the demo's processes in /proc"
)


def processes_of(demo: "subprocess.Popen[str]") -> dict[str, int]:
    """Return the processes that it has started: pidfds by name, which keep meaning those processes,
    whatever comes after.
    """
    children = Path(f"/proc/{demo.pid}/task/{demo.pid}/children").read_text("utf-8").split()
    found = {}
    for pid in children:
        name = Path(f"/proc/{pid}/cmdline").read_text("utf-8").split("\0")[4]
        found[name] = os.pidfd_open(int(pid))
    return found


def wait_until_gone(processes: dict[str, int]) -> None:
    waiting = select.poll()
    for process in processes.values():
        waiting.register(process, select.POLLIN)
    for _ in processes:
        gone = waiting.poll(DEADLINE_SECONDS * 1000)
        assert gone, "a process of the demo is still there"
        waiting.unregister(gone[0][0])
        os.close(gone[0][0])


def test_a_short_run_is_clean_and_makes_trouble(tmp_path: Path) -> None:
    done = run(tmp_path, "--seconds", "8", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["requests"] > 0
    # A machine that stops a frontend for longer than its term has cut it off: that one may fail.
    assert summary["failed"] == 0 or summary["contact_lost"] > 0, done.stderr
    assert summary["double_owner"] == 0, done.stderr
    assert summary["served"] + summary["failed"] >= summary["requests"]
    assert summary["owner_kills"] >= 1
    assert summary["losses_signalled"] >= 1
    assert summary["keys_republished"] >= 1
    assert "killed owner" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_keys_of_the_killed_are_served_again(tmp_path: Path) -> None:
    done = run(tmp_path, "--crash", "--seconds", "6", "--owners", "3", "--frontends", "2", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["double_owner"] == 0, done.stderr
    assert summary["owner_kills"] >= 1
    assert 0 < summary["dark_seconds"] <= summary["slowest_dark_seconds"]
    assert summary["keys_lost"] >= 1, "what was in the memory of the dead is gone, and known to be"
    assert "all of them are served again" in done.stderr


def test_no_read_of_a_cache_is_stale_while_owners_are_killed(tmp_path: Path) -> None:
    done = run(tmp_path, "caches", "--seconds", "6", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["stale"], summary["failed"]) == (0, 0), done.stderr
    assert summary["reads"] == summary["judged"] > summary["hits"] > 0
    assert summary["writes"] >= 1
    assert summary["owner_kills"] >= 1
    assert summary["slowest_write_ms"] > 0
    assert summary["moves"] >= 0
    assert "others have its keys" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_is_written_past_the_owners_is_found_by_the_record(tmp_path: Path) -> None:
    sizes = ("--seconds", "3", "--owners", "2", "--frontends", "2")
    done = run(tmp_path, "caches", "--break-owner", *sizes)
    assert done.returncode == 1, done.stdout
    assert "A STALE READ: frontend-" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("Reads returned less than what was written")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--crash --rolling-restart", "--rolling-restart and --crash make different trouble"),
        ("--hot-keys --owners 16 --frontends 1", "wants 1024 users: add --frontends 13"),
        ("--hot-keys --seconds 10", "--seconds 10 is too short"),
        ("--kill-leader", "add --managers 3"),
    ],
)
def test_what_could_not_be_shown_is_refused_and_nothing_begins(
    capsys: pytest.CaptureFixture[str], options: str, says: str
) -> None:
    assert commands(["demo", "--preset", "test", *options.split()]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert says in " ".join(told.err.split())


def test_an_owner_that_is_broken_is_found_by_the_record(tmp_path: Path) -> None:
    done = run(tmp_path, "--seconds", "5", "--break-owner", "--owners", "3", "--frontends", "2")
    assert done.returncode == 1, done.stderr
    assert "TWO OWNERS AT ONCE" in done.stdout
    assert "owner-1 under lease number" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("Two owners served one key at once")
    assert "Traceback" not in done.stderr  # that a busy machine's owners warn of silence is well


@needs_linux
def test_ctrl_c_ends_it_with_the_summary_and_leaves_nothing(tmp_path: Path) -> None:
    with running(tmp_path, "--owners", "2", "--frontends", "1") as demo:
        wait_for_line(demo, "have published their presence")
        processes = processes_of(demo)
        assert processes.keys() == {"manager", "owner-1", "owner-2", "frontend-1"}
        demo.send_signal(signal.SIGINT)
        summary = list(lines(demo))
        assert summary[-1] == "One owner for every key, all the time.\n"
        assert demo.wait(DEADLINE_SECONDS) == 0
        wait_until_gone(processes)
    assert list(tmp_path.iterdir()) == []


@needs_linux
def test_nothing_outlives_a_demo_that_is_killed_not_even_who_is_stopped(tmp_path: Path) -> None:
    arguments = ("--owners", "2", "--frontends", "1", "--break-owner")  # which begins with a stop
    with running(tmp_path, *arguments) as demo:
        wait_for_line(demo, "stopped owner 1 (SIGSTOP)")
        processes = processes_of(demo)
        demo.kill()
        wait_until_gone(processes)


@needs_linux
def test_a_process_that_dies_by_itself_ends_it_with_an_error(tmp_path: Path) -> None:
    with running(tmp_path, "--owners", "2", "--frontends", "1") as demo:
        wait_for_line(demo, "have published their presence")
        processes = processes_of(demo)
        signal.pidfd_send_signal(processes["manager"], signal.SIGKILL)
        assert "tenure: manager of the demo ended by itself, with code -9" in "".join(lines(demo))
        assert demo.wait(DEADLINE_SECONDS) == 1
        wait_until_gone(processes)
    assert list(tmp_path.iterdir()) == []
