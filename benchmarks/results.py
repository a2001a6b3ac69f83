"""Run the experiments, the papers' and those beside the peers; write `RESULTS.md` and the README's
table.

`python -m benchmarks results` runs all of them, which takes hours; `--only NAME` runs that one, and
leaves the others on the page as they were measured before. `python -m benchmarks --quick results`
takes minutes, since it also runs some side by side. What cannot be compared here is named on the
page: `.ci/peers` fetches the peers. The exit code is 1 where an experiment fails, and in the full
form where a figure is not reached.
"""

import importlib
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from functools import partial
from multiprocessing import get_context

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks._quick import QUICK
from benchmarks._readme import README, block, written
from benchmarks._report import Measured, Results, Section, commit, form, load, machine, say
from benchmarks.peers.versions import versions

ORDER = (
    "check",
    "changes",
    "stopped",
    "cut",
    "coordinator",
    "cached",
    "entity",
    "durable",
    "renewals",
    "propagation",
    "at_rest",
    "restarts",
    "rotation",
    "scale",
    "memory",
    "limits",
    "rack",
    "skew",
    "calls",
    "volumes",
    "inbox",
)
"""The results in the order of the page."""
SIDE_BY_SIDE = (
    *("changes", "stopped", "cut", "coordinator", "at_rest", "restarts", "rotation", "scale"),
    *("memory", "rack", "skew", "volumes"),
)
"""Experiments that mostly wait, or count what a process uses: the quick form runs some of them at
once. What takes the time of an operation is run alone."""
AT_ONCE = 3
OPTIONS = {"restarts": ("minutes", "pace"), "at_rest": ("seconds",), "scale": ("seconds",)}
Tell = Callable[[str], None]


def ignore(_: str) -> None:
    """Ignore what each of several does that run at once."""


def run(name: str, tell: Tell, options: dict[str, float]) -> Measured:
    """One experiment, and how it went."""
    module = importlib.import_module(f"benchmarks.experiments.{name}")
    before, began = load(), time.monotonic()
    section: Section = module.run(tell, **options)
    return Measured(
        name=name,
        section=section,
        form=form(),
        when=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        seconds=time.monotonic() - began,
        load=f"{before:.1f} to {load():.1f}",
        commit=commit(),
        options="".join(f" --{option} {value:g}" for option, value in options.items()),
    )


def main() -> int:
    """Run them, and write the page."""
    parser = ArgumentParser(prog="python -m benchmarks results", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=ORDER, default=ORDER)
    parser.add_argument("--minutes", type=float, help="of each kind of `restarts`: the paper's 32")
    pace = "minutes that `restarts` would take for all of a kind, if it stops after --minutes"
    parser.add_argument("--pace", type=float, help=pace)
    parser.add_argument("--seconds", type=float, help="of each of `at_rest` and `scale`")
    said = parser.parse_args()
    names = said.only
    results = Results(order=ORDER)
    failed: list[str] = []
    missed: list[str] = []
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )
    shown: AbstractContextManager[object] = bar if console.is_terminal else nullcontext()
    task = bar.add_task("", total=len(names))
    together = [name for name in names if QUICK and name in SIDE_BY_SIDE]

    def keep(name: str, measured: Callable[[], Measured]) -> None:
        try:
            found = measured()
        except Exception as error:  # noqa: BLE001  # the others are worth having all the same
            say(f"   {name} FAILED: {error!r}")
            failed.append(name)
            return
        finally:
            bar.advance(task)
        results.keep(found)
        missed.extend(f"{name}: {each.what}" for each in found.section.promises if not each.is_kept)
        page = results.write(machine(versions()))
        if (table := block(results.all())) is not None:
            README.write_text(written(README.read_text(), table))
        say(f"   {name}: {found.seconds:.0f} s, in {page.name}")

    began = time.monotonic()
    with shown:
        for name in names:
            if name not in together:

                def tell(what: str, name: str = name) -> None:
                    bar.update(task, description=f"{name}: {what}")
                    if not console.is_terminal:
                        say(f"   {name}: {what}")

                asked = {option: getattr(said, option) for option in OPTIONS.get(name, ())}
                options = {option: value for option, value in asked.items() if value}
                keep(name, partial(run, name, tell, options))
        bar.update(task, description=", ".join(together))
        with ProcessPoolExecutor(AT_ONCE, mp_context=get_context("spawn")) as pool:
            running = {pool.submit(run, name, ignore, {}): name for name in together}
            for done in as_completed(running):
                keep(running[done], done.result)
    say(f"   {time.monotonic() - began:.0f} s in all")
    for each in missed:
        print(f"not reached: {each}")
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed or (missed and not QUICK) else 0


if __name__ == "__main__":
    sys.exit(main())
