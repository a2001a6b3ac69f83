"""Words: every noun that a file is named after stands in docs/concepts/words.md."""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from tests.repo.reading import ROOT, files, report

DOCUMENT = ROOT / "docs" / "concepts" / "words.md"
WORD = re.compile(r"\*\*([^*]+?)\.?\*\*|^#+ (.+)$|(?<!\*)\*([^*]+)\*(?!\*)", re.MULTILINE)
NO_NOUNS = {"__init__", "__main__"}


def words(text: str) -> set[str]:
    """Return the words that are explained: in bold, in italics, or as a heading."""
    return {next(filter(None, found)).lower() for found in WORD.findall(text)}


def forms(name: str) -> set[str]:
    """The name as one, and as several."""
    ones = {name, name.removesuffix("s"), name.removesuffix("es")}
    if name.endswith("ies"):
        ones.add(name.removesuffix("ies") + "y")
    return {*ones, f"{name}s", name.replace(" ", "-")}


def is_explained(name: str, known: set[str]) -> bool:
    """Whether the name stands there, or is made of two that do."""
    parts = name.split()
    return bool(forms(name) & known) or any(
        is_explained(" ".join(parts[:n]), known) and is_explained(" ".join(parts[n:]), known)
        for n in range(1, len(parts))
    )


def unexplained(paths: Sequence[PurePath], text: str) -> Iterator[str]:
    known = words(text)
    for path in paths:
        if path.stem not in NO_NOUNS and not is_explained(path.stem.replace("_", " "), known):
            yield f"{path}: {path.stem} is not in docs/concepts/words.md"


def test_every_file_is_named_after_a_word_that_is_explained() -> None:
    paths = [path for path in files() if path.parts[0] == "src" and path.suffix == ".py"]
    found = list(unexplained(paths, DOCUMENT.read_text("utf-8")))
    assert len(paths) > len(found)
    assert found == [], report(found)


def test_a_name_that_is_not_explained_is_found() -> None:
    text = "# Words\n\n**Owner.** Serves. One *leads*.\n\n| **Engine**, **entry** | runs it |\n"
    good = ["owner", "owners", "owner_engine", "entries", "leads", "__init__"]
    assert list(unexplained([PurePath(f"src/{each}.py") for each in good], text)) == []
    bad = ["lookup", "lookup_engine", "serves"]
    assert len(list(unexplained([PurePath(f"src/{each}.py") for each in bad], text))) == 3
