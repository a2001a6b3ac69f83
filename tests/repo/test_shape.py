"""Shape: no function over 70 lines, no file over 500.

Long functions and long files are where a second idea hides. The bound is for tests, benchmarks and
examples too: they are read as often.
"""

import ast
from collections.abc import Iterator

from tests.repo.reading import ROOT, report, sources

FUNCTION_LINES = 70
FILE_LINES = 500


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
