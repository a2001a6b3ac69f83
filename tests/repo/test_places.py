"""Places: the code and tests that the documents about the protocol name exist under these names."""

import re
from collections.abc import Iterator
from functools import cache

import pytest

from tests.repo.reading import ROOT, files, modules, report

DOCUMENT = "docs/internals/protocol.md"
VOLUMES = "docs/internals/volumes.md"
DOCUMENTS = (DOCUMENT, VOLUMES, "docs/internals/architecture.md", "docs/concepts/papers.md")
PATH = re.compile(r"`((?:[\w-]+/)*[\w-]+\.py)`")
MEMBER = re.compile(r"`([A-Z]\w+)\.(\w+)`")
TEST = re.compile(r"`(test_\w+)`")
RULE = re.compile(r"\b([PV]\d+)\b")


@cache
def classes() -> dict[str, str]:
    """The text of every class of the library, by its name."""
    found: dict[str, str] = {}
    for module in modules():
        for part in re.split(r"^(?=class )", module.text, flags=re.MULTILINE)[1:]:
            name = re.match(r"class (\w+)", part)
            assert name
            found[name[1]] = found.get(name[1], "") + part
    return found


@cache
def known_tests() -> set[str]:
    paths = (path for path in files() if path.parts[0] == "tests" and path.suffix == ".py")
    texts = ((ROOT / path).read_text("utf-8") for path in paths)
    return {name for text in texts for name in re.findall(r"def (test_\w+)\(", text)}


def is_there(path: str) -> bool:
    """Return whether a file exists under that path, from wherever it is told."""
    return any(f"/{known}".endswith(f"/{path}") for known in files())


def missing(text: str, document: str = DOCUMENT) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        for path in PATH.findall(line):
            if not is_there(path):
                yield f"{document}:{number} there is no {path}"
        for name, member in MEMBER.findall(line):
            if not re.search(rf"\b{member}\b", classes().get(name, "")):
                yield f"{document}:{number} there is no {name}.{member}"
        for test in TEST.findall(line):
            if test not in known_tests():
                yield f"{document}:{number} there is no {test}"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_a_document_names_is_there(document: str) -> None:
    found = list(missing((ROOT / document).read_text("utf-8"), document))
    assert found == [], report(found)


def test_every_rule_that_code_names_is_described() -> None:
    texts = [(ROOT / document).read_text("utf-8") for document in (DOCUMENT, VOLUMES)]
    described = {rule for text in texts for rule in RULE.findall(text)}
    named = {rule for module in modules() for rule in RULE.findall(module.text)}
    assert named - described == set()


def test_a_name_that_is_not_there_is_found() -> None:
    assert list(missing("`Pool.on_join`, `Session.proven`, `leader/pool.py`, `pool.py`")) == []
    assert len(list(missing("`lease/poool.py` `ease/pool.py`"))) == 2
    assert len(list(missing("`Pool.on_jion`\n`Poool.on_join` `test_of_nothing`"))) == 3
