"""Shape: no function over 70 lines, no file over 500, and no file with a name like a URL.

Long functions and long files are where a second idea hides. The bound is for tests, benchmarks and
examples too: they are read as often.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.repo.reading import ROOT, files, report, sources

FUNCTION_LINES = 70
FILE_LINES = 500
NAME = re.compile(r"[\w./@+-]+", re.ASCII)
"""How files are called that every system can check out."""


def complaints(path: str, text: str) -> Iterator[str]:
    lines = len(text.splitlines())
    if lines > FILE_LINES:
        yield f"{path}:{lines} {lines} lines, {FILE_LINES} at most: what is its second idea?"
    for node in ast.walk(ast.parse(text, path)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if length > FUNCTION_LINES:
            yield f"{path}:{node.lineno} {node.name}: {length} lines, {FUNCTION_LINES} at most"


def test_no_function_and_no_file_is_too_long() -> None:
    found = [
        line
        for path in sources()
        for line in complaints(str(path), (ROOT / path).read_text("utf-8"))
    ]
    assert found == [], report(found)


def test_a_long_function_is_found() -> None:
    body = "    x = 1\n" * FUNCTION_LINES
    text = f"import a\n\nclass C:\n  async def f():\n{body}"
    assert list(complaints("a.py", text)) == ["a.py:4 f: 71 lines, 70 at most"]
    assert list(complaints("a.py", text.removesuffix("    x = 1\n"))) == []


def test_a_long_file_is_found() -> None:
    assert len(list(complaints("a.py", "x = 1\n" * (FILE_LINES + 1)))) == 1
    assert list(complaints("a.py", "x = 1\n" * FILE_LINES)) == []


def unportable(paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        if not NAME.fullmatch(str(path)):
            yield f"{path}: no file of ours has such a name: has a test left it, or a mistyped URL?"


def test_no_file_was_left_by_a_test_or_a_mistyped_url() -> None:
    """Whatever a command makes in the work tree is committed with everything else. A directory
    that is called like a URL, with a colon in it, cannot even be checked out everywhere.
    """
    found = list(unportable(files()))
    assert found == [], report(found)


def test_a_store_in_a_directory_that_is_called_like_a_url_is_found() -> None:
    left = Path("http:/app:secret@h/LOG")
    assert len(list(unportable([left, Path("src/a.py"), Path(".ci/run")]))) == 1
