"""Places: what the protocol's description names in code and tests is there, under that name."""

import re
from collections.abc import Iterator
from functools import cache

from tests.repo.reading import ROOT, files, modules, report

DOCUMENT = "docs/internals/protocol.md"
MEMBER = re.compile(r"`([A-Z]\w+)\.(\w+)`")
TEST = re.compile(r"`(test_\w+)`")
RULE = re.compile(r"\bP(\d+)\b")


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


def missing(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        for name, member in MEMBER.findall(line):
            if not re.search(rf"\b{member}\b", classes().get(name, "")):
                yield f"{DOCUMENT}:{number} there is no {name}.{member}"
        for test in TEST.findall(line):
            if test not in known_tests():
                yield f"{DOCUMENT}:{number} there is no {test}"


def test_what_the_protocols_description_names_is_there() -> None:
    found = list(missing((ROOT / DOCUMENT).read_text("utf-8")))
    assert found == [], report(found)


def test_every_rule_that_code_names_is_described() -> None:
    described = set(RULE.findall((ROOT / DOCUMENT).read_text("utf-8")))
    named = {rule for module in modules() for rule in RULE.findall(module.text)}
    assert named - described == set()


def test_a_name_that_is_not_there_is_found() -> None:
    assert list(missing("`Pool.on_join`, `Session.proven`")) == []
    assert len(list(missing("`Pool.on_jion`\n`Poool.on_join` `test_of_nothing`"))) == 3
