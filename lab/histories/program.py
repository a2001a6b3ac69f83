"""Programs in processes of their own: their arguments are one JSON object.

The wall clock of a process may be wrong. Nodes and handles ask `time.time_ns` for it, and nothing
else in the library does anything with a wall clock that matters here.
"""

import json
import sys
import time
from typing import Any


def arguments() -> dict[str, Any]:
    """The arguments of this process; its wall clock is wrong from now on, if they say so."""
    said: dict[str, Any] = json.loads(sys.argv[1])
    shift_ns = round(said.pop("clock_seconds", 0.0) * 1e9)
    right = time.time_ns
    time.time_ns = lambda: right() + shift_ns
    return said


def command(module: str, **said: object) -> list[str]:
    """The command that runs a program."""
    return [sys.executable, "-m", f"lab.histories.{module}", json.dumps(said)]
