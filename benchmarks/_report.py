"""`RESULTS.md`: what the experiments found, each in a section that can be measured again alone.

A section is kept as JSON in `results/`, with its pictures, so that one experiment can be run again
while the others stay; the page is written from all of them.
"""

import importlib.metadata
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from benchmarks._quick import QUICK

HERE = Path(__file__).parent
COMMAND = "python -m benchmarks results"


class Table(msgspec.Struct):
    """A table of the page."""

    head: list[str]
    rows: list[list[str]]
    caption: str = ""

    def lines(self) -> list[str]:
        """Return the table's lines, in Markdown."""
        said = [self.caption, ""] if self.caption else []
        rule = ["---"] + ["---:"] * (len(self.head) - 1)
        return [*said, *(f"| {' | '.join(row)} |" for row in (self.head, rule, *self.rows)), ""]


class Picture(msgspec.Struct):
    """A drawing, in a file of its own."""

    file: str
    what: str
    svg: str


class Promise(msgspec.Struct):
    """A figure that was to be reached."""

    what: str
    figure: str
    bound: str
    is_kept: bool


class Section(msgspec.Struct):
    """The findings of one experiment."""

    title: str
    text: str
    tables: list[Table] = []
    pictures: list[Picture] = []
    promises: list[Promise] = []
    notes: list[str] = []
    """Experiments that were skipped, and figures in which another system is ahead."""


class Measured(msgspec.Struct):
    """A section, and how it came to be."""

    name: str
    section: Section
    form: Literal["quick", "full"]
    when: str
    seconds: float
    load: str
    """The load of the machine, before and after."""
    commit: str
    options: str = ""
    """The options of the experiment that differ from those of its form, as they are typed."""


def form() -> Literal["quick", "full"]:
    return "quick" if QUICK else "full"


class Results:
    """The sections, in a folder, and the page over them."""

    def __init__(self, folder: Path = HERE, order: Sequence[str] = ()) -> None:
        self._folder = folder
        self._order = order

    def keep(self, measured: Measured) -> None:
        """Keep the section in place of the one measured before."""
        there = self._folder / "results"
        there.mkdir(exist_ok=True)
        for old in there.glob(f"{measured.name}.*"):
            old.unlink()
        for picture in measured.section.pictures:
            (there / picture.file).write_text(picture.svg)
            picture.svg = ""
        data = msgspec.json.format(msgspec.json.encode(measured), indent=1)
        (there / f"{measured.name}.json").write_bytes(data + b"\n")

    def all(self) -> list[Measured]:
        """Return all, in the order of the page."""
        found = {
            path.stem: msgspec.json.decode(path.read_bytes(), type=Measured)
            for path in (self._folder / "results").glob("*.json")
        }
        return [found[name] for name in self._order if name in found]

    def write(self, how: Iterable[str]) -> Path:
        """Write the page, and return where it is. `how` says on what it was measured."""
        page = self._folder / "RESULTS.md"
        page.write_text("\n".join([*_head(how), *map(_section, self.all())]))
        return page


def _head(how: Iterable[str]) -> list[str]:
    return [
        "# Results",
        "",
        "Written by `make bench` (hours) or `make bench-quick` (minutes); do not edit. Every",
        "comparison is of one run on one machine; the tables say so where another is ahead.",
        "",
        *(f"- {each}" for each in how),
        "",
    ]


def _section(measured: Measured) -> str:
    section = measured.section
    lines = [f"## {section.title}", "", section.text, ""]
    for picture in section.pictures:
        lines += [f"![{picture.what}](results/{picture.file})", ""]
    for table in section.tables:
        lines += table.lines()
    if section.promises:
        rows = [
            [each.what, each.figure, each.bound, "yes" if each.is_kept else "**no**"]
            for each in section.promises
        ]
        lines += Table(["to be reached", "measured", "bound", "kept"], rows).lines()
    lines += [*(f"- {note}" for note in section.notes), ""] if section.notes else []
    quick = "--quick " if measured.form == "quick" else ""
    command = f"python -m benchmarks {quick}results --only {measured.name}{measured.options}"
    how = (
        f"*{measured.form.capitalize()} form, {measured.when}, {measured.seconds:.0f} s, load "
        f"{measured.load}, commit {measured.commit}. Again: `{command}`*"
    )
    return "\n".join([*lines, how, ""])


def machine(versions: Iterable[str]) -> list[str]:
    """The machine on which the page was measured."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    system = f"{platform.system()} {platform.release()}"
    return [
        f"Machine: {os.cpu_count()} cores ({_processor()}), {memory:.0f} GiB, {system}",
        f"Python {platform.python_version()}, {', '.join(versions)}",
    ]


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    names = info.read_text().splitlines() if info.exists() else []
    found = [line.partition(":")[2].strip() for line in names if line.startswith("model name")]
    return found[0] if found else platform.machine()


def version_of(package: str) -> str | None:
    """Return `package` and its version, if it is installed."""
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return None


def load() -> float:
    """Return the load of the last minute."""
    return os.getloadavg()[0]


def commit() -> str:
    """Return the commit of the tree that was measured. What measuring writes makes it no other."""
    written = (":!RESULTS.md", ":!results", ":!../README.md")
    name = _git("rev-parse", "--short=8", "HEAD").stdout.strip()
    differs = _git("diff", "--quiet", "HEAD", "--", "..", *written).returncode
    return f"{name}-dirty" if name and differs else name or "unknown"


def _git(*asked: str) -> subprocess.CompletedProcess[str]:
    command = ["git", *asked]
    return subprocess.run(command, cwd=HERE, check=False, capture_output=True, text=True)


def prose(text: str) -> str:
    """Text that was broken into lines, as one paragraph."""
    return " ".join(text.split())


def say(text: str) -> None:
    """Print a line beside the progress."""
    print(text, file=sys.stderr, flush=True)
