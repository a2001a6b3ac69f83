"""`version.py VERSION DATE` gives the project that version; `version.py notes VERSION` prints its
notes.

The version is in `pyproject.toml` and in `tenure/__init__.py`; in the changelog, the unreleased
part becomes that of the version.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACES = {
    "pyproject.toml": re.compile(r'^version = "[^"]*"$', re.MULTILINE),
    "src/tenure/__init__.py": re.compile(r'^__version__ = "[^"]*"$', re.MULTILINE),
}
UNRELEASED = "## [Unreleased]\n"


def set_version(root: Path, version: str, date: str) -> None:
    """Write it. Raises ValueError where it does not stand once in each place."""
    for name, place in PLACES.items():
        text = (root / name).read_text("utf-8")
        changed, count = place.subn(lambda was: f'{was[0].partition("=")[0]}= "{version}"', text)
        if count != 1:
            raise ValueError(f"{name} has {count} lines with a version")
        (root / name).write_text(changed, "utf-8")
    changes = (root / "CHANGELOG.md").read_text("utf-8")
    if changes.count(UNRELEASED) != 1 or f"## [{version}]" in changes:
        raise ValueError(f"CHANGELOG.md needs one part [Unreleased], and none of {version} yet")
    released = changes.replace(UNRELEASED, f"{UNRELEASED}\n## [{version}] - {date}\n")
    (root / "CHANGELOG.md").write_text(released, "utf-8")


def notes(root: Path, version: str) -> str:
    """What the changelog says of it."""
    text = (root / "CHANGELOG.md").read_text("utf-8")
    return text.partition(f"## [{version}]")[2].partition("\n")[2].partition("\n## ")[0].strip()


if __name__ == "__main__":
    if sys.argv[1] == "notes":
        print(notes(ROOT, sys.argv[2]))
    else:
        set_version(ROOT, *sys.argv[1:])
