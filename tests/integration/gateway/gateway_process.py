"""`tenure gateway` in a process of its own."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from tests.integration.processes import command
from tests.patience import DEADLINE_SECONDS


class GatewayProcess:
    """One gateway."""

    def __init__(self, arguments: tuple[str, ...], *, access_log: bool) -> None:
        self.process = subprocess.Popen(
            command(
                *("gateway", "--json", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"),
                *(("--access-log", *arguments) if access_log else arguments),
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.log = self.process.stderr
        line = self.process.stdout.readline()
        assert line, self.log.read()
        told: dict[str, Any] = json.loads(line)
        self.url: str = told["url"]
        self.admin: str = told["admin"]

    def until_logged(self, text: str) -> str:
        """The next line of the log that has the text."""
        while line := self.log.readline():
            if text in line:
                return line
        raise AssertionError(f"the log has ended without {text!r}")

    def page(self, path: str) -> httpx.Response:
        """A page of its admin port."""
        return httpx.get(self.admin + path, timeout=DEADLINE_SECONDS)

    def stop(self) -> int:
        """End it; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(DEADLINE_SECONDS)


@contextmanager
def gateway(*arguments: str, access_log: bool = True) -> Iterator[GatewayProcess]:
    """A gateway, until the block ends. Its log is a pipe: with more requests than a pipe has room
    for, it must not log each.
    """
    it = GatewayProcess(arguments, access_log=access_log)
    try:
        yield it
    finally:
        if it.process.poll() is None:
            it.process.kill()
            it.process.wait()
        for each in (it.process.stdout, it.process.stderr):
            assert each is not None
            each.close()
