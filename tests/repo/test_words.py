"""Words: docs/concepts/words.md has what a reader needs, and files explain their own names."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePath

from tests.repo.reading import ROOT, files, report

DOCUMENT = ROOT / "docs" / "concepts" / "words.md"
MOST_WORDS = 2_500
TERM = re.compile(r"^\*\*([^*]+)\.\*\*", re.MULTILINE)
FEWEST_WORDS = 4
"""Fewer words than these say no more of a file than its name does."""


def terms(text: str) -> Iterator[str]:
    """The words that begin a paragraph in bold: each is explained there."""
    for found in TERM.findall(text):
        yield from found.lower().split(", ")


def unused(text: str, elsewhere: str) -> list[str]:
    """The terms that are explained here and stand nowhere else."""
    return [each for each in terms(text) if each not in elsewhere]


def unexplained(path: PurePath, code: str) -> Iterator[str]:
    """Say what is wrong with a file that does not say at its beginning what it is."""
    first = (ast.get_docstring(ast.parse(code)) or "").split("\n\n")[0]
    if len(first.split()) < FEWEST_WORDS:
        yield f"{path}: its docstring does not explain {path.stem!r}: {first!r}"


def test_a_reader_learns_the_words_in_ten_minutes() -> None:
    text = DOCUMENT.read_text("utf-8")
    assert len(text.split()) <= MOST_WORDS
    assert [each for each, count in Counter(terms(text)).items() if count > 1] == []


def test_every_word_that_is_explained_is_used() -> None:
    read = [path for path in files() if path.parts[0] in {"docs", "src"}]
    others = [
        (ROOT / path).read_text("utf-8")
        for path in read
        if path.suffix in {".md", ".py"} and ROOT / path != DOCUMENT
    ]
    assert unused(DOCUMENT.read_text("utf-8"), " ".join(others).lower()) == []


def test_every_file_explains_its_name() -> None:
    paths = [path for path in files() if path.parts[0] in {"src", "lab"} and path.suffix == ".py"]
    code = {path: (ROOT / path).read_text("utf-8") for path in paths}
    found = [each for path in paths if code[path] for each in unexplained(path, code[path])]
    assert len(paths) > len(found)
    assert found == [], report(found)


def test_a_word_without_use_and_a_file_without_explanation_are_found() -> None:
    text = "# Words\n\n**Owner.** Serves. One *leads*.\n\n**Seat, beat.** Two.\n"
    assert unused(text, "an owner has a seat") == ["beat"]
    assert list(unexplained(PurePath("a.py"), '"""Owners, as the manager sees them."""')) == []
    for bad in ("", '"""Owners."""', "x = 1\n"):
        assert list(unexplained(PurePath("owners.py"), bad))
