"""One story over several processes: from an owner's crash to the last lookup that was informed.

A manager, two owners and two lookups are processes of their own, and log JSON. One owner is killed.
Whoever asks all logs for one cause then reads what everybody did because of it.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.processes import ManagerProcess, manager
from tests.patience import blocking_until


class Teller:
    """A process, and the lines of its log."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr
        self._lines.extend(self.process.stderr)

    def of(self, cause: str) -> list[dict[str, Any]]:
        """Return what it logged because of that."""
        return [each for each in parsed("".join(self._lines)) if cause in causes(each)]


def parsed(log: str) -> Iterator[dict[str, Any]]:
    whole = log[: log.rfind("\n") + 1]  # the last line may be on its way
    return (json.loads(line) for line in whole.splitlines())


def causes(line: dict[str, Any]) -> list[str]:
    """Return the causes: several, if one message tells several stories."""
    return str(line.get("cause", "")).replace(",", " ").split()


@contextmanager
def telling(what: str, url: str, name: str) -> Iterator[Teller]:
    command = [sys.executable, "-m", "tests.integration.storyteller", what, url, name]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout
            teller = Teller(process)
            assert process.stdout.readline() == "ready\n", process.poll()
            yield teller
        finally:
            process.kill()


def test_one_cause_leads_from_an_owners_crash_to_the_last_lookup_informed() -> None:
    options = "--first-start", "--log-level", "debug", "--log-format", "json"
    with manager(*options, preset="default") as led, ExitStack() as stack:
        url = led.wait_for("listening")["url"]
        led.wait_for("leading")
        ann, bob = (stack.enter_context(telling("owner", url, each)) for each in ("ann", "bob"))
        lookups = [stack.enter_context(telling("lookup", url, each)) for each in ("one", "two")]
        ann.process.kill()
        tellers = {"bob": bob, "lookup one": lookups[0], "lookup two": lookups[1]}
        end, told = until_all_have_told(led, tellers)
        cause = end["cause"]
        assert ann.of(cause) == [], "the dead tell nothing"
        assert "ann" in end["detail"]
        for name in ("lookup one", "lookup two"):
            assert {each["kind"] for each in told[name]} == {"table changed"}
            first = min(each["at"] for each in told[name])
            assert first >= end["at"], "one clock: these processes are on one machine"


NODE = (
    "columns node --cluster mail --data node --secret secret --host 0.0.0.0 --port 0 "
    "--advertise 127.0.0.1"
)


@pytest.mark.parametrize(
    ("command", "logger"),
    [
        ("serve documents --listen 0.0.0.0:0", "tenure.services"),
        (NODE, "tenure.columns"),
    ],
)
def test_each_command_that_runs_long_logs_json_where_it_is_asked(
    command: str, logger: str, tmp_path: Path
) -> None:
    said = "--insecure", "--log-format", "json", "--manager", "http://127.0.0.1:1"
    with subprocess.Popen(
        [sys.executable, "-m", "tenure", *command.split(), *said],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    ) as process:
        try:
            assert process.stderr
            first = json.loads(process.stderr.readline())
        finally:
            process.kill()
    assert (first["level"], first["logger"]) == ("warning", logger)
    assert "everybody there could" in first["message"]


def until_all_have_told(
    led: ManagerProcess, tellers: dict[str, Teller]
) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]:
    """The manager's line on the crash, and what everybody told because of it."""

    def found() -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]] | None:
        ends = [each for each in parsed(led.log) if each.get("kind") in ENDS]
        told = {name: each.of(ends[0]["cause"]) if ends else [] for name, each in tellers.items()}
        is_whole = all(told.values()) and any(map(is_grant, told["bob"]))
        return (ends[0], told) if is_whole else None

    whole = blocking_until(found, "all have told of the end of an owner")
    assert whole
    return whole


ENDS = ("owner attested dead", "owner expired")


def is_grant(line: dict[str, Any]) -> bool:
    return "granted" in str(line.get("kind", ""))
