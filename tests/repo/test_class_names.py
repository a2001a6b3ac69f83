"""Class names: none occurs twice in the library and the lab.

Two classes of one name are two meanings of one word: a reader of the name in a traceback, in an
import or in a search does not know which is meant.
"""

import ast
from collections.abc import Iterable, Iterator

from tests.repo.reading import Module, lab_modules, modules, report, sample

OF_THE_LAB = ("lab.contracts", "lab.demo", "lab.judges", "lab.search", "lab.trace", "lab.worlds")
"""What is read together with the library."""


def complaints(of: Iterable[Module]) -> Iterator[str]:
    first: dict[str, str] = {}
    for module in of:
        for node in ast.walk(module.tree()):
            if isinstance(node, ast.ClassDef):
                place = f"{module.path}:{node.lineno}"
                if node.name in first:
                    yield f"{place} {node.name} is a class at {first[node.name]} too"
                first.setdefault(node.name, place)


def test_no_class_name_occurs_twice() -> None:
    worlds = [each for each in lab_modules() if each.name.startswith(OF_THE_LAB)]
    found = list(complaints([*modules(), *worlds]))
    assert found == [], report(found)


def test_a_second_class_of_the_name_is_found() -> None:
    one = sample("tenure.a", "class Lease: ...\n")
    other = sample("tenure.b", "def f():\n    class Lease: ...\n")
    assert list(complaints([one, other])) == [
        "src/tenure/b.py:2 Lease is a class at src/tenure/a.py:1 too"
    ]
    assert list(complaints([one, sample("tenure.b", "class Leases: ...\n")])) == []
