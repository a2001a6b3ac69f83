"""`tenure run`: a manager beside a command, and gone after it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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


def test_a_browser_that_opens_the_url_is_shown_the_dashboard() -> None:
    asks = (
        "import os, urllib.request as http\n"
        "at = http.Request(os.environ['TENURE_MANAGERS'], headers={'Accept': 'text/html'})\n"
        "with http.urlopen(at) as page: print(page.url.endswith('/dashboard/'), page.status)"
    )
    assert run("run", "--", sys.executable, "-c", asks).stdout == "True 200\n"


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


STORING = """
import asyncio, dataclasses
from tenure import Entities, Entity

@dataclasses.dataclass
class Count:
    value: int = 0

class Counter(Entity[Count]):
    async def add(self) -> int:
        self.state.value += 1
        return self.state.value

async def main():
    async with Entities(Counter, "counters", store="columns:") as counters:
        print(await counters["k"].add())

asyncio.run(main())
"""


def test_a_store_beside_the_command_keeps_what_it_is_given(tmp_path: Path) -> None:
    port = str(free_ports(4)[0])
    said = ["run", "--store", "--data", str(tmp_path / "kept"), "--port", port, "--preset", "test"]
    for count in (1, 2):
        ended = run(*said, "--", sys.executable, "-c", STORING)
        assert (ended.stdout, ended.returncode) == (f"{count}\n", 0), ended.stderr
        assert f"tenure: the store is kept in {tmp_path / 'kept'}\n" in ended.stderr


def node_pid(data: Path, name: str) -> int:
    """The process of this node."""
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has gone
            if str(data / name).encode() in each.read_bytes().split(b"\0"):
                return int(each.parent.name)
    return 0


@ON_LINUX
def test_a_node_of_the_store_that_is_killed_is_started_again(tmp_path: Path) -> None:
    port = free_ports(4)[0]
    said = ["--store", "--data", str(tmp_path), "--port", str(port), "--", "sh", "-c"]
    with started(*said, "echo $TENURE_STORE; exec sleep 600") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(f"columns:http://127.0.0.1:{port + 1},")
        os.kill(first := node_pid(tmp_path, "node-2"), signal.SIGKILL)
        told = "node-2 has ended (killed by signal 9), and was started again\n"
        while (line := process.stderr.readline()) != told:
            assert line
        assert node_pid(tmp_path, "node-2") not in (0, first)
    assert node_pid(tmp_path, "node-2") == 0


@pytest.mark.parametrize(
    ("said", "environment", "error"),
    [
        (["--store"], {"TENURE_STORE": "columns:http://n"}, "leave out --store to use that one"),
        (["--store", "--journal", "memory"], {}, "a store refuses the lower lease numbers"),
    ],
)
def test_a_store_that_cannot_be_is_refused(
    tmp_path: Path, said: list[str], environment: dict[str, str], error: str
) -> None:
    data = ("--data", str(tmp_path / "kept"))
    ended = run("run", *said, *data, "--", "true", **environment)
    assert (ended.returncode, error in " ".join(ended.stderr.split())) == (2, True)
    assert not (tmp_path / "kept").exists()
