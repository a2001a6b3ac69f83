"""Checks what the distributions hold, and lists what they are made with; `tools/dist-check` calls
it.

It needs only the standard library, because it runs before anything is installed.
"""

import email
import json
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
OF_DEVELOPERS = {"chat", "dev", "docs", "peers", "release"}
IN_SDIST = (
    "LICENSE",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "Makefile",
    "mkdocs.yml",
    "pyproject.toml",
    "src/tenure/py.typed",
    "docs/index.md",
    "docs/pictures/demo.svg",
    "tests/conftest.py",
    "examples/quickstart/owner.py",
    "deploy/compose.yml",
)
IN_WHEEL = (
    "tenure/__init__.py",
    "tenure/py.typed",
    "tenure/_docs/index.md",
    "tenure/dashboard/static/style.css",
)
NOT_IN_EITHER = (".venv", "__pycache__", ".pyc", ".sqlite", ".git/", "build/", ".hypothesis")


def project() -> dict[str, Any]:
    said: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return said


def extras() -> list[str]:
    """Those that users have."""
    return sorted(set(project()["project"]["optional-dependencies"]) - OF_DEVELOPERS)


def check(folder: Path) -> Iterator[str]:
    """What is wrong with the one sdist and the one wheel in a folder."""
    [sdist], [wheel] = folder.glob("*.tar.gz"), folder.glob("*.whl")
    with tarfile.open(sdist) as packed:
        names = [name.partition("/")[2] for name in packed.getnames()]
    yield from missing(sdist.name, names, IN_SDIST)
    with zipfile.ZipFile(wheel) as zipped:
        inside = zipped.namelist()
        info = next(name.partition("/")[0] for name in inside if ".dist-info/" in name)
        metadata = email.message_from_bytes(zipped.read(f"{info}/METADATA"))
        entries = zipped.read(f"{info}/entry_points.txt").decode()
    licences = (f"{info}/licenses/LICENSE", f"{info}/METADATA")
    yield from missing(wheel.name, inside, (*IN_WHEEL, *licences))
    strays = {name.partition("/")[0] for name in inside} - {"tenure", info}
    yield from (f"{wheel.name} would install {name} beside tenure" for name in sorted(strays))
    yield from wrong_metadata(metadata)
    if "tenure = tenure.cli:main" not in entries:
        yield f"{wheel.name} has no command tenure"


def missing(where: str, names: list[str], wanted: tuple[str, ...]) -> Iterator[str]:
    yield from (f"{where} lacks {name}" for name in wanted if name not in names)
    for name in names:
        if any(part in name for part in NOT_IN_EITHER):
            yield f"{where} has {name}"


def wrong_metadata(metadata: Any) -> Iterator[str]:  # noqa: ANN401  # a Message
    said = project()["project"]
    for field, wanted in (
        ("Name", said["name"]),
        ("Version", said["version"]),
        ("Requires-Python", said["requires-python"]),
        ("License-Expression", said["license"]),
        ("Description-Content-Type", "text/markdown"),
    ):
        if metadata[field] != wanted:
            yield f"the metadata have {field}: {metadata[field]}, and not {wanted}"
    declared = set(metadata.get_all("Provides-Extra", []))
    if absent := set(said["optional-dependencies"]) - declared:
        yield f"the metadata lack the extras {', '.join(sorted(absent))}"
    if "Typing :: Typed" not in metadata.get_all("Classifier", []):
        yield "the metadata do not say that tenure has types"


def wrong_demo(summary: dict[str, Any]) -> Iterator[str]:
    if summary["double_owner"] or summary["failed"] or not summary["requests"]:
        yield f"the demo that was installed came to {summary}"


def main() -> int:
    asked, *rest = sys.argv[1:]
    tell: dict[str, Callable[[], Iterator[str]]] = {
        "check": lambda: check(Path(rest[0])),
        "demo": lambda: wrong_demo(json.loads(Path(rest[0]).read_text("utf-8"))),
    }
    if asked == "extras":
        print(",".join(extras()))
        return 0
    found = list(tell[asked]())
    for line in found:
        print(f"dist-check: {line}", file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
