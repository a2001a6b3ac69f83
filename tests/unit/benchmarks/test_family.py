"""A benchmark that is ended by a signal leaves nothing of what it has started."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks._family import family, run
from benchmarks._last_lines import LastLines
from tests.patience import DEADLINE_SECONDS

ROOT = Path(__file__).parents[3]
WAITS = "import signal\nwhile True: signal.pause()"
LASTING = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: signal.pause()"
STARTING = f"""
import os, signal, subprocess, sys
waiting = [sys.executable, "-c", {WAITS!r}]
kept = [subprocess.Popen(waiting, start_new_session=each) for each in (False, True)]
os.kill(kept[0].pid, signal.SIGSTOP)
starts_another = "import subprocess as s, sys; print(s.Popen([sys.executable, '-c', sys.argv[1]],"
starts_another += " start_new_session=True, stdout=s.DEVNULL).pid)"
orphan = subprocess.check_output([sys.executable, "-c", starts_another, {WAITS!r}])
print(os.getpid(), *(each.pid for each in kept), int(orphan), flush=True)
"""
"""A program that leaves processes behind: one in its own group, stopped; one in another session;
and one without a parent.
"""
RUNNING = """
import os, sys
from pathlib import Path
from benchmarks._family import run
sys.exit(run([sys.executable, "-c", sys.argv[1]], Path.cwd(), dict(os.environ)))
"""


@contextmanager
def begun(program: str) -> Iterator[tuple["subprocess.Popen[str]", list[int]]]:
    """One that runs the program, and the processes that this has said that it started."""
    command = [sys.executable, "-c", RUNNING, program]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as runner:
        assert runner.stdout
        pids = [int(each) for each in runner.stdout.readline().split()]
        assert len(pids) == 4
        yield runner, pids


def is_there(pid: int) -> bool:
    """Whether it has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are inherited on Linux alone")
@pytest.mark.parametrize("program", [WAITS, LASTING], ids=["ends", "does not heed it"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_after_a_signal(program: str, number: signal.Signals) -> None:
    with begun(STARTING + program) as (runner, pids):
        runner.send_signal(number)
        assert runner.wait(DEADLINE_SECONDS) == 128 + number
    assert [pid for pid in pids if is_there(pid)] == []


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are inherited on Linux alone")
def test_nothing_is_left_of_one_that_was_killed() -> None:
    with begun(STARTING + WAITS) as (runner, pids):
        os.kill(pids[0], signal.SIGKILL)
        assert runner.wait(DEADLINE_SECONDS) != 0
    assert [pid for pid in pids if is_there(pid)] == []


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are inherited on Linux alone")
def test_nothing_is_left_of_one_that_ends_by_itself() -> None:
    with begun(STARTING + "sys.exit(3)") as (runner, pids):
        assert runner.wait(DEADLINE_SECONDS) == 3
    assert [pid for pid in pids if is_there(pid)] == []


def test_a_process_is_of_its_own_family() -> None:
    assert family(os.getpid())[0] == os.getpid()


def test_benchmarks_are_run_so() -> None:
    runner = subprocess.run(
        [sys.executable, "-c", "import benchmarks.__main__ as m; print(m.run.__module__)"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    assert runner.stdout.strip() == "benchmarks._family"


def test_the_last_lines_of_a_program_are_passed_on_and_kept(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    says = "for i in range(30): print(i, flush=True)\nraise SystemExit('it failed')"
    with LastLines() as lines:
        code = run([sys.executable, "-c", says], ROOT, dict(os.environ), lines.fd)
    assert code == 1
    assert lines.text.splitlines() == [*map(str, range(6, 30)), "it failed"]
    assert capfdbinary.readouterr().out.split()[:3] == [b"0", b"1", b"2"]
