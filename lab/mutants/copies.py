"""The product beside itself, with a mutant's patches.

A copy of `src` and `lab` shares with the original whatever a patch does not touch: whole
directories, and in those that have a patched file, all other files and their compiled forms. So
making one takes milliseconds, and a process that runs it compiles the patched files only.
"""

import importlib.util
from collections.abc import Mapping
from pathlib import Path

from lab.mutants.catalogue import ROOT

COMPILED = "__pycache__"
TOPS = "src", "lab"


def make_copy(texts: Mapping[str, str], root: Path) -> None:
    """Make the product and the lab again under `root`, with these files in place of theirs."""
    for top in TOPS:
        if any(Path(each).parts[0] == top for each in texts):
            _copy(Path(top), texts, root)
        else:
            (root / top).symlink_to(ROOT / top)


def _copy(directory: Path, texts: Mapping[str, str], root: Path) -> None:
    here = root / directory
    here.mkdir()
    (here / COMPILED).mkdir()
    for child in (ROOT / directory).iterdir():
        path = directory / child.name
        if str(path) in texts:
            (here / child.name).write_text(texts[str(path)])
        elif any(path in Path(each).parents for each in texts):
            _copy(path, texts, root)
        elif child.name != COMPILED:
            (here / child.name).symlink_to(child)
            _share_compiled(child, here / COMPILED)


def _share_compiled(source: Path, compiled: Path) -> None:
    """Link the compiled form, which counts as long as its source is of the same size and time."""
    if source.suffix != ".py":
        return
    there = Path(importlib.util.cache_from_source(str(source)))
    if there.exists():
        (compiled / there.name).symlink_to(there)
