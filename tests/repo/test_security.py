"""SECURITY.md: each row of who can do what at worst names its tests, and they exist."""

import ast
import re
from pathlib import Path

from tests.repo.reading import ROOT, report

NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def rows(text: str, head: str) -> list[list[str]]:
    """The cells of a table, whose head begins so."""
    table = text[text.index(head) :].partition("\n\n")[0]
    return [[each.strip() for each in row.split("|")[1:-1]] for row in table.splitlines()[2:]]


def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return {node.name for node in tree.body if isinstance(node, kinds)}


def complaints(text: str) -> list[str]:
    who = [row[0].partition(":")[0] for row in rows(text, "| who | can at worst |")]
    tested = {row[0]: row[1] for row in rows(text, "| who | tests |")}
    found = [f"{each!r} has no tests" for each in who if not NAMED.search(tested.get(each, ""))]
    found += [f"{each!r} is in no row" for each in tested if each not in who]
    for path, name in NAMED.findall(text):
        if not (ROOT / path).is_file():
            found.append(f"there is no {path}")
        elif name and name not in functions(ROOT / path):
            found.append(f"{path} has no {name}")
    return found


def test_each_row_of_the_threat_model_names_its_tests() -> None:
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    assert len(rows(text, "| who | can at worst |")) > 9
    assert complaints(text) == [], report(complaints(text))


def test_a_row_without_a_test_and_a_test_that_is_not_there_are_found() -> None:
    bad = """| who | can at worst |
|---|---|
| ann | read |
| bob | write |

| who | tests |
|---|---|
| ann | `tests/none.py` |
| eve | `tests/repo/test_security.py::test_none` |

"""
    assert complaints(bad) == [
        "'bob' has no tests",
        "'eve' is in no row",
        "there is no tests/none.py",
        "tests/repo/test_security.py has no test_none",
    ]
