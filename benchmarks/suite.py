"""How long the tests take, all of them, as `make test` runs them.

Bound: 300 s. Tests that take longer are not run before a change, but after it.
"""

import subprocess
import sys
from pathlib import Path
from time import monotonic

from benchmarks._rounds import line

BOUND_SECONDS = 300
ROOT = Path(__file__).parent.parent
FAILOVER = "tests/integration/failover"
"""They wait for real terms to run out, and have a command of their own."""
TESTS = (
    *(sys.executable, "-m", "pytest", "-q", "-n", "auto", "--dist", "worksteal"),
    *("--ignore", FAILOVER),
)


def main() -> int:
    """Run them, and print; return 1 if a test fails, or the bound is not kept."""
    began = monotonic()
    passed = subprocess.run(TESTS, cwd=ROOT, check=False).returncode == 0
    return 0 if report(monotonic() - began) and passed else 1


def report(seconds: float) -> bool:
    """The figure beside its bound; whether it is kept."""
    is_kept = seconds <= BOUND_SECONDS
    print(line("all tests", f"{seconds:.0f} s", f"<= {BOUND_SECONDS} s", is_kept=is_kept))
    return is_kept


if __name__ == "__main__":
    sys.exit(main())
