"""Run the benchmarks, each in a process of its own: all of them, or those named.

A benchmark is a module in this folder that prints its figures when run as a program. One whose
name begins with an underscore is what they share. What follows the name of a single one, from the
first dash on, is for that one: `rolling --surge --requests 20000`.
"""

import subprocess
import sys
from itertools import takewhile
from pathlib import Path

HERE = Path(__file__).parent


def main(said: list[str]) -> int:
    programs = sorted(path.stem for path in HERE.glob("[!_]*.py"))
    wanted, options = told_apart(said)
    if options and len(wanted) != 1:
        print(f"{' '.join(options)} is for one benchmark: name it first, and no other")
        return 2
    unknown = [name for name in wanted if name not in programs]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are: {', '.join(programs) or 'none'}")
        return 2
    failed = []
    for name in wanted or programs:
        print(f"== {name}", flush=True)
        program = [sys.executable, "-m", f"benchmarks.{name}", *options]
        if subprocess.run(program, cwd=HERE.parent, check=False).returncode != 0:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


def told_apart(said: list[str]) -> tuple[list[str], list[str]]:
    """Names of benchmarks, and options for one."""
    names = list(takewhile(lambda each: not each.startswith("-"), said))
    return names, said[len(names) :]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
