"""`tenure run`: a manager beside a command, and gone after it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tenure.cli.demo.ports import free_ports
from tests.integration.processes import command, run
from tests.patience import DEADLINE_SECONDS
from tests.repo.reading import ROOT

START_SECONDS = 60.0
"""Long enough for three processes, each of which imports FastAPI, to start beside other tests."""
ASKS_AT_ITS_END = """
import os, signal, sys, time, urllib.request

def end(number, frame):
    with urllib.request.urlopen(os.environ["TENURE_MANAGERS"] + "/v1/status") as answer:
        os.write(1, b"answered\\n")  # in one piece, since two processes write
        sys.exit(5 if answer.status == 200 else 6)

for each in sys.argv[1:]:
    signal.signal(signal.Signals[each], end)
os.write(1, b"ready\\n")
while True:  # a signal that comes just before a sleep begins is handled after it
    time.sleep(0.05)
"""


IGNORES = "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready'); time.sleep(60)"
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="orphans are found on Linux only")


@contextmanager
def started(*said: str) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        command("run", *said),
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=DEADLINE_SECONDS)


def test_the_exit_code_is_the_commands() -> None:
    assert run("run", "--", sys.executable, "-c", "raise SystemExit(7)").returncode == 7
    assert run("run", "--", "sh", "-c", "kill -9 $$").returncode == 128 + signal.SIGKILL


def test_the_command_finds_the_manager_and_its_output_is_its_own() -> None:
    ended = run("run", "--", "sh", "-c", "echo $TENURE_MANAGERS -- $1", "sh", "--help")
    url, *rest = ended.stdout.split()
    assert rest == ["--", "--help"]
    assert f"tenure: manager and dashboard at {url}\n" in ended.stderr
    assert "Traceback" not in ended.stderr
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/v1/status")


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1"])
def test_signals_go_to_the_command_and_the_manager_outlives_it(name: str) -> None:
    with started("--", sys.executable, "-c", ASKS_AT_ITS_END, name) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.Signals[name])
        assert process.wait(DEADLINE_SECONDS) == 5


@ON_LINUX
def test_what_the_command_leaves_running_is_told_to_end_and_has_its_manager_until_then() -> None:
    asks = [sys.executable, "-uc", ASKS_AT_ITS_END, "SIGTERM"]
    with started("--", "sh", "-c", '"$@" & "$@"; wait', "sh", *asks) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["ready\n", "ready\n"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_SECONDS) == 128 + signal.SIGTERM
        assert process.stdout.read() == "answered\nanswered\n"  # it ends when both have ended


@ON_LINUX
def test_what_will_not_end_is_named_and_left_at_a_second_signal() -> None:
    with started("--", "sh", "-c", '"$@" & wait', "sh", sys.executable, "-uc", IGNORES) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        while "what it started goes on" not in (line := process.stderr.readline()):
            assert line
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_SECONDS) == 128 + signal.SIGTERM
        os.kill(int(line.partition("(pid ")[2].partition(")")[0]), signal.SIGKILL)


def test_what_cannot_be_run_is_said() -> None:
    nothing = run("run")
    assert (nothing.returncode, "tenure run -- uvicorn" in nothing.stderr) == (2, True)
    unknown = run("run", "--", "no-such-command")
    assert unknown.returncode == 2
    assert "'no-such-command'" in unknown.stderr
    forbidden = run("run", "--", "/etc/passwd")
    assert forbidden.returncode == 1
    assert "'/etc/passwd' cannot be run" in forbidden.stderr
    twice = run("run", "--", "true", TENURE_MANAGERS="http://127.0.0.1:7400")
    assert twice.returncode == 2
    assert "TENURE_MANAGERS names managers already" in twice.stderr


def test_a_web_server_with_workers_runs_beside_it() -> None:
    [port] = free_ports(1)
    carts = f"http://127.0.0.1:{port}/carts/ann"
    uvicorn = [sys.executable, "-m", "uvicorn", "examples.carts:app"]
    with started("--", *uvicorn, "--port", str(port), "--workers", "2") as process:
        deadline = time.monotonic() + START_SECONDS
        while True:
            assert time.monotonic() < deadline
            try:
                if httpx.get(carts, timeout=DEADLINE_SECONDS).status_code == 200:
                    break
            except httpx.HTTPError:
                pass
            time.sleep(0.05)
        for count in range(1, 9):
            assert (
                httpx.post(carts, params={"article": "tea"}, timeout=DEADLINE_SECONDS).json()
                == count
            )
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_SECONDS) == 0
