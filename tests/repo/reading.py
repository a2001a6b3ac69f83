"""The repository as data: its files, its modules, and what each module imports.

The tests in this folder turn rules of the house into checks. A checker is a function from source
text to complaints, each beginning with `path:line`; so it can be shown a bad sample, and must
complain about it, or the rule is only a wish.
"""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
LAB = ROOT / "lab"

# Where the repository is not a git checkout (an unpacked sdist), these are passed over instead.
UNTRACKED = {"build", "dist", "__pycache__"}


class Module(NamedTuple):
    name: str  # dotted, as in an import
    path: str  # from the root, as a complaint names it
    text: str
    is_package: bool

    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)


class Import(NamedTuple):
    """One imported thing: `from a.b import c` is module `a.b` and name `c`."""

    line: int
    module: str
    name: str | None


@cache
def files() -> tuple[Path, ...]:
    """Every file that is, or is about to be, part of the repository, from the root."""
    git = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listing = subprocess.run(git, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        found = [path.relative_to(ROOT) for path in ROOT.rglob("*")]
        listing = "\0".join(
            str(path)
            for path in found
            if not UNTRACKED & set(path.parts)
            and not any(part.startswith(".") and part != ".ci" for part in path.parts)
        )
    paths = sorted({Path(name) for name in listing.split("\0") if name})
    return tuple(path for path in paths if (ROOT / path).is_file())


def sources() -> tuple[Path, ...]:
    return tuple(path for path in files() if path.suffix == ".py")


def modules() -> tuple[Module, ...]:
    """Every module of the library."""
    return _modules(SRC, SRC)


def lab_modules() -> tuple[Module, ...]:
    """Every module of the lab."""
    return _modules(LAB, ROOT)


@cache
def _modules(place: Path, root: Path) -> tuple[Module, ...]:
    found = []
    for path in sources():
        if not (ROOT / path).is_relative_to(place):
            continue
        parts = (ROOT / path).relative_to(root).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        found.append(Module(name, str(path), (ROOT / path).read_text("utf-8"), is_package))
    return tuple(found)


def sample(name: str, text: str) -> Module:
    """A module that does not exist, to show to a checker."""
    return Module(name, f"src/{name.replace('.', '/')}.py", text, is_package=False)


def imports(module: Module) -> Iterator[Import]:
    """Everything the module imports, wherever in it, also for type checkers only."""
    for node in ast.walk(module.tree()):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(node.lineno, alias.name, None)
        elif isinstance(node, ast.ImportFrom):
            source = _absolute(module, node)
            for alias in node.names:
                yield Import(node.lineno, source, alias.name)


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    drop = node.level - (1 if module.is_package else 0)
    parts = module.name.split(".")
    package = parts[: len(parts) - drop]
    return ".".join([*package, node.module] if node.module else package)


def report(complaints: list[str]) -> str:
    """Return what a failing test shows."""
    return "\n" + "\n".join(complaints)
