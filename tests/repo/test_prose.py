"""Prose: what is written here is true anywhere, and its links and programs hold.

The patterns are put together from pieces, so that this file does not find itself.
"""

import ast
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.repo.reading import ROOT, files, report

OF_ONE_MACHINE = re.compile(r"(?<![\w.~-])/(?:work|home|root|Users)/\w")

REGISTRIES = "|".join(("py" + r"pi\.org", "python" + "hosted", "npm" + r"js\.(?:org|com)"))
REGISTRY = re.compile(rf"\b(?:{REGISTRIES})\b")

FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w+-]*)")
LINK = re.compile(r"\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
REFERENCE = re.compile(r"^\s{0,3}\[[^\]]+\]:\s*<?([^\s>]+)>?")
UNDER_NAMES = re.compile(r"\|(?:\s*:?-+:?\s*\|)+")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")

# The worst of what CONTRIBUTING asks not to write. It has examples of its own, in a table.
PRONOUNS = "(?:any|every|no|some)(?:thing|body|one|where)|what|who|whom|where|one"
HABITS = {
    "say otherwise": re.compile(
        rf"(?<!\w)(?!(?:{PRONOUNS}) )\w+[,;:]? else\b(?!['’])|^Else\b", re.IGNORECASE
    ),
    "say what is missing": re.compile(r"\b(?:is|are|was|were) none\b"),
    "name who": re.compile(r"(?:^|[.:;] )Who (?!(?:\w+ ){0,8}\w+\?)\w+s\b[^?]*(?:[.;,]|$)"),
    "say is not a": re.compile(r"\b(?:what|which|who|that) is no (?!longer\b)[a-z]+\b"),
    "begin with the subject": re.compile(
        r"(?:^|[.;] )(?:To|Of) \S+ (?:goes|comes|belongs|is) what\b"
    ),
}


@cache
def texts() -> tuple[tuple[str, str], ...]:
    found = []
    for path in files():
        try:
            text = (ROOT / path).read_text("utf-8")
        except UnicodeDecodeError:
            continue  # an image
        found.append((str(path), text))
    return tuple(found)


def documents() -> list[tuple[str, str]]:
    return [(path, text) for path, text in texts() if path.endswith(".md")]


def places(path: str, text: str) -> Iterator[str]:
    """Return what holds only on the machine, or behind the network, of one developer."""
    for number, line in enumerate(text.splitlines(), 1):
        if found := OF_ONE_MACHINE.search(line):
            yield f"{path}:{number} a path of one machine: {found.group()}..."
        if found := REGISTRY.search(line):
            yield f"{path}:{number} a registry's host: {found.group()}"


def outside_fences(text: str) -> Iterator[tuple[int, str]]:
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        found = FENCE.match(line)
        if found and not fence:
            fence = found["fence"]
        elif fence:
            if line.strip().startswith(fence):
                fence = ""
        else:
            yield number, line


def python_fences(text: str) -> Iterator[tuple[int, str]]:
    """Each fenced Python program, and the line on which it begins."""
    fence, begin, body, is_python = "", 0, list[str](), False
    for number, line in enumerate(text.splitlines(), 1):
        found = FENCE.match(line)
        if found and not fence:
            fence, begin, body = found["fence"], number + 1, []
            is_python = found["language"] in ("python", "py")
        elif fence and line.strip().startswith(fence):
            fence = ""
            if is_python:
                yield begin, textwrap.dedent("\n".join(body)) + "\n"
        elif fence:
            body.append(line)


def anchors(text: str) -> set[str]:
    """The names that headings get, as the usual renderers make them."""
    names: dict[str, int] = {}
    for _, line in outside_fences(text):
        if found := HEADING.match(line):
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", found[1]).lower()
            name = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
            names[name] = names.get(name, -1) + 1
    return {f"{name}-{n}" if n else name for name, last in names.items() for n in range(last + 1)}


def links(text: str) -> Iterator[tuple[int, str]]:
    for number, line in outside_fences(text):
        plain = re.sub(r"`[^`]*`", "", line)
        for target in [*LINK.findall(plain), *REFERENCE.findall(plain)]:
            if not re.match(r"[a-z][a-z0-9+.-]*:", target):
                yield number, target


def broken_links(path: str, text: str, root: Path = ROOT) -> Iterator[str]:
    for number, link in links(text):
        target, _, anchor = link.partition("#")
        place = (root / path).parent / target if target else root / path
        if not place.exists() or not place.resolve().is_relative_to(root):
            yield f"{path}:{number} there is no {link} in this repository"
        elif anchor and place.suffix == ".md":
            there = place.read_text("utf-8") if target else text
            if anchor not in anchors(there):
                yield f"{path}:{number} there is no heading #{anchor} in {target or path}"


def broken_tables(path: str, text: str) -> Iterator[str]:
    """Rows that stand in no table: a blank line within one ends it."""
    lines = dict(outside_fences(text))
    for number, line in lines.items():
        is_first = line.startswith("|") and not lines.get(number - 1, "").startswith("|")
        if is_first and not UNDER_NAMES.fullmatch(lines.get(number + 1, "")):
            yield f"{path}:{number} a row that is in no table: {line[:40]}"


def broken_programs(path: str, text: str) -> Iterator[str]:
    for begin, program in python_fences(text):
        try:
            compile(program, path, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        except SyntaxError as error:
            yield f"{path}:{begin + (error.lineno or 1) - 1} is not Python: {error.msg}"


def habits(path: str, text: str) -> Iterator[str]:
    """Return what reads oddly. Code is left out, and so are the tables that show what
    not to write.
    """
    for number, line in outside_fences(text):
        plain = re.sub(r"`[^`]*`", "`x`", line)
        if HEADING.match(line) or (path == "CONTRIBUTING.md" and line.startswith("|")):
            continue
        for advice, habit in HABITS.items():
            if found := habit.search(plain):
                yield f"{path}:{number} {advice}: {found.group().strip()}"


def test_nothing_holds_on_one_machine_only() -> None:
    found = [line for path, text in texts() for line in places(path, text)]
    assert found == [], report(found)


def test_links_lead_somewhere() -> None:
    found = [line for path, text in documents() for line in broken_links(path, text)]
    assert found == [], report(found)


def test_each_row_is_in_a_table() -> None:
    found = [line for path, text in documents() for line in broken_tables(path, text)]
    assert found == [], report(found)


def test_programs_in_the_documents_compile() -> None:
    found = [line for path, text in documents() for line in broken_programs(path, text)]
    assert found == [], report(found)


def test_the_documents_name_who_acts() -> None:
    found = [line for path, text in documents() for line in habits(path, text)]
    assert found == [], report(found)


@pytest.mark.parametrize(
    "odd",
    [
        "It is named, else it is drawn.",
        "Else it is drawn.",
        "The lease for the key, else null.",
        "Every answer that is none",
        "Who comes waits because somebody may leave.",
        "Raises an error for what is no key.",
        "To `ring` goes what is not where the owners' points are.",
    ],
)
def test_an_odd_sentence_is_found(odd: str) -> None:
    assert len(list(habits("a.md", odd))) == 1


def test_a_plain_sentence_is_not_found() -> None:
    plain = """
    Everything else stays where it is, and somebody else's key moves.
    Who is told? Say "otherwise" where one might say `else`.
    None of them is asked. An owner that comes waits for five seconds.
    A node that is no longer heard is left out.
    ## Who takes part
    """
    assert list(habits("a.md", textwrap.dedent(plain))) == []


@pytest.mark.parametrize("home", ["home", "root"])
def test_a_path_of_one_machine_is_found(home: str) -> None:
    assert len(list(places("a.md", f"see\n`/{home}/ann/notes`"))) == 1
    assert list(places("a.md", f"GET http://127.0.0.1/{home}/ann, docs/{home}/a, /{home}")) == []


def test_a_registry_is_found() -> None:
    assert len(list(places("a.md", "from https://py" + "pi.org/simple"))) == 1
    assert list(places("a.md", "pip install tenure")) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("# The end\n")
    text = "[b](b.md#the-end) [web](https://a.example/) `[c](c.md)`\n```\n[c](c.md)\n```\n"
    assert list(broken_links("a.md", text, tmp_path)) == []
    for bad in ("[c](c.md)", "[b](b.md#start)", "[up](..)", "[b]: c.md", "[self](#no)"):
        (tmp_path / "a.md").write_text(bad)
        assert len(list(broken_links("a.md", bad, tmp_path))) == 1, bad


def test_a_row_that_is_in_no_table_is_found() -> None:
    good = "| a | b |\n|---|---|\n| 1 | 2 |\n\n```\n| 3 |\n```\n"
    assert list(broken_tables("a.md", good)) == []
    assert len(list(broken_tables("a.md", good.replace("|\n| 1", "|\n\n| 1")))) == 1


def test_a_broken_program_is_found() -> None:
    good = "```python\nasync with a() as b:\n    await b\n```\n```\nnot python\n```\n"
    assert list(broken_programs("a.md", good)) == []
    bad = "Look:\n\n```python\nx = 1\nasync with:\n```\n"
    assert [line.split()[0] for line in broken_programs("a.md", bad)] == ["a.md:5"]


GUIDE_WORDS = 1200
"""What somebody reads before they begin; beside it are the programs."""


def too_long(path: str, text: str) -> list[str]:
    """A complaint about a guide that takes too long to read."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    words = len(prose.split())
    return [f"{path}: {words} words, {GUIDE_WORDS} at most"] if words > GUIDE_WORDS else []


def test_a_guide_is_read_in_five_minutes() -> None:
    """If this fails, part the guide, or put what is looked up into the reference."""
    guides = [each for each in documents() if each[0].startswith("docs/guides/")]
    assert guides
    found = [line for path, text in guides for line in too_long(path, text)]
    assert found == [], report(found)


def test_a_guide_that_is_too_long_is_found() -> None:
    program = "```python\n" + "word " * GUIDE_WORDS + "\n```\n"
    assert too_long("a.md", program) == []
    assert too_long("a.md", program + "word " * (GUIDE_WORDS + 1)) != []
