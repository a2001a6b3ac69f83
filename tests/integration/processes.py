"""Managers in processes of their own: started on a free port, watched by their lines, ended by pid.

Their reports are read by a thread each, so that waiting for one has a deadline.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.patience import DEADLINE_SECONDS
from tests.versions.old import NEW, Release, environment


def command(*arguments: str, package: str = NEW.package) -> list[str]:
    return [sys.executable, "-m", package, *arguments]


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        command(*arguments),
        check=False,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        env={**os.environ, **environment},
    )


class ManagerProcess:
    """A manager that reports as JSON; of the present release unless another is named."""

    def __init__(self, arguments: Sequence[str], release: Release = NEW) -> None:
        self.process = subprocess.Popen(
            command("manager", "--json", *arguments, package=release.package),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(release),
        )
        self._events: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._log: list[str] = []
        self._logger = threading.Thread(target=self._read_log, daemon=True)
        self._logger.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._events.put(json.loads(line))
        self._events.put(None)

    def _read_log(self) -> None:
        assert self.process.stderr
        self._log.extend(self.process.stderr)

    def wait_for(self, event: str) -> dict[str, Any]:
        """The next event of this kind; those before it are passed over."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            found = self._events.get(timeout=deadline - time.monotonic())
            assert found is not None, f"it ended before {event!r}: {self.log}"
            if found["event"] == event:
                return found

    @property
    def log(self) -> str:
        return "".join(self._log)

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> int:
        """Wait for its end; its exit code."""
        code = self.process.wait(DEADLINE_SECONDS)
        self._reader.join(DEADLINE_SECONDS)
        self._logger.join(DEADLINE_SECONDS)
        return code


@contextmanager
def manager(
    *arguments: str, journal: str | Path = "memory", preset: str = "test", port: int = 0
) -> Iterator[ManagerProcess]:
    """A manager, on a free port by default, gone at the end whatever happened."""
    where = str(journal) if isinstance(journal, str) else f"sqlite:{journal}"
    said = ["--port", str(port), "--preset", preset, "--journal", where]
    started = ManagerProcess([*said, *arguments])
    try:
        yield started
    finally:
        started.process.kill()
        started.end()
        for pipe in (started.process.stdout, started.process.stderr):
            assert pipe
            pipe.close()
