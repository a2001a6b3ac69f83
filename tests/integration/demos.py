"""The demo in a process of its own, as its user starts it; and the lab's."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from tests.patience import DEADLINE_SECONDS

LAB = {"caches", "mesh", "columns"}
"""Demos of the lab, by their first word."""


def command(*arguments: str) -> list[str]:
    if LAB & {*arguments[:1]}:
        return [sys.executable, "-m", "lab", "demo", *arguments]
    preset = () if "--preset" in arguments else ("--preset", "test")
    return [sys.executable, "-m", "tenure", "demo", *preset, *arguments]


def run(
    tmp_path: Path, *arguments: str, seconds: float = 2 * DEADLINE_SECONDS
) -> subprocess.CompletedProcess[str]:
    """A demo from start to end, whose files lie in `tmp_path` while it runs."""
    return subprocess.run(
        command(*arguments),
        check=False,
        capture_output=True,
        text=True,
        timeout=seconds,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )


@contextmanager
def running(tmp_path: Path, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    demo = subprocess.Popen(
        command(*arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    try:
        yield demo
    finally:
        demo.kill()  # and with it all that it started
        demo.communicate()


def wait_for_line(demo: "subprocess.Popen[str]", words: str) -> None:
    for line in lines(demo):
        if words in line:
            return
    pytest.fail(f"the demo ended without saying {words!r}")


def lines(demo: "subprocess.Popen[str]") -> IO[str]:
    assert demo.stdout
    return demo.stdout
