"""The command line. What it needs beyond the library comes with the extra `server`."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from tenure.cli.exit_codes import INTERRUPTED

EXTRA = ("cyclopts", "rich")


def main() -> None:
    """Run the command that the process was started with; exits with its code."""
    if sys.stdout is None or sys.stderr is None:  # closed before it began, as by `>&-`
        nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
        sys.stdout, sys.stderr = sys.stdout or nowhere, sys.stderr or nowhere
    missing = [name for name in EXTRA if find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        print(
            f"tenure: the command line needs {' and '.join(EXTRA)}, and "
            f"{' and '.join(missing)} {verb} not installed. "
            "They come with the extra: pip install 'tenure[server]' (in a clone: make setup)",
            file=sys.stderr,
        )
        sys.exit(1)
    try:
        from tenure.cli.app import run
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)  # while it loads, nobody needs to know where
    sys.exit(run(sys.argv[1:]))
