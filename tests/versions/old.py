"""The releases that meet in tests: the present one, and the first, under the name it had then."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent


class Release(NamedTuple):
    """A package, and where it lies if it is not the installed one."""

    package: str
    path: tuple[Path, ...] = ()


NEW = Release("tenure")
OLD = Release("leasehold", (HERE / "leasehold-1.zip", HERE / "leasehold-1"))
"""The second folder holds the metadata from which that package reads its own version."""


def environment(release: Release) -> dict[str, str]:
    """The environment of a process that is to import that release."""
    here = dict(os.environ)
    return {**here, "PYTHONPATH": os.pathsep.join(map(str, release.path))} if release.path else here


def run_old(program: str, said: str = "") -> str:
    """Return what a program of this folder answers when the first release runs it."""
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
