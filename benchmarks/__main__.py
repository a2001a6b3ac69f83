"""Run the benchmarks, each in a process of its own: all of them, or those named.

A benchmark is a module in this folder that prints its figures when run as a program. One whose
name begins with an underscore is what they share.
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main(wanted: list[str]) -> int:
    programs = sorted(path.stem for path in HERE.glob("[!_]*.py"))
    unknown = [name for name in wanted if name not in programs]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are: {', '.join(programs) or 'none'}")
        return 2
    failed = []
    for name in wanted or programs:
        print(f"== {name}", flush=True)
        program = [sys.executable, "-m", f"benchmarks.{name}"]
        if subprocess.run(program, cwd=HERE.parent, check=False).returncode != 0:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
