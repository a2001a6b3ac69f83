"""The first leasehold: where it is, and how it is run."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
OLD = HERE / "leasehold-1.zip"
NEW: Path | None = None
"""The present leasehold: it needs no other path than the test itself."""


def environment(leasehold: Path | None) -> dict[str, str]:
    """That of a process which is to import that leasehold."""
    return {**os.environ, "PYTHONPATH": str(leasehold)} if leasehold else dict(os.environ)


def run_old(program: str, said: str = "") -> str:
    """What a program of this folder answers when the first leasehold runs it."""
    ran = subprocess.run(
        [sys.executable, str(HERE / program)],
        input=said,
        capture_output=True,
        check=False,
        text=True,
        encoding="utf-8",
        timeout=60,
        env={**environment(OLD), "PYTHONUTF8": "1"},
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
