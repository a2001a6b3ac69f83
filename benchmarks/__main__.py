"""Run the benchmarks, each in a process of its own: all of them, or those named.

A benchmark is a module in this folder that prints its figures when run as a program. Modules whose
names begin with an underscore are shared by benchmarks. Arguments after the name of a single
benchmark, from the first dash on, go to that benchmark: `rolling --surge --requests 20000`.
`--quick`, before any name, applies to all: seconds instead of minutes, see `_quick.py`. A benchmark
that is ended by a signal leaves nothing behind, see `_family.py`. `repair --help` says what one
measures, and which options it has.
"""

import ast
import os
import sys
from itertools import takewhile
from pathlib import Path
from time import monotonic

from benchmarks._family import run
from benchmarks._last_lines import LastLines
from benchmarks._quick import VARIABLE

HERE = Path(__file__).parent
WITHOUT = ("copies", "quorum", "results", "ring", "suite")
"""The benchmarks that `--quick` leaves out unless they are named: `make bench-quick` and `make
test` run them anyway, and `copies`, `quorum` and `ring` start many processes each, as tests do in
`make test-failover`.
"""
PARTS = {"balance": ("10", "0.8", "weighted"), "rolling": ("--surge",), "service_lines": ()}
"""The benchmarks whose quick form is one part of the whole."""


def main(said: list[str]) -> int:
    programs = sorted(path.stem for path in HERE.glob("[!_]*.py"))
    is_quick = said[:1] == ["--quick"]
    wanted, options = told_apart(said[is_quick:])
    if options and len(wanted) != 1:
        print(f"{' '.join(options)} is for one benchmark: name it first, and no other")
        return 2
    unknown = [name for name in wanted if name not in programs]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are: {', '.join(programs) or 'none'}")
        return 2
    if options and (code := answered(wanted[0], options)) is not None:
        return code
    environment = os.environ | ({VARIABLE: "1"} if is_quick else {})
    failed = {}
    for name in wanted or (each for each in programs if not is_quick or each not in WITHOUT):
        print(f"== {name}", flush=True)
        shorter = PARTS.get(name, ()) if is_quick else ()
        program = [sys.executable, "-m", f"benchmarks.{name}", *(options or shorter)]
        began = monotonic()
        if sys.stdout.isatty():  # a terminal shows progress in place
            code, last = run(program, HERE.parent, environment), ""
        else:
            with LastLines() as lines:
                code = run(program, HERE.parent, environment, lines.fd)
            last = lines.text
        if code != 0:
            failed[name] = last
        print(f"   {monotonic() - began:.0f} s", flush=True)
    if failed:
        if wanted != list(failed):
            for name, last in failed.items():
                print(f"== {name}, which failed, ended with\n{last}", end="")
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


def answered(name: str, options: list[str]) -> int | None:
    """Explain the benchmark, if that is asked for. Return the exit code if there is nothing to run:
    most benchmarks have no options.
    """
    text = (HERE / f"{name}.py").read_text("utf-8")
    has_options = "ArgumentParser(" in text
    is_asked = bool({"-h", "--help"} & set(options))
    if is_asked:
        print(ast.get_docstring(ast.parse(text)), end="\n\n", flush=True)
    elif not has_options:
        print(f"{' '.join(options)}: {name} has no options")
    if has_options:
        return None
    return 0 if is_asked else 2


def told_apart(said: list[str]) -> tuple[list[str], list[str]]:
    """Names of benchmarks, and options for one."""
    names = list(takewhile(lambda each: not each.startswith("-"), said))
    return names, said[len(names) :]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
