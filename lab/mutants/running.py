"""Running a mutant: a process of its own, which imports the mutant's copy in place of the product.

What is to be run is a function that can be imported, with arguments that can be pickled. What it
returns comes back; what it raises is raised here.
"""

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from lab.mutants.catalogue import ROOT, Mutant
from lab.mutants.copies import make_copy

T = TypeVar("T")
COMPILED_ELSEWHERE = ("PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE")
"""What would keep a copy from using the compiled files beside it."""


def run_without(broken: Mutant, function: Callable[..., T], *args: Any, **named: Any) -> T:
    """Call the function in a process in which a rule is left out."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as place:
        root = Path(place)
        make_copy(broken.texts(), root)
        asked, told = root / "asked", root / "told"
        asked.write_bytes(pickle.dumps(partial(function, *args, **named)))
        command = [sys.executable, "-P", "-m", "lab.mutants.child", str(asked), str(told)]
        done = subprocess.run(command, cwd=ROOT, env=environment_of(root), check=False)
        assert told.exists(), f"{broken.name} ended with {done.returncode}, and said nothing"
        how, what = pickle.loads(told.read_bytes())  # noqa: S301  # of our own process
    if how == "raised":
        raise what
    returned: T = what
    return returned


def environment_of(root: Path) -> dict[str, str]:
    """The environment of a process that imports the copy under `root`."""
    kept = {name: value for name, value in os.environ.items() if name not in COMPILED_ELSEWHERE}
    places = (root / "src", root, ROOT)
    return kept | {"PYTHONPATH": os.pathsep.join(map(str, places))}


def first_broken(run: Callable[[Any], Any], trials: Sequence[Any]) -> Any:
    """The outcome of the first of these trials that breaks a promise; None if none does."""
    outcomes = (run(each) for each in trials)
    return next((each for each in outcomes if each.violation is not None), None)
