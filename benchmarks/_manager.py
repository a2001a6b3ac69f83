"""A manager in a process of its own, and how much CPU it has used."""

import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")


class ManagerProcess(NamedTuple):
    url: str
    pid: int

    def cpu_seconds(self) -> float:
        """User and system time of all its threads, in steps of 10 ms."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * TICK_SECONDS


@contextmanager
def running_manager(
    *options: str, log_level: str = "warning", journal: str = "memory"
) -> Iterator[ManagerProcess]:
    """A manager on a free port that grants at once."""
    command = [sys.executable, "-m", "tenure", "manager", "--json", "--log-level", log_level]
    command += ["--port", "0", "--journal", journal, "--first-start", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            events = map(json.loads, process.stdout)
            url = next(events)["url"]
            while next(events)["event"] != "leading":
                pass
            yield ManagerProcess(url, process.pid)
        finally:
            process.terminate()


def loop_name() -> str:
    """The event loop that `tenure manager` takes here."""
    return "uvloop" if find_spec("uvloop") else "asyncio without uvloop"


def allow_many_files() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def print_figure(what: str, measured: Sequence[float], bound_us: float | None = None) -> bool:
    """Print the median of some measurements in seconds; whether it is within its bound."""
    median, spread = statistics.median(measured) * 1e6, [f"{each * 1e6:.0f}" for each in measured]
    bound = "" if bound_us is None else f"   bound {bound_us:.0f} µs"
    print(f"{what:58} {median:7.1f} µs{bound}   (of {', '.join(spread)})")
    return bound_us is None or median <= bound_us
